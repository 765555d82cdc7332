"""A calibration: what a finished study knows of its items and abilities, frozen in a folder that can be copied or published.

The folder holds

- ``calibration.json``: format and its version, study, frames, abilities and their names, population, how it was made,
  whether the data are simulated, and the SHA-256 of the other files;
- ``items.csv.gz``: a row per item of the study; those that informed the fit carry their parameters and covariances in
  both frames;
- ``models.csv``: the study's models on the abilities shown;
- ``benchmarks.csv``: a row per benchmark, with how far models deviate on it from what their abilities say;
- ``README.md``: the same in words.

Two frames. In the *canonical* frame the abilities theta of the study's models have mean 0 and second moment I, so that
N(0, I) is the prior of a new model, and eta = a . theta + d. The *display* frame has the oblique axes that are shown
and named, turned so that more is better: ability = theta T with unit columns T, display_a = a inv(T)'; eta is the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt import sheets
from benchmirt.errors import InputError, nearest
from benchmirt.files import read_json, sha256_of, write_csv, write_json, write_text
from benchmirt.sheets import Column, Typed

__all__ = ["FILES", "FORMAT", "ITEM_FACTS", "VERSION", "Calibration", "read", "write"]

Floats = NDArray[np.float64]

FORMAT = "benchmirt calibration"
VERSION = 1
TABLES = ("items.csv.gz", "models.csv", "benchmarks.csv")
FILES = ("calibration.json", *TABLES, "README.md")
ITEM_FACTS = (
    *("question_id", "benchmark", "category", "subcategory_one", "testlet", "options", "inverted"),
    *("content_hash", "scored_as", "observed", "mean"),
)
"""Columns of ``items.csv.gz`` before ``calibrated``, the asymptotes and the parameters."""

_ABOUT: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("dims", "items", "models"), (int, "a whole number above 0")),
    "abilities": (list, "an entry with name, named and direction for each ability"),
    "sha256": (dict, f"the hashes of {', '.join(TABLES)}"),
    **dict.fromkeys(("study", "title", "fit", "engine", "how"), (str, "a text")),
    "simulated": (bool, "true or false"),
    "provenance": (dict, "a mapping with benchmirt, commit, data_hash and config_sha256"),
}
"""What ``calibration.json`` must hold."""
_ANEW = "Take the folder as the finished study wrote it"
_LARGEST = 1e3  # logits, or standard deviations of ability: what no fit comes near to, and float32 bears
_SINGULAR = 1e-12  # least eigenvalue of a matrix of correlations
_AGREE = 1e-6


@dataclass(frozen=True)
class Calibration:
    """Item parameters in the canonical frame, the axes that are shown, and the tables of the folder.

    Attributes
    ----------
    items
        Names of the J items with parameters.
    a, d
        Discriminations (J, K) and intercepts (J,), in logits.
    item_cov
        Posterior covariances over (a_1..a_K, d), shape (J, K + 1, K + 1).
    floor, ceiling
        Asymptotes (J,), in [0, 1].
    T
        Unit vectors of the shown abilities as columns, shape (K, K), turned so that more is better.
    labels, named
        Names of the abilities, and whether the evidence earned each.
    item_table, model_table, benchmark_table
        Rows of the three tables without the columns of the parameters; ``item_table`` has all items of the study, those
        with parameters first to last in the order of `items`.
    about
        The rest of ``calibration.json``.
    """

    items: tuple[str, ...]
    a: Floats
    d: Floats
    item_cov: Floats
    floor: Floats
    ceiling: Floats
    T: Floats
    labels: tuple[str, ...]
    named: tuple[bool, ...]
    item_table: pd.DataFrame = field(repr=False)
    model_table: pd.DataFrame = field(repr=False)
    benchmark_table: pd.DataFrame = field(repr=False)
    about: Mapping[str, Any] = field(repr=False)

    @property
    def dims(self) -> int:
        """Number of abilities K."""
        return int(self.a.shape[1])

    @property
    def phi(self) -> Floats:
        """Correlations of the shown abilities, shape (K, K)."""
        return ident.correlation(self.T)

    @property
    def simulated(self) -> bool:
        """Whether the study's data are simulated."""
        return bool(self.about["simulated"])

    @property
    def origin(self) -> dict[str, Any]:
        """What results made with the calibration say of it: study, fit, versions and hashes of its tables."""
        told = ("study", "title", "fit", "engine", "how", "sha256", "provenance")
        return {key: self.about.get(key) for key in told}

    def benchmark_of(self) -> NDArray[np.str_]:
        """Benchmark of each item with parameters, shape (J,)."""
        calibrated = self.item_table["calibrated"].to_numpy(dtype=bool)
        return self.item_table["benchmark"].to_numpy(dtype=str)[calibrated]

    def ability(self, wanted: str | int, *, where: str) -> int:
        """Return the place of an ability that is called by its number (from 1) or its name.

        Raises
        ------
        InputError
            If there is none.
        """
        text = str(wanted)
        for index, label in enumerate(self.labels):
            if text == str(index + 1) or text.casefold() == label.casefold():
                return index
        near = nearest(text, self.labels)
        raise InputError(
            "the calibration has no such ability",
            where=where,
            found=f'"{text}"',
            expected="all, "
            + ", ".join(f'{index + 1} ("{label}")' for index, label in enumerate(self.labels)),
            todo=f'Did you mean "{near}"?' if near else None,
        )


def _names(dims: int) -> list[str]:
    return [*(f"a_{k + 1}" for k in range(dims)), "d"]


def _columns(prefix: str, values: Floats, cov: Floats) -> dict[str, Floats]:
    """Columns of parameters (J, K + 1) over (a_1..a_K, d) and of the upper triangles of their covariances (J, K + 1, K + 1)."""
    names = _names(values.shape[1] - 1)
    columns = {f"{prefix}{name}": values[:, k] for k, name in enumerate(names)}
    for k, one in enumerate(names):
        for m in range(k, len(names)):
            columns[f"{prefix}cov_{one}_{names[m]}"] = cov[:, k, m]
    return columns


def _item_rows(calibration: Calibration) -> pd.DataFrame:
    """Return ``items.csv.gz``: facts, asymptotes, and parameters in the canonical and in the display frame."""
    outward = np.linalg.inv(calibration.T).T
    shown = np.column_stack([calibration.a @ outward, calibration.d])
    parameters = {
        "floor": calibration.floor,
        "ceiling": calibration.ceiling,
        **_columns("", np.column_stack([calibration.a, calibration.d]), calibration.item_cov),
        **_columns("display_", shown, ident.rotate_item_cov(calibration.item_cov, outward)),
    }
    fitted = pd.DataFrame({"question_id": list(calibration.items), **parameters})
    return calibration.item_table.merge(fitted, on="question_id", how="left", validate="one_to_one")


def write(calibration: Calibration, folder: str | Path) -> list[Path]:
    """Write a calibration; return its files. ``calibration.json``, which holds the hashes of the others, comes last."""
    home = Path(folder)
    tables = (_item_rows(calibration), calibration.model_table, calibration.benchmark_table)
    for name, table in zip(TABLES, tables, strict=True):
        write_csv(table, home / name)
    about = {
        **calibration.about,
        "format": FORMAT,
        "version": VERSION,
        "dims": calibration.dims,
        "items": len(calibration.items),
        "models": len(calibration.model_table),
        "abilities": [
            {"ability": k + 1, "name": label, "named": calibration.named[k], "direction": calibration.T[:, k]}
            for k, label in enumerate(calibration.labels)
        ],
        "ability_correlations": calibration.phi,
        "sha256": {name: sha256_of(home / name) for name in TABLES},
    }
    write_text(_readme(about), home / "README.md")
    write_json(about, home / "calibration.json")
    return [home / name for name in FILES]


def _readme(about: Mapping[str, Any]) -> str:
    """Say in words what the folder holds and how it was made."""
    simulated = "**These data are simulated; no real model was measured.**\n\n" if about["simulated"] else ""
    named = ", ".join(
        f"{entry['ability']}. {entry['name']}" + ("" if entry["named"] else " (not named by the evidence)")
        for entry in about["abilities"]
    )
    made = about["provenance"]
    extended = "".join(
        f"Extended by {', '.join(one['benchmarks'])}: {one['items']:,} items, through {one['models']:,} models that both know. "
        "What was known before stayed as it was.\n\n"
        for one in about.get("extended", [])
    )
    return f"""# Calibration of the study "{about["study"]}"

{simulated}{about["title"]}: {about["items"]:,} items calibrated on {about["models"]:,} models, abilities: {named}.
Fit "{about["fit"]}" by {about["engine"]}, {about["how"]}.

- `items.csv.gz`: a row per item. `a_k`, `d` and `cov_*` are posterior means and covariances in the canonical frame, in
  which the study's models have mean 0 and second moment I; `display_*` are the same for the abilities shown. The
  probability of a right answer is floor + (ceiling - floor) / (1 + exp(-(a . theta + d))). Items without parameters did
  not tell the study's models apart.
- `models.csv`: the study's models on the abilities shown, with 95 % intervals, and how well each record fits
  (`person_fit`).
- `benchmarks.csv`: items of each benchmark, and `own_deviation`, by how many logits models deviate on it (standard
  deviation) from what their abilities on the other benchmarks say.
- `calibration.json`: frames, names, population, versions and the hashes of these files.

To place a model, run `snakemake score` with `score: {{calibration: THIS FOLDER, models: [...]}}`.

{extended}Made by benchmirt {made["benchmirt"]}, commit {made["commit"]}; data {made["data_hash"]}, configuration
{made["config_sha256"]}.
"""


def read(folder: str | Path) -> Calibration:
    """Read a calibration and check that its files belong together.

    Raises
    ------
    InputError
        If the folder is no calibration, is of another version, or a file was changed since it was written; if a parameter cannot
        be, or two of the files tell different things, though the hashes are right.
    """
    home = Path(folder)
    about = _about(home)
    dims = int(about["dims"])
    items, models, benchmarks = (
        sheets.read(home / name, key, columns, what="table of a calibration", todo=_ANEW)
        for name, (key, columns) in zip(TABLES, _contents(dims), strict=True)
    )
    rows = items.frame
    rows["options"] = rows["options"].astype("Int16")
    names = _names(dims)
    _check_parameters(items, names)
    _check_models(models, dims)
    _check_benchmarks(items, benchmarks)
    for what, count in (("items", int(rows["calibrated"].sum())), ("models", len(models.frame))):
        if about[what] != count:
            raise InputError(
                f"this file of a calibration and its table of {what} do not agree",
                file=home / "calibration.json",
                where=what,
                found=str(about[what]),
                expected=str(count),
                todo=_ANEW,
            )
    fitted = rows[rows["calibrated"]]
    T = np.array([entry["direction"] for entry in about["abilities"]], dtype=np.float64).T
    values = fitted[names].to_numpy(dtype=np.float64)
    cov = _covariances(fitted, names)
    _check_frames(items, T, values, cov)
    parameters = [name for name in rows if name not in (*ITEM_FACTS, "calibrated")]
    return Calibration(
        items=tuple(fitted["question_id"]),
        a=values[:, :-1],
        d=values[:, -1],
        item_cov=cov,
        floor=fitted["floor"].to_numpy(dtype=np.float64),
        ceiling=fitted["ceiling"].to_numpy(dtype=np.float64),
        T=T,
        labels=tuple(entry["name"] for entry in about["abilities"]),
        named=tuple(entry["named"] for entry in about["abilities"]),
        item_table=rows.drop(columns=parameters),
        model_table=models.frame,
        benchmark_table=benchmarks.frame,
        about=about,
    )


def _contents(dims: int) -> tuple[tuple[str, dict[str, Column]], ...]:
    """Return the names and the columns of the three tables."""
    text, told = Column(), Column(empty=True)
    maybe = Column(empty=True, needed=False)
    count, wide = Column("whole", low=0), Column("number", -_LARGEST, _LARGEST)
    share = Column("number", 0, 1, empty=True)
    parameter = Column("number", -_LARGEST, _LARGEST, empty=True)
    variance = Column("number", -(_LARGEST**2), _LARGEST**2, empty=True)
    empty = np.zeros((0, dims + 1)), np.zeros((0, dims + 1, dims + 1))
    shown = Column("number", empty=True)  # what bounds it is that it agrees with the other frame
    items = {
        **dict.fromkeys(ITEM_FACTS, told),
        **dict.fromkeys(("question_id", "benchmark"), text),
        "options": Column("whole", 2, 1000, empty=True),
        "inverted": Column("truth"),
        "observed": count,
        "mean": share,
        "calibrated": Column("truth"),
        "floor": share,
        "ceiling": share,
        **{name: variance if "cov_" in name else parameter for name in _columns("", *empty)},
        **dict.fromkeys(_columns("display_", *empty), shown),
    }
    abilities = [f"ability_{k + 1}" for k in range(dims)]
    bounds = [f"{name}_{end}" for name in abilities for end in ("low", "high")]
    models = {
        "model": text,
        "family": maybe,
        "lineage": told,
        "observed": replace(count, needed=False),
        "mean": replace(share, needed=False),
        **dict.fromkeys(abilities, wide),
        **dict.fromkeys(bounds, replace(wide, empty=True, needed=False)),
        "person_fit": shown,
    }
    benchmarks = {
        "benchmark": text,
        "category": maybe,
        "items": count,
        "calibrated": count,
        "own_deviation": Column("number", 0, _LARGEST, empty=True),
        "deviation_models": replace(count, needed=False),
    }
    return ("question_id", items), ("model", models), ("benchmark", benchmarks)


def _covariances(fitted: pd.DataFrame, names: Sequence[str]) -> Floats:
    """Return the covariances of the items' parameters, shape (J, K + 1, K + 1)."""
    cov = np.empty((len(fitted), len(names), len(names)))
    for k, one in enumerate(names):
        for m in range(k, len(names)):
            cov[:, k, m] = cov[:, m, k] = fitted[f"cov_{one}_{names[m]}"]
    return cov


def _check_parameters(items: Typed, names: Sequence[str]) -> None:
    """Check that every calibrated item has parameters that can be, and no other item has any."""
    rows = items.frame
    calibrated = rows["calibrated"].to_numpy(dtype=bool)
    parameters = [name for name in _contents(len(names) - 1)[0][1] if name not in (*ITEM_FACTS, "calibrated")]

    def stop(bad: NDArray[np.bool_], column: str, what: str, expected: str | None = None) -> None:
        if bad.any():
            place = int(bad.argmax())
            value = rows[column].iloc[place]
            raise items.fault(
                f"the {what.format(rows['question_id'].iloc[place])}",
                place,
                column,
                found="nothing" if pd.isna(value) else f"{value}",
                expected=expected,
            )

    cannot = 'calibrated question "{}" has a parameter that cannot be'
    for name in parameters:
        known = rows[name].notna().to_numpy()
        stop(calibrated & ~known, name, cannot, "a number")
        stop(~calibrated & known, name, 'question "{}" has a parameter and is not said to be calibrated')
    for name in names:
        spread = f"cov_{name}_{name}"
        stop(calibrated & ~(rows[spread] > 0).to_numpy(), spread, cannot, "a number above 0")
    stop(calibrated & ~(rows["floor"] < rows["ceiling"]).to_numpy(), "floor", cannot, "less than the ceiling")
    cov = _covariances(rows[calibrated], names)
    scale = np.sqrt(np.einsum("jpp->jp", cov))
    least = np.linalg.eigvalsh(cov / (scale[:, :, None] * scale[:, None, :])).min(axis=1)
    bad = np.zeros(len(rows), dtype=bool)
    bad[calibrated] = ~(least > _SINGULAR)
    stop(
        bad,
        f"cov_{names[0]}_{names[-1]}",
        'calibrated question "{}" has covariances that cannot be together',
        "the columns cov_* of a row to make up a positive definite matrix",
    )
    untold = rows["mean"].isna().to_numpy() & (rows["observed"] > 0).to_numpy()
    stop(untold, "mean", 'question "{}" has outcomes and no mean', "a number from 0 to 1")


def _check_frames(items: Typed, T: Floats, values: Floats, cov: Floats) -> None:
    """Check that the parameters say the same in both frames, which the directions of the abilities join."""
    rows = items.frame
    places = np.flatnonzero(rows["calibrated"].to_numpy(dtype=bool))
    outward = np.linalg.inv(T).T
    shown = np.column_stack([values[:, :-1] @ outward, values[:, -1]])
    for name, column in _columns("display_", shown, ident.rotate_item_cov(cov, outward)).items():
        told = rows[name].to_numpy(dtype=np.float64)[places]
        bad = ~(np.abs(told - column) <= _AGREE * (1 + np.abs(column)))
        if bad.any():
            place = int(bad.argmax())
            raise items.fault(
                "the parameters of the canonical frame and of the one shown do not agree",
                int(places[place]),
                name,
                found=f"{told[place]:.6g}",
                expected=f"{column[place]:.6g}, by the other columns and the directions in calibration.json",
            )


def _check_models(models: Typed, dims: int) -> None:
    """Check that no interval ends before it begins."""
    rows = models.frame
    for k in range(dims):
        low, high = f"ability_{k + 1}_low", f"ability_{k + 1}_high"
        if low not in rows or high not in rows:
            continue
        bad = (rows[low] > rows[high]).to_numpy()
        if bad.any():
            place = int(bad.argmax())
            raise models.fault(
                "an interval ends before it begins",
                place,
                low,
                found=str(rows[low].iloc[place]),
                expected=f"at most {rows[high].iloc[place]}, which is {high}",
            )


def _check_benchmarks(items: Typed, benchmarks: Typed) -> None:
    """Check that the benchmarks of the items are those of the table of benchmarks, with as many items."""
    rows, known = items.frame, benchmarks.frame
    missing = ~rows["benchmark"].isin(known["benchmark"]).to_numpy()
    if missing.any():
        place = int(missing.argmax())
        raise items.fault(
            "this benchmark is not in benchmarks.csv",
            place,
            "benchmark",
            found=f'"{rows["benchmark"].iloc[place]}"',
            expected="one of " + ", ".join(known["benchmark"].head(8)) + (", ..." if len(known) > 8 else ""),
        )
    groups = rows.groupby("benchmark")["calibrated"]
    for column, counts in (("items", groups.size()), ("calibrated", groups.sum())):
        own = counts.reindex(known["benchmark"]).fillna(0).to_numpy(dtype=np.int64)
        bad = known[column].to_numpy() != own
        if bad.any():
            place = int(bad.argmax())
            raise benchmarks.fault(
                "items.csv.gz holds another number of questions of this benchmark",
                place,
                column,
                found=str(known[column].iloc[place]),
                expected=str(own[place]),
            )


def _about(home: Path) -> dict[str, Any]:
    """Read ``calibration.json`` and check the version and the hashes that it names."""
    path = home / "calibration.json"
    if not path.is_file():
        raise InputError(
            "this folder holds no calibration.json",
            file=home,
            todo="Name the folder that a finished study wrote as <results>/calibration",
        )
    about: dict[str, Any] = read_json(path, _ANEW)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError("this is not a calibration", file=path, expected=f'"format": "{FORMAT}"')
    if about.get("version") != VERSION:
        raise InputError(
            "the calibration is of another version",
            file=path,
            found=str(about.get("version")),
            expected=str(VERSION),
            todo="Read it with the release that made it, or make it anew",
        )
    _check_about(about, path)
    entries = about["abilities"]
    _check_axes(entries, path)
    hashes = about["sha256"]
    if not (isinstance(hashes, dict) and set(hashes) == set(TABLES)):
        raise InputError(
            "", file=path, where="sha256", expected=f"the hashes of {', '.join(TABLES)}", todo=_ANEW
        )
    for name, digest in hashes.items():
        if not (home / name).is_file():
            raise InputError(
                "this file of the calibration is missing", file=home / name, todo="Copy the whole folder"
            )
        if sha256_of(home / name) != digest:
            raise InputError(
                "this file is not the one that the calibration was written with",
                file=home / name,
                todo="Copy the whole folder anew",
            )
    return about


def _check_about(about: Mapping[str, Any], path: Path) -> None:
    """Check that ``calibration.json`` holds what it must, of the kind that it must be."""
    for key, (kind, expected) in _ABOUT.items():
        if key not in about:
            raise InputError(
                "this file of a calibration is not whole", file=path, expected=f'"{key}"', todo=_ANEW
            )
        value = about[key]
        good = isinstance(value, kind)
        if isinstance(value, int) and kind is int:
            good = not isinstance(value, bool) and value > 0
        if key == "abilities":
            good = good and len(value) == about["dims"]
            good = good and all(
                isinstance(entry, dict)
                and {"name", "direction"} <= set(entry)
                and isinstance(entry.get("named"), bool)
                and entry.get("ability", place) == place
                for place, entry in enumerate(value, start=1)
            )
        if key == "provenance":
            good = good and {"benchmirt", "commit", "data_hash", "config_sha256"} <= set(value)
        if not good:
            raise InputError(
                "this file of a calibration is not whole",
                file=path,
                where=key,
                found=json.dumps(value, ensure_ascii=False)[:80],
                expected=expected,
                todo=_ANEW,
            )
    for key, kind in (("asymptotes", bool), ("extended", list)):
        if key in about and not isinstance(about[key], kind):
            raise InputError(
                "",
                file=path,
                where=key,
                found=json.dumps(about[key], ensure_ascii=False)[:80],
                expected="true or false" if kind is bool else "a list",
                todo=_ANEW,
            )


def _check_axes(entries: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Check that the abilities have names of their own and directions that are independent unit vectors."""
    names = [entry["name"] for entry in entries]
    if not all(isinstance(name, str) and name for name in names) or len(set(names)) < len(names):
        raise InputError(
            "", file=path, where="abilities: name", expected="a name of its own each", todo=_ANEW
        )
    try:
        T = np.array([entry["direction"] for entry in entries], dtype=np.float64)
    except (TypeError, ValueError):
        T = np.zeros((0, 0))
    good = T.shape == (len(names), len(names)) and bool(np.isfinite(T).all())
    if not good or abs(np.linalg.norm(T, axis=1) - 1).max() > 1e-6 or np.linalg.matrix_rank(T) < len(names):
        raise InputError(
            "",
            file=path,
            where="abilities: direction",
            expected=f"{len(names)} independent unit vectors of {len(names)} numbers",
            todo=_ANEW,
        )
