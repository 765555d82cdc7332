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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmirt import identification as ident
from benchmirt.errors import InputError, nearest
from benchmirt.files import read_json, sha256_of, write_csv, write_json, write_text

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

_ABOUT = ("dims", "abilities", "sha256", "study", "title", "simulated", "provenance")
_ANEW = "Take the folder as the finished study wrote it"

_TEXTS = (
    *("question_id", "benchmark", "category", "subcategory_one", "testlet", "content_hash", "scored_as"),
    *("model", "family", "lineage"),
)


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
        If the folder is no calibration, is of another version, or a file was changed since it was written.
    """
    home = Path(folder)
    about = _about(home)
    dims = int(about["dims"])
    tables = [_table(home / name) for name in TABLES]
    rows = tables[0]
    _check_items(rows, dims, home / TABLES[0])
    for table, needed, name in zip(tables[1:], _needed(dims), TABLES[1:], strict=True):
        _check_columns(table, needed, home / name)
    fitted = rows[rows["calibrated"]]
    names = _names(dims)
    cov = np.empty((len(fitted), dims + 1, dims + 1))
    for k, one in enumerate(names):
        for m in range(k, dims + 1):
            cov[:, k, m] = cov[:, m, k] = fitted[f"cov_{one}_{names[m]}"]
    parameters = [name for name in rows if name not in (*ITEM_FACTS, "calibrated")]
    return Calibration(
        items=tuple(fitted["question_id"]),
        a=fitted[names[:-1]].to_numpy(dtype=np.float64),
        d=fitted["d"].to_numpy(dtype=np.float64),
        item_cov=cov,
        floor=fitted["floor"].to_numpy(dtype=np.float64),
        ceiling=fitted["ceiling"].to_numpy(dtype=np.float64),
        T=np.array([entry["direction"] for entry in about["abilities"]], dtype=np.float64).T,
        labels=tuple(entry["name"] for entry in about["abilities"]),
        named=tuple(entry["named"] for entry in about["abilities"]),
        item_table=rows.drop(columns=parameters),
        model_table=tables[1],
        benchmark_table=tables[2],
        about=about,
    )


def _needed(dims: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns of numbers, after the name that comes first, of ``models.csv`` and ``benchmarks.csv``."""
    abilities = tuple(f"ability_{k + 1}" for k in range(dims))
    return ("model", *abilities, "person_fit"), ("benchmark", "own_deviation")


def _refuse_lacking(table: pd.DataFrame, needed: Sequence[str], path: Path) -> None:
    """Stop at the first column that a table lacks."""
    for name in needed:
        if name not in table:
            raise InputError(
                "this table of a calibration lacks a column", file=path, expected=f'"{name}"', todo=_ANEW
            )


def _check_columns(table: pd.DataFrame, needed: Sequence[str], path: Path) -> None:
    """Check that a table has a column of names, each once, and columns of numbers."""
    _refuse_lacking(table, needed, path)
    names = table[needed[0]]
    if names.isna().any() or names.duplicated().any():
        twice = names[names.duplicated()]
        raise InputError(
            "",
            file=path,
            where=f'column "{needed[0]}"',
            found=f'"{twice.iloc[0]}" twice' if len(twice) else "a row without a name",
            expected="each name once",
            todo=_ANEW,
        )
    for name in needed[1:]:
        if not pd.api.types.is_numeric_dtype(table[name]):
            raise InputError("", file=path, where=f'column "{name}"', expected="numbers", todo=_ANEW)


def _check_items(rows: pd.DataFrame, dims: int, path: Path) -> None:
    """Check that every calibrated item has its parameters, as numbers that can be."""
    names = _names(dims)
    spreads = [f"cov_{name}_{name}" for name in names]
    wanted = [
        *names,
        *_columns("", np.zeros((0, dims + 1)), np.zeros((0, dims + 1, dims + 1))),
        "floor",
        "ceiling",
    ]
    _check_columns(rows, ("question_id", "observed", "mean"), path)
    _refuse_lacking(rows, ("benchmark", "calibrated", *wanted), path)
    if rows["calibrated"].dtype != bool:
        raise InputError("", file=path, where='column "calibrated"', expected="True or False", todo=_ANEW)
    fitted = rows[rows["calibrated"]]
    for name in wanted:
        if not pd.api.types.is_numeric_dtype(fitted[name]):
            raise InputError("", file=path, where=f'column "{name}"', expected="numbers", todo=_ANEW)
        bad = ~np.isfinite(fitted[name].to_numpy(dtype=np.float64))
        if name in spreads:
            bad |= ~(fitted[name].to_numpy(dtype=np.float64) > 0)
        if name == "floor":
            bad |= ~((fitted["floor"] >= 0) & (fitted["floor"] < fitted["ceiling"])).to_numpy(dtype=bool)
        if name == "ceiling":
            bad |= (fitted["ceiling"] > 1).to_numpy(dtype=bool)
        if bad.any():
            first = fitted[bad].iloc[0]
            raise InputError(
                f'the calibrated question "{first["question_id"]}" has a parameter that cannot be',
                file=path,
                where=f'column "{name}"',
                found=str(first[name]),
                todo=_ANEW,
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
    lacking = [key for key in _ABOUT if key not in about]
    entries = about.get("abilities") or []
    good = isinstance(entries, list) and all(
        isinstance(entry, dict) and {"name", "named", "direction"} <= set(entry) for entry in entries
    )
    if lacking or not good or len(entries) != about["dims"]:
        raise InputError(
            "this file of a calibration is not whole",
            file=path,
            expected=f'"{lacking[0]}"'
            if lacking
            else "an entry with name, named and direction for each ability",
            todo=_ANEW,
        )
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


def _table(path: Path) -> pd.DataFrame:
    """Read a table; names stay texts, and numbers are those that were written to the last digit."""
    try:
        table = pd.read_csv(path, dtype="str", keep_default_na=False, na_values=[""])
    except (ValueError, EOFError, OSError) as error:
        raise InputError(
            "", file=path, found=str(error).splitlines()[0], expected="a table", todo=_ANEW
        ) from error
    for name in table.columns.difference(list(_TEXTS)):
        try:
            table[name] = _typed(table[name]) if name != "options" else table[name].astype("Int16")
        except ValueError as error:
            found = str(error).rpartition(": ")[2]
            raise InputError(
                "", file=path, where=f'column "{name}"', found=found, expected="one kind of value", todo=_ANEW
            ) from error
    return table


def _typed(column: pd.Series) -> pd.Series:
    """Turn texts into booleans, whole numbers or numbers; pandas' own reader may lose the last digit."""
    known = column.dropna()
    if known.isin(["True", "False"]).all() and len(known):
        return column == "True"
    if known.str.fullmatch("-?[0-9]+").all() and len(known) == len(column):
        return column.astype("int64")
    return column.map(float, na_action="ignore").astype("float64")
