"""What was done and what came out, in words for readers who have never heard of item response theory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from benchmirt.claims.verdict import MIN_MODELS, MIN_NULLS, is_trial
from benchmirt.figures import words
from benchmirt.outcomes import FAILURES
from benchmirt.report.gather import Findings

ORDER = ("reproduced", "not reproduced", "inconclusive", "exploratory", "cannot test")


class Stable(Protocol):
    """What tells whether dimensions come back; see `benchmirt.report.gather.Findings`."""

    @property
    def stability(self) -> Mapping[str, Any]:
        """Content of ``stability.json``."""


def corrected_verdict(record: Mapping[str, Any]) -> str:
    """Return the corrected verdict of a claim, in the words of the records."""
    return str((record.get("corrected") or {}).get("verdict") or "")


def untestable(record: Mapping[str, Any]) -> bool:
    """Say whether a claim of a published study has no answer here at all, so that its reason is all there is to say."""
    return (
        corrected_verdict(record) == "cannot test"
        and bool((record.get("published") or {}).get("data"))
        and (record.get("corrected") or {}).get("estimate") is None
        and (record.get("as_published") or {}).get("estimate") is None
    )


def tally(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Count the corrected verdicts, in a fixed order, without those that do not occur."""
    counts = Counter(corrected_verdict(record) for record in records)
    known = [(word, counts.pop(word)) for word in ORDER if word in counts]
    return known + sorted(counts.items())


def done(found: Findings) -> list[str]:
    """Say what was done."""
    out = [
        "If two questions ask for the same ability, then models that get the one right tend to get the other right "
        "too. From this pattern alone, without being told what a question is about, a statistical model works out on "
        "how many different abilities the answers depend, how much of each ability every language model has, and "
        "which benchmark (set of questions) asks for which."
    ]
    told = [record for record in found.records if not untestable(record)]
    if any((record.get("published") or {}).get("data") for record in told):
        out.append(
            "Then each claim is put to the test twice: once by the procedure of the published study that it comes from "
            "(“as published”), once with that procedure’s known weaknesses mended and with an honest margin of error "
            "(“corrected”)."
        )
    elif told:
        out.append("Then each claim is put to the test, with an honest margin of error.")
    return out


_NAMED = 6
"""So many benchmarks are named on the first screen; of more only a few."""


def data(found: Findings) -> list[str]:
    """Say on which models and questions, whether they are real, and how many answers are missing."""
    units = [words.shorten(str(u), 34) for u in dict.fromkeys(found.items["benchmark"].astype(str))]
    named = words.listing(units) if len(units) <= _NAMED else f"such as {words.listing(units[: _NAMED // 2])}"
    kind = "simulated language models" if found.simulated else "language models"
    lineages = (
        f"{words.plural(found.kept_models, kind.removesuffix('s'))}, descended from "
        f"{words.plural(found.lineages, 'base model')} (lineages)"
    )
    made_up = (
        " Models and answers are made up, drawn by chance from a truth that is known."
        if found.simulated
        else ""
    )
    return [
        words.punctuate(
            f"{lineages}, and {words.plural(found.kept_items, 'question')} of {words.plural(len(units), 'benchmark')} "
            f"({named}).{made_up}"
        ),
        f"An answer counts as 1 if it is right, or safe, and as 0 if it is not. {_gaps(found)}",
    ]


_NOT_RUN = ("not_run", "excluded")
_UNREADABLE = FAILURES


def _gaps(found: Findings) -> str:
    """Say how many answers are missing, and why."""
    kept = found.models.loc[found.models["kept"].astype(bool), "model"].astype(str)
    table = found.coverage[found.coverage["model"].astype(str).isin(kept)]

    def total(*columns: str) -> int:
        return int(sum(float(table[column].astype(float).sum()) for column in columns if column in table))

    cells, gaps = total("items"), total("items") - total("observed")
    if not gaps:
        return "No answer is missing."
    reasons = {
        "not run": total(*_NOT_RUN),
        "failed or could not be read": total(*_UNREADABLE),
        "told differently by two files or about another question": total("conflict"),
        "graded without a threshold": total("no_threshold"),
    }
    told = {reason: n for reason, n in reasons.items() if n}
    why = ": " + words.listing([f"{words.count(n)} {reason}" for reason, n in told.items()]) if told else ""
    if list(told.values()) == [gaps]:
        why = f" ({next(iter(told))})"
    return (
        f"Of {words.plural(cells, 'answer')}, {words.count(gaps)} ({words.share(gaps / cells)}) "
        f"{'is' if gaps == 1 else 'are'} missing{why}. Corrected, missing ones count as unknown and not as wrong."
    )


def dimensions(found: Findings) -> list[str]:
    """Say how many dimensions there are and whether they come back."""
    number = found.number
    held, eigen = number.get("heldout") or {}, number.get("eigen") or {}
    agreed = number.get("agreed")
    out = []
    if isinstance(agreed, int):
        out.append(
            f"Two methods that share little look for the number of abilities, and both find "
            f"{words.spelled(agreed)}: {_held(held)}, and {_eigen(eigen)}."
        )
    elif held.get("chosen") is not None and eigen.get("chosen") is not None:
        out.append(
            "Two methods that share little look for the number of abilities, and they do not agree: "
            f"{_held(held)}, but {_eigen(eigen)}. So the number is open."
        )
    else:
        out.append(
            words.sentences(
                f"How many abilities there are could not be settled. {number.get('why_not') or ''}"
            )
        )
    used = found.naming.dims
    if agreed != used:
        out.append(
            f"What follows is shown with {words.plural(used, 'dimension').replace(str(used), words.spelled(used), 1)}, "
            "the number that this study was set to."
        )
    stable = sorted(found.stability.get("dimensions") or [], key=lambda d: int(d["dimension"]))
    if not stable:
        out.append(
            words.sentences(
                f"Whether they are stable could not be judged. {found.stability.get('why_not') or ''}"
            )
        )
        return out
    if is_trial(found.stability):
        out.append(
            f"Whether {'it comes' if len(stable) == 1 else 'they come'} back when models and questions are split into "
            "independent halves was looked at in a trial only, which gives no verdict."
        )
        return out
    passed = [int(d["dimension"]) for d in stable if d.get("passes")]
    failed = [int(d["dimension"]) for d in stable if d.get("passes") is False]
    untested = [int(d["dimension"]) for d in stable if d.get("passes") is None]
    if untested:
        out.append(
            f"Whether dimension {words.listing([str(k) for k in untested])} comes back was not tested."
        )
    if not passed and not failed:
        return out
    how = "when models and questions are split into independent halves"
    if not failed:
        many = "Both" if len(passed) == 2 else f"All {words.spelled(len(passed))}"
        which = "The one dimension comes" if len(passed) == 1 else f"{many} dimensions come"
        out.append(f"{which} back {how}, more clearly than chance would give.")
    else:
        good = f"{_numbered(passed)} back {how}; " if passed else ""
        one = len(failed) == 1
        out.append(
            words.capital(
                f"{good}{_numbered(failed, negative=True)} back"
                f"{'' if passed else ' ' + how}. Whatever is said about {'it' if one else 'them'} is not to be relied on."
            )
        )
    return out


def _held(held: Mapping[str, Any]) -> str:
    chosen: Any = held.get("chosen")
    if not words.is_number(chosen):
        return "the prediction of unseen models gives no answer"
    return (
        f"models of unseen lineages are predicted about as well as can be with {words.spelled(int(chosen))}"
    )


def _eigen(eigen: Mapping[str, Any]) -> str:
    chosen: Any = eigen.get("chosen")
    if not words.is_number(chosen):
        return "the patterns left over give no answer"
    if eigen.get("at_least"):
        return (
            f"even beyond {words.spelled(int(chosen))}, the most that were tried, more pattern is left over than chance "
            "would leave"
        )
    return f"beyond {words.spelled(int(chosen))} no more pattern is left over than chance would leave"


def _numbered(dimensions: Sequence[int], *, negative: bool = False) -> str:
    one = len(dimensions) == 1
    names = words.listing([str(d) for d in dimensions])
    verb = ("does not come" if one else "do not come") if negative else ("comes" if one else "come")
    return f"dimension{'' if one else 's'} {names} {verb}"


def axes(found: Findings) -> list[str]:
    """Say what each ability goes with; abilities that earn no name for the same reason share a sentence."""
    out: list[str] = []
    nameless: dict[str, list[str]] = {}
    for k, entry in enumerate(found.naming.details, start=1):
        if not entry.get("name"):
            reason = str(entry.get("why") or "no category is followed clearly more than the others").rstrip(
                "."
            )
            nameless.setdefault(words.typeset(reason), []).append(str(k))
            continue
        name = str(entry["name"])
        best = next(
            (
                f
                for f in entry.get("follows") or []
                if str(f["category"]).casefold() == name.casefold() and words.is_number(f.get("mean_abs_r"))
            ),
            None,
        )
        number = f" (mean correlation {words.number(best['mean_abs_r'])}{_bounds(best)})" if best else ""
        out.append(f"Ability {k} goes with the {name} benchmarks{number}, so it is called {name}.")
    for reason, which in nameless.items():
        many = len(which) > 1
        out.append(
            f"{'Abilities' if many else 'Ability'} {words.listing(which)} {'earn' if many else 'earns'} no name: {reason}."
        )
    return out


_NEAR = 45.0
"""Degrees within which the whole interval of a benchmark's direction has to lie to say that it follows an ability."""


def strangers(found: Findings) -> list[str]:
    """Say which benchmarks follow an ability that is named after another category than theirs.

    Only where every dimension comes back, and where the whole interval of the direction lies near the ability.
    """
    stable = found.stability.get("dimensions") or []
    if found.naming.dims == 1 or is_trial(found.stability) or not all(one.get("passes") for one in stable):
        return []
    told: dict[tuple[str, str], list[str]] = {}
    for row in found.profiles.to_dict("records"):
        category = row["category"] if isinstance(row["category"], str) else ""
        for k, entry in enumerate(found.naming.details, start=1):
            low, high = (row.get(f"angle_{k}_{end}", float("nan")) for end in ("low", "high"))
            name = entry.get("name")
            if not name or not category or category.casefold() == str(name).casefold():
                continue
            if not (words.is_number(low) and words.is_number(high)):
                continue
            if float(high) < _NEAR or float(low) > 180 - _NEAR:
                way = "" if float(high) < _NEAR else ", in reverse"
                told.setdefault((category, f"{name}{way}"), []).append(str(row["benchmark"]))
    if not told:
        return []
    said = [
        f"{words.listing(which)} {'count' if len(which) > 1 else 'counts'} as {category} and "
        f"{'follow' if len(which) > 1 else 'follows'} {name}"
        for (category, name), which in told.items()
    ]
    return [words.punctuate(f"Not every benchmark measures what it is filed under: {'; '.join(said)}.")]


def unstable(found: Stable) -> str:
    """Say that not all abilities may be real, where not all dimensions come back; else nothing."""
    stable = found.stability.get("dimensions") or []
    failed = [int(d["dimension"]) for d in stable if d.get("passes") is False]
    if is_trial(found.stability) or not failed:
        return ""
    if len(failed) == len(stable):
        return (
            "No dimension came back in independent halves, so these data do not show that there is any ability of this "
            "kind. What follows describes the fit, not the models."
        )
    return (
        f"Only {words.spelled(len(stable) - len(failed))} of the {words.spelled(len(stable))} dimensions came back in "
        f"independent halves, while the abilities below are turned out of all {words.spelled(len(stable))}. So not every "
        "ability below is real."
    )


def _bounds(entry: Mapping[str, Any]) -> str:
    bounds = (entry.get("low"), entry.get("high"))
    return f", 95 % interval {words.interval(bounds)}" if any(words.is_number(b) for b in bounds) else ""


def claims(found: Findings) -> str:
    """Say how the claims fare."""
    counts = tally(found.records)
    total = len(found.records)
    if not total:
        return "This study makes no claims."
    phrases = {
        "reproduced": ("holds", "hold"),
        "not reproduced": ("does not hold", "do not hold"),
        "inconclusive": ("is left open by these data", "are left open by these data"),
        "exploratory": ("is explored without a verdict", "are explored without a verdict"),
        "cannot test": ("cannot be tested here", "cannot be tested here"),
    }
    word = counts[0][0]
    one, many = phrases.get(word, (word, word))
    if total == 1:
        return f"The one claim {one}."
    if len(counts) == 1:
        if word == "cannot test":
            return f"None of the {words.spelled(total)} claims can be tested on these data."
        every = "Both" if total == 2 else f"All {words.spelled(total)}"
        return f"{every} claims {many}."
    said = [f"{words.spelled(n)} {phrases.get(word, (word, word))[n != 1]}" for word, n in counts]
    where = "In these simulated data, of" if found.simulated else "Of"
    return f"{where} the {words.spelled(total)} claims, {words.listing(said)}."


def cautions(found: Findings) -> list[str]:
    """Say what a reader has to keep in mind."""
    out = []
    if found.simulated:
        out.append(
            "These data are simulated. Nothing here says anything about real models; it shows whether the method finds "
            "what was put in."
        )
    if is_trial(found.stability):
        sets = words.plural(int(found.stability.get("replicates") or 0), "simulated data set")
        out.append(
            f"This is a trial run: chance was judged from {sets} where {MIN_NULLS} are needed. Claims that rest on it are "
            "shown without a verdict."
        )
    if found.kept_models < MIN_MODELS:
        out.append(
            f"With {words.plural(found.kept_models, 'model')} (fewer than {MIN_MODELS}) numbers and intervals are shown "
            "as exploratory, and no verdict is given."
        )
    told = [record for record in found.records if not untestable(record)]
    about = {(record.get("published") or {}).get("data") for record in told}
    if "other" in about:
        out.append(
            "The published figures are about other models and questions than these. They stand beside for comparison; "
            "that a number here differs does not speak against them."
        )
    elif "simulated" in about:
        out.append(
            "The published figures are about real models. That a number “matches” says that the published procedure "
            "gives it on made-up answers too."
        )
    if not found.summaries["honest"].get("failures_known", True):
        out.append(
            "The source does not tell a failed answer (empty, cut off, unreadable) from a wrong one, so failures "
            "count as 0 in both columns."
        )
    unsettled = [
        f"{words.fit_name(fit.name)} ({sum(not run.converged for run in fit.runs)} of {len(fit.runs)})"
        for fit in found.fits
        if not all(run.converged for run in fit.runs)
    ]
    if unsettled:
        out.append(f"Some runs did not settle and are marked below: {words.listing(unsettled)}.")
    if unstable(found):
        out.append(unstable(found))
    return out or [
        "Nothing in particular: enough models, and every run settled. What is found holds for models and questions like "
        "these."
    ]
