"""Rows of the tables on the page, as plain values; `page.html` lays them out."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from benchmirt.figures import foretold, plane, steadiness, words
from benchmirt.figures.store import discriminations, selected, was_fitted
from benchmirt.report import benchmark_page
from benchmirt.report.gather import Findings, Fit

MOST_ROWS = 200
_INTERVAL = "95\u00a0% interval"
"""A table on the page shows at most so many rows; the CSV file has them all."""


@dataclass(frozen=True)
class Column:
    """One answer to a claim: as published, or corrected.

    Attributes
    ----------
    verdict
        Verdict in the words of the records.
    estimate, interval
        Written out; a dash where there is none.
    said, method, why
        Sentences.
    part
        Name of the part whose numbers are shown, where a claim has several; else empty.
    brief
        A few words for the table of verdicts.
    """

    verdict: str
    estimate: str
    interval: str
    said: str
    method: str
    why: str
    part: str = ""
    brief: str = ""


def column(record: Mapping[str, Any], which: str) -> Column:
    """Return one answer of a claim: `as_published` or `corrected`."""
    answer = record.get(which) or {}
    unit = words.unit_of(record)
    said = str(answer.get("text") or "")
    if which == "corrected" and answer.get("interval"):
        level = answer.get("level")
        kind = str(answer.get("interval_kind") or "interval")
        said = f"{words.share(level)}, {kind}" if words.is_number(level) else kind
    estimate = words.quantity(answer.get("estimate"), unit)
    span = words.interval(answer.get("interval"), unit) if answer.get("interval") else ""
    several = len(_parts(record)) > 1
    part, brief = "", ""
    if which == "corrected":
        part = str(answer.get("headline") or "") if several and estimate != words.NOTHING else ""
        brief = "" if estimate != words.NOTHING else words.shorten_end(str(answer.get("why") or ""), 190)
    elif several:
        # whose data the figure is about stands in the column before
        elsewhere = (record.get("published") or {}).get("data") == "other" and answer.get(
            "verdict"
        ) == "not compared"
        brief = "" if elsewhere else words.shorten_end(str(answer.get("why") or said), 150)
        estimate = words.NOTHING
    if which == "corrected" and record.get("kind") == "dimensionality" and span:
        low, high = (words.quantity(end, unit) for end in answer["interval"])
        span = f"[{estimate}, {estimate}]"
        if low != high or _open_ended(answer):
            span = f"(the two methods: {low} and {'at least ' if _open_ended(answer) else ''}{high})"
    return Column(
        verdict=str(answer.get("verdict") or ""),
        estimate=estimate,
        interval=span if span != f"[{estimate}, {estimate}]" else "",
        said="" if said == estimate else said,
        method=str(answer.get("method") or ""),
        why=str(answer.get("why") or ""),
        part=part,
        brief=brief,
    )


def _open_ended(answer: Mapping[str, Any]) -> bool:
    """Whether the eigenvalues leave a pattern even beyond the most dimensions that were tried."""
    parts = answer.get("parts") or [{}]
    return bool((parts[0].get("methods") or {}).get("eigen_at_least"))


def published(record: Mapping[str, Any]) -> str:
    """Return what was published, in words."""
    found = record.get("published") or {}
    return words.typeset(str(found.get("text") or words.quantity(found.get("value"), words.unit_of(record))))


def region(record: Mapping[str, Any]) -> str:
    """Return where the estimate of a claim of one part has to lie, in words; empty if that is not said."""
    if len(_parts(record)) > 1:
        return ""
    text = words.region((record.get("corrected") or {}).get("region"), words.unit_of(record))
    return "" if text == words.NOTHING else text


def parts(record: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a claim's parts."""
    rows = []
    for part in _parts(record):
        unit = words.unit_of(record, part)
        figure = part.get("published")
        if isinstance(figure, Mapping):
            figure = figure.get("value")
        redone = words.quantity(part.get("as_published"), unit)
        interval = words.interval(part.get("interval"), unit) if part.get("interval") else words.NOTHING
        if record.get("kind") == "count":
            interval = words.NOTHING
        if record.get("kind") == "dimensionality" and interval != words.NOTHING:
            interval = " to ".join(dict.fromkeys(words.quantity(end, unit) for end in part["interval"]))
        if part.get("as_published_verdict") in ("matches", "differs") and redone != words.NOTHING:
            redone = f"{redone} {words.verdict(part['as_published_verdict']).symbol}"
        rows.append(
            {
                "name": words.typeset(str(part.get("name") or "part")),
                "published": words.quantity(figure, unit),
                "as_published": redone,
                "estimate": words.quantity(part.get("estimate"), unit),
                "interval": interval,
                "region": words.region(part.get("region"), unit),
                "items": words.count(part.get("items"))
                if words.is_number(part.get("items"))
                else words.NOTHING,
                "verdict": str(part.get("verdict") or ""),
                "why": str(part.get("why") or ""),
            }
        )
    return rows


_PART_COLUMNS = (
    ("published", "Published"),
    ("as_published", "As published"),
    ("estimate", "Corrected"),
    ("interval", ""),
    ("region", "True means"),
    ("items", "Items"),
)


def part_columns(rows: Sequence[Mapping[str, str]], kind: str = "") -> list[tuple[str, str]]:
    """Return key and heading of those columns of a table of parts of a kind of claim that hold anything."""
    return [
        (key, name or words.capital(words.span_name(kind)))
        for key, name in _PART_COLUMNS
        if any(row[key] != words.NOTHING for row in rows)
    ]


@dataclass(frozen=True)
class Evidence:
    """A table of its own that a claim shows: what it is called, caption, headings with whether they head numbers, and rows."""

    summary: str
    caption: str
    headings: list[tuple[str, bool]]
    rows: list[list[str]]


def evidence(record: Mapping[str, Any]) -> list[Evidence]:
    """Return the tables of a claim beside its parts, those that hold anything."""
    of_kind = (make(record) for make in (_scores, _cells, _filtered, _correlations, _check_values))
    own = (_own(part["table"]) for part in _parts(record) if part.get("table"))
    return [table for table in (*of_kind, *own) if table.rows]


def _parts(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return (record.get("corrected") or {}).get("parts") or []


def _listed(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """Return what the first part that has any holds under a key."""
    return next((list(part[key]) for part in _parts(record) if part.get(key)), [])


def _scores(record: Mapping[str, Any]) -> Evidence:
    """Return the scores of all methods in the splits that a claim on prediction looks at."""
    averages = {"micro": "all answers", "macro": "benchmarks"}
    rows = [
        [
            words.capital(foretold.TITLES.get(str(entry["split"]), str(entry["split"]))),
            str(entry["label"]),
            averages.get(str(entry["average"]), ""),
            *(
                text
                for metric in foretold.MEASURES
                for text in (
                    words.quantity(entry.get(metric), "gain"),
                    words.interval(entry.get(f"{metric}_interval"), "gain"),
                )
            ),
        ]
        for entry in foretold.listed(record)
    ]
    measures = [
        (text, True) for name in ("Accuracy", "Log loss", "Rank agreement") for text in (name, _INTERVAL)
    ]
    headings = [("Held out", False), ("Method", False), ("Average over", False), *measures]
    return Evidence(f"Scores of all methods and splits of {record['claim']}", "", headings, rows)


def _cells(record: Mapping[str, Any]) -> Evidence:
    """Return the cells of a claim that is about a whole table, such as 32 correlations."""
    within = {"yes": "within", "no": "outside", "open": "open"}
    rows = [
        [
            str(cell.get("benchmark")),
            str(cell.get("ability")),
            words.number(cell.get("published")),
            words.number(cell.get("estimate")),
            words.interval(cell.get("interval")),
            within.get(str(cell.get("within")), ""),
        ]
        for cell in _listed(record, "cells")
    ]
    numbers = [(name, True) for name in ("Published", "Corrected", _INTERVAL)]
    headings = [("Benchmark", False), ("Ability", False), *numbers, ("Near the published", False)]
    return Evidence(f"All {words.count(len(rows))} cells of {record['claim']}", "", headings, rows)


def _filtered(record: Mapping[str, Any]) -> Evidence:
    """Return what the published filter really keeps, a row per scope and cut, from a claim about short forms."""
    scopes = {"all": "all questions", "category": "each category"}
    rows = [
        [
            scopes.get(row["scope"], "each benchmark"),
            words.share(1.0 - row["cut"]),
            words.count(row["nominal"]),
            words.count(row["kept"]),
            words.share(row["kept"] / row["items"]) if row["items"] else words.NOTHING,
            words.share(row["most"]),
            words.listing(row["vanished"]) or words.NOTHING,
        ]
        for row in _listed(record, "filter")
    ]
    numbers = ("Meant to keep", "Questions that is", "Kept", "Really", "At most, of a benchmark")
    return Evidence(
        "What the published filter keeps",
        "Questions are cut into 100 bins of equal size by their published difficulty, and the most discriminating of each bin "
        "are kept: at least one, so that small benchmarks keep far more than they should.",
        [("Bins within", False), *((name, True) for name in numbers), ("Benchmarks that vanish", False)],
        rows,
    )


def _correlations(record: Mapping[str, Any]) -> Evidence:
    """Return the correlations of all items and of a short form, by benchmark and ability."""
    rows = [
        [
            str(pair["benchmark"]),
            str(pair["ability"]),
            words.count(pair["items"]),
            words.number(pair["kept"], 1),
            *(words.number(pair[key]) for key in ("r_full", "r_form", "difference")),
            words.interval(pair["interval"]),
        ]
        for pair in _listed(record, "pairs")
    ]
    numbers = ("Questions", "Kept", "r, all", "r, kept", "Difference", f"Simultaneous {_INTERVAL}")
    return Evidence(
        f"All {words.count(len(rows))} correlations of {record['claim']}",
        "r with the ability worked out without the benchmark. Kept: questions of the short form, on average over the folds of "
        "lineages.",
        [("Benchmark", False), ("Ability", False), *((name, True) for name in numbers)],
        rows,
    )


def _check_values(record: Mapping[str, Any]) -> Evidence:
    """Return a claim's check values from outside, beside the published table and the responses here."""
    agree = {True: "agrees", False: "differs", None: "is not there"}
    names = {"spearman": "Spearman’s r", "pearson": "Pearson’s r", "score": "Score"}
    checks = list(record.get("check_values") or ())
    rows = [
        [
            names[check["quantity"]],
            words.listing([check["column"], check["against"] or check["model"]]),
            words.number(check["checked"], 3),
            words.number(check["published"], 3),
            agree[check["agrees"]],
            words.interval(_ends(check, "checked"), "gain"),
            words.interval(_ends(check, "published"), "gain"),
            words.number(check["here"], 3),
        ]
        for check in checks
    ]
    good = sum(check["agrees"] is True for check in checks)
    headings = [
        ("Check value", False),
        ("Of", False),
        ("By others", True),
        ("Published table", True),
        ("The two", False),
    ]
    intervals = [(f"{_INTERVAL} by others", True), (f"{_INTERVAL} of the published table", True)]
    return Evidence(
        f"Check values from outside: {words.count(good)} of {words.count(len(rows))} agree",
        "Statistics that others computed from the published table of models, and the same of the table that was fetched and of "
        "the responses here (means over the questions that the published filter keeps). Intervals: families drawn with "
        "replacement. No verdict rests on them.",
        [*headings, *intervals, ("Here", True)],
        rows,
    )


def _ends(check: Mapping[str, Any], which: str) -> list[float] | None:
    """Return the ends of an interval of a check value; None where it has none."""
    ends = [check[f"{which}_low"], check[f"{which}_high"]]
    return None if None in ends else ends


def _own(table: Mapping[str, Any]) -> Evidence:
    """Return the table that a part brings along, with its caption and columns; those that hold nothing are left out."""
    shown = [
        (heading, unit != "name", [_written(row, key, unit) for row in table["rows"][:MOST_ROWS]])
        for key, heading, unit in table["columns"]
    ]
    kept = [column for column in shown if any(text != words.NOTHING for text in column[2])]
    rows = [list(row) for row in zip(*(column[2] for column in kept), strict=True)]
    headings = [(heading, numeric) for heading, numeric, _ in kept]
    return Evidence(
        f"{words.capital(words.plural(len(rows), 'row'))} of evidence",
        words.punctuate(str(table["caption"])),
        headings,
        rows,
    )


def _written(row: Mapping[str, Any], key: str, unit: str) -> str:
    """Return one entry of such a table: a name, a p value, the interval of the row, or a number of some unit."""
    if unit == "interval":
        return words.interval((row.get("low"), row.get("high")))
    value = row.get(key)
    if value is None:
        return words.NOTHING
    if unit == "name":
        return str(value)
    return words.probability(value) if unit == "p" and words.is_number(value) else words.quantity(value, unit)


class Told(Protocol):
    """What a command that makes a result again repeats; see `benchmirt.report.gather.Findings`."""

    @property
    def shown_results(self) -> str:
        """The results folder as it is written in commands."""

    @property
    def configfiles(self) -> tuple[str, ...]:
        """Files given by ``--configfile``."""

    @property
    def overrides(self) -> tuple[str, ...]:
        """What ``--config`` set."""


def command(found: Told, path: str) -> str:
    """Return the command that makes a result again, in the study's own configuration."""
    words = ["snakemake", "--cores", "all", f"{found.shown_results}/{path}"]
    # the files come last: Snakemake would take a target after them for another file
    words += ["--configfile", *found.configfiles] if found.configfiles else []
    words += ["--config", *found.overrides] if found.overrides else []
    return shlex.join(words)


# ------------------------------------------------------------------ benchmarks and models


def benchmarks(found: Findings) -> list[dict[str, Any]]:
    """Return one row per benchmark: size, coverage, mean, correlations and direction."""
    statistics = found.item_statistics
    fitted = was_fitted(statistics)
    a = discriminations(statistics, found.naming.dims)
    place = {name: n for n, name in enumerate(found.agreement.benchmarks)}
    coverage = found.coverage.assign(
        items=found.coverage["items"].astype(float), observed=found.coverage["observed"].astype(float)
    )
    by_benchmark = coverage.groupby("benchmark", sort=False)[["items", "observed"]].sum()
    rows = []
    for name, table in found.items.groupby("benchmark", sort=False):
        mine = fitted & selected(statistics, {"benchmark": [str(name)]})
        mean = a[mine].mean(axis=0) if mine.any() else np.full(found.naming.dims, np.nan)
        at = place.get(str(name))
        category = table["category"].dropna().astype(str)
        seen = by_benchmark.loc[name] if name in by_benchmark.index else None
        rows.append(
            {
                "name": str(name),
                "page": benchmark_page(str(name)),
                "category": str(category.mode().iloc[0]) if len(category) else words.NOTHING,
                "items": words.count(len(table)),
                "kept": words.count(int(table["kept"].sum())),
                "coverage": words.share(
                    seen["observed"] / seen["items"] if seen is not None and seen["items"] else None
                ),
                "mean": words.number(_mean(table)),
                "correlations": [
                    (
                        words.number(found.agreement.full[at, k]) if at is not None else words.NOTHING,
                        words.number(found.agreement.left_out[at, k]) if at is not None else words.NOTHING,
                    )
                    for k in range(found.naming.dims)
                ],
                "angles": [
                    words.quantity(float(plane.angle_between(mean, found.naming.T[:, k])), "degrees")
                    for k in range(found.naming.dims)
                ],
            }
        )
    return rows


def _mean(table: pd.DataFrame) -> float:
    observed = table["observed"].to_numpy(dtype=float)
    mean = table["mean"].to_numpy(dtype=float)
    ok = np.isfinite(mean) & (observed > 0)
    return float((mean[ok] * observed[ok]).sum() / observed[ok].sum()) if ok.any() else float("nan")


def models(found: Findings) -> list[dict[str, Any]]:
    """Return one row per fitted model, the highest in the first ability first, at most `MOST_ROWS`."""
    table = found.model_statistics[found.model_statistics["ability_1"].notna()]
    table = table.sort_values("ability_1", ascending=False, kind="stable").head(MOST_ROWS)
    rows = []
    for row in table.to_dict("records"):
        rows.append(
            {
                "name": str(row["model"]),
                "lineage": str(row.get("lineage") or words.NOTHING)
                if not _missing(row.get("lineage"))
                else words.NOTHING,
                "size": words.number(row.get("size_b"), 1)
                if words.is_number(row.get("size_b"))
                else words.NOTHING,
                "observed": words.count(row.get("observed")),
                "mean": words.number(row.get("mean")),
                "abilities": [
                    (
                        words.number(row.get(f"ability_{k}")),
                        words.interval((row.get(f"ability_{k}_low"), row.get(f"ability_{k}_high"))),
                    )
                    for k in range(1, found.naming.dims + 1)
                ],
            }
        )
    return rows


def _missing(value: object) -> bool:
    return value is None or bool(pd.isna(value))  # type: ignore[call-overload]


# ------------------------------------------------------------------ data


def dropped_items(found: Findings) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the reasons for which items were dropped, and per benchmark how many for each."""
    table = found.items[~found.items["kept"].astype(bool)]
    reasons = list(table["drop_reason"].astype(str).value_counts().index)
    rows = []
    for name, mine in table.groupby("benchmark", sort=False):
        counts = mine["drop_reason"].astype(str).value_counts()
        rows.append((str(name), [words.count(counts.get(reason, 0)) for reason in reasons]))
    return reasons, rows


def dropped_models(found: Findings) -> list[tuple[str, str]]:
    """Return the models that were not fitted, each with the reason; at most `MOST_ROWS`."""
    table = found.models[~found.models["kept"].astype(bool)].head(MOST_ROWS)
    return [(str(m), str(r)) for m, r in zip(table["model"], table["drop_reason"], strict=True)]


REASONS = {
    "not_run": "not run",
    "empty": "empty answer",
    "truncated": "cut off",
    "unparsed": "unreadable answer",
    "judge_failed": "judge failed",
    "timeout": "timed out",
    "conflict": "sources disagree",
    "excluded": "excluded",
    "no_threshold": "graded, but no threshold",
    "errored": "run crashed",
}


def missing(found: Findings) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """Return the reasons for which outcomes are missing, and per benchmark the total and how many for each."""
    present = [
        c
        for c in REASONS
        if c in found.coverage.columns and float(pd.to_numeric(found.coverage[c]).sum()) > 0
    ]
    rows = []
    for name, mine in found.coverage.groupby("benchmark", sort=False):
        counts = [float(pd.to_numeric(mine[c]).sum()) for c in present]
        total = float(pd.to_numeric(mine["missing"]).sum()) if "missing" in mine else sum(counts)
        if total:
            cells = float(pd.to_numeric(mine["items"]).sum())
            rows.append(
                (
                    str(name),
                    f"{words.count(total)} ({words.share(total / cells)})",
                    [words.count(c) for c in counts],
                )
            )
    return [REASONS[c] for c in present], rows


def sources(found: Findings) -> list[dict[str, str]]:
    """Return one row per source file: source, role, path, SHA-256."""
    rows = []
    for source in found.summaries["honest"].get("sources") or []:
        if not isinstance(source, Mapping):
            rows.append({"source": str(source), "role": "", "path": "", "sha256": ""})
            continue
        for role, file in (source.get("files") or {}).items():
            rows.append(
                {
                    "source": str(source.get("source") or ""),
                    "role": str(role),
                    "path": str(file.get("path") or ""),
                    "sha256": str(file.get("sha256") or ""),
                }
            )
    return rows


# ------------------------------------------------------------------ fits


def flat(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return nested settings as lines of name and value, numbers short."""
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        name = f"{prefix}{str(key).replace('_', ' ')}"
        if isinstance(value, Mapping):
            out.extend(flat(value, f"{name}: "))
        elif isinstance(value, bool) or not isinstance(value, int | float):
            out.append((name, str(value)))
        else:
            out.append((name, compact(value)))
    return out


def compact(value: float) -> str:
    """Write a diagnostic: whole numbers whole, others with as many digits as they need."""
    if isinstance(value, int) or float(value).is_integer():
        return words.count(value)
    if abs(value) >= 1000:
        return words.number(value, 1)
    if abs(value) < 0.001:
        base, exponent = f"{value:.1e}".split("e")
        return f"{base}e{int(exponent)}".replace("-", words.MINUS)
    return words.number(value, 3)


@dataclass(frozen=True)
class FitCard:
    """What the page says of a fit.

    Attributes
    ----------
    fit
        The fit.
    title
        What it is, in words.
    settings
        Name and value of what it was told to do.
    settled
        How many of its runs settled, in words.
    all_settled
        True if all did.
    failures
        Seed and reason of those that did not.
    priors
        Lines of the priors as really used.
    diagnostics
        Name and value, or lowest and highest value over the seeds.
    """

    fit: Fit
    title: str
    settings: list[tuple[str, str]]
    settled: str
    all_settled: bool
    failures: list[tuple[int, str]]
    priors: list[tuple[str, str]]
    diagnostics: list[tuple[str, str]]


_ENGINES = {
    "svi": "stochastic variational inference (SVI)",
    "em": "variational expectation-maximisation (EM)",
    "nuts": "No-U-Turn sampler (NUTS)",
}

_SETTINGS = {
    "tau scale": "scale of τ, the spread of discriminations",
    "testlet scale": "scale of the spread of testlets' effects",
    "intercept scale": "scale of μ and s, the middle and spread of intercepts",
    "rhat max": "largest R-hat",
    "ess min": "smallest effective sample size",
    "rhat max abilities": "largest R-hat of abilities",
    "rhat max items": "largest R-hat of items",
    "ess min abilities": "smallest effective sample size of abilities",
    "ess min items": "smallest effective sample size of items",
    "checked items": "items looked at, the extreme ones among them",
    "noise per cell": "noise of the loss, per answer",
    "drift per cell": "last change of the loss, per answer",
    "learning rate": "step size",
    "start": "starting point",
    "elbo": "lower bound of the log likelihood (ELBO)",
    "change": "last change of abilities, in logits",
    "tolerance": "settled when abilities change by less than, in logits",
    "accept prob": "accepted share of proposals",
    "deepest trees": "share of draws that reached the largest tree depth",
    "leapfrogs mean": "steps per draw",
    "max tree depth": "largest tree depth",
    "thin": "one draw kept of every",
    "warmup": "warm-up draws",
}
"""Words for the names of settings and diagnostics in fit records."""


def fit_card(fit: Fit) -> FitCard:
    """Return the card of a fit."""
    good = sum(run.converged for run in fit.runs)
    return FitCard(
        fit=fit,
        title=words.capital(words.fit_name(fit.name)),
        settings=[
            ("purpose", fit.purpose),
            ("engine", _ENGINES.get(fit.engine, fit.engine)),
            (
                "failed answers",
                {"published": "count as 0", "honest": "are missing"}.get(fit.policy, fit.policy),
            ),
            ("dimensions", words.count(fit.dims)),
            ("chance floors", "yes" if fit.asymptotes else "no"),
            ("effects of testlets", "yes" if fit.testlets else "no"),
        ],
        settled=f"{words.count(good)} of {words.plural(len(fit.runs), 'run')} settled",
        all_settled=good == len(fit.runs),
        failures=[(run.seed, run.why) for run in fit.runs if not run.converged],
        priors=[(_SETTINGS.get(name, name), value) for name, value in flat(fit.runs[0].priors)]
        if fit.runs
        else [],
        diagnostics=_spread([run.diagnostics for run in fit.runs]),
    )


def _spread(diagnostics: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    out = []
    for key in dict.fromkeys(k for d in diagnostics for k in d):
        values = [d[key] for d in diagnostics if key in d]
        name = _SETTINGS.get(key.replace("_", " "), key.replace("_", " "))
        if all(words.is_number(v) for v in values):
            low, high = compact(min(values)), compact(max(values))
            out.append((name, low if low == high else f"{low} to {high}"))
        else:
            out.append((name, words.listing(list(dict.fromkeys(str(v) for v in values)), "or")))
    return out


def stability(found: Findings) -> list[dict[str, str]]:
    """Return one row per dimension and measure: agreement, chance, p, answer."""
    rows = []
    for entry in found.stability.get("dimensions") or []:
        for measure, name in (("congruence", "congruence"), ("ability_r", "ability correlation")):
            chance = entry.get(f"null_{measure}") or {}
            rows.append(
                {
                    "dimension": str(entry["dimension"]),
                    "measure": name,
                    "mean": words.number(entry.get(f"{measure}_mean")),
                    "interval": words.interval((entry.get(f"{measure}_low"), entry.get(f"{measure}_high"))),
                    "chance": words.number(chance.get("mean")),
                    "q99": words.number(chance.get("q99")),
                    "p": words.probability(
                        entry.get("p_congruence" if measure == "congruence" else "p_ability_r")
                    ),
                    "scrambled": words.number(entry.get("scrambled_congruence"))
                    if measure == "congruence"
                    else words.NOTHING,
                    "lineages": words.probability(entry["p_lineages"])
                    if measure == "ability_r" and words.is_number(entry.get("p_lineages"))
                    else words.NOTHING,
                    "answer": steadiness.answer(entry, found.stability),
                }
            )
    return rows


def reproducibility(found: Findings) -> list[dict[str, str]]:
    """Return one row per fit and dimension: agreement over seeds."""
    rows = []
    for (fit, dimension), table in found.reproducibility.groupby(["fit", "dimension"], sort=False):
        values = table["congruence"].dropna().astype(float)
        if values.empty:
            continue
        rows.append(
            {
                "fit": words.capital(words.fit_name(str(fit))),
                "dimension": words.count(dimension),
                "seeds": words.count(len(values)),
                "mean": words.number(values.mean()),
                "low": words.number(values.min()),
                "high": words.number(values.max()),
                "ability": _average(table, "ability_r"),
                "published": _average(table, "published_congruence"),
            }
        )
    return rows


def checks(found: Findings) -> list[dict[str, str]]:
    """Return one row per check of the headline and ability: how well they agree, and which is the surer."""
    return [
        {
            "fit": words.capital(words.fit_name(str(row["fit"]))),
            "engine": str(row["engine"]).upper(),
            "settled": "yes" if row["converged"] else "no",
            "ability": found.naming.labels[int(row["ability"]) - 1],
            **{
                name: words.number(row[name])
                for name in (
                    "congruence",
                    "ability_r",
                    "ability_difference",
                    "ability_sd_ratio",
                    "mdisc_ratio",
                )
            },
            "sigma": words.number(row["sigma_t"]),
        }
        for row in found.checks.to_dict("records")
    ]


_ORIGINS = {
    "benchmirt": "benchmirt",
    "commit": "commit of benchmirt",
    "config_sha256": "SHA-256 of the configuration",
    "cpu": "processor",
    "data_hash": "SHA-256 of the data",
}


def origins(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return name and value of where results come from, but for the versions of packages."""
    known = {key: value for key, value in provenance.items() if key != "versions" and value is not None}
    return [(_ORIGINS.get(key, key.replace("_", " ")), str(value)) for key, value in known.items()]


def _average(table: pd.DataFrame, name: str) -> str:
    return words.number(pd.to_numeric(table[name]).mean()) if name in table else words.NOTHING
