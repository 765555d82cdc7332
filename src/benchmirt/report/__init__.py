"""The page of a study: verdicts first, then the evidence, made from result files alone.

This front module imports nothing heavy, so that the workflow can ask for the page's inputs while it is parsed.
`gather` reads the results, `story` puts them into plain words, `tables` into rows, `page` into HTML (`page.html`,
`page.css`). The page holds everything that it shows, needs no script, and is the same bytes each time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmirt import figures
from benchmirt.ids import slug

if TYPE_CHECKING:
    from os import PathLike

__all__ = [
    "POLICIES",
    "PROFILES",
    "TABLES",
    "benchmark_page",
    "benchmark_pages",
    "build",
    "inputs",
    "profile_inputs",
]

POLICIES = ("honest", "published")
TABLES = (
    "summary.json",
    "items.parquet",
    "models.parquet",
    "coverage.csv",
    "conflicts.csv",
    "missingness.csv",
)
"""Files of a matrix that the data card is made from."""
PROFILES = ("benchmarks.csv", "groups.csv", "subsets.csv", "items.csv")
"""Tables of ``<results>/profiles/``."""

_LONGEST = 200  # letters of a file's name; file systems allow 255


def benchmark_page(name: str) -> str:
    """Return where the page of a benchmark lies, seen from the report's page; a very long name is cut and gets a hash."""
    safe = slug(name)
    if len(safe) > _LONGEST:
        safe = f"{safe[:_LONGEST]}~{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return f"benchmark/{safe}.html"


def profile_inputs() -> list[str]:
    """Return the files that the pages of benchmarks are made from, relative to the results folder."""
    return [
        *(f"profiles/{table}" for table in PROFILES),
        "dimensions/corrected/consensus.nc",
        "dimensions/item_statistics.csv",
        "dimensions/labels.json",
        "dimensions/stability.json",
        "matrix/honest/missingness.csv",
        "matrix/honest/summary.json",
    ]


def inputs(fits: Sequence[Mapping[str, Any]], claims: Mapping[str, str]) -> list[str]:
    """Return the files that the page is made from, relative to the results folder.

    Parameters
    ----------
    fits
        Rows of the fits table (`benchmirt.config.fits_table`): `fit` and `seeds` are read.
    claims
        Kind of each claim by claim id, in the order of the page.
    """
    drawn = [f"figures/{name}.{suffix}" for name in figures.names(claims) for suffix in ("svg", "png")]
    records = [f"claims/{claim}.json" for claim in claims]
    matrix = [
        f"matrix/{policy}/{file}"
        for policy in POLICIES
        for file in ("items.parquet", "models.parquet", "coverage.csv", "summary.json")
    ]
    runs = [f"fits/{row['fit']}/seed{seed}.nc" for row in fits for seed in row["seeds"]]
    evidence = [
        "dimensions/checks.csv",
        "dimensions/corrected/consensus.nc",
        "dimensions/item_statistics.csv",
        "dimensions/labels.json",
        "dimensions/leave_one_out.nc",
        "dimensions/model_statistics.csv",
        "dimensions/number.json",
        "dimensions/reproducibility.csv",
        "dimensions/stability.json",
        "profiles/benchmarks.csv",
    ]
    return [*drawn, *records, "claims/claims.csv", "data_card.json", *matrix, "fits.csv", *runs, *evidence]


def build(
    results_dir: str | PathLike[str],
    study: Any,
    out_file: str | PathLike[str],
    configfiles: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> Path:
    """Write the page of a study.

    Parameters
    ----------
    results_dir
        The results folder.
    study
        Object with attributes ``name``, ``title`` and ``simulated`` (a `benchmirt.config.Study`); its ``results``
        is the folder as it is written in commands.
    out_file
        Where the page goes, usually ``<results>/report/index.html``.
    configfiles
        Files given by ``--configfile``, which the commands on the page repeat.
    overrides
        What ``--config`` set, as ``key=value``, for the same commands.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        If a file that the page is made from is missing or malformed.
    """
    from benchmirt.report import gather, page

    return page.write(gather.gather(Path(results_dir), study, configfiles, overrides), Path(out_file))


def benchmark_pages(
    results_dir: str | PathLike[str],
    study: Any,
    out_folder: str | PathLike[str],
    configfiles: Sequence[str] = (),
    overrides: Sequence[str] = (),
) -> list[Path]:
    """Write a page for each benchmark of a study into a folder, which holds nothing else afterwards.

    Parameters
    ----------
    results_dir, study, configfiles, overrides
        As for :func:`build`.
    out_folder
        Usually ``<results>/report/benchmark``.

    Returns
    -------
    list of Path
        The pages, in the order of the benchmarks.

    Raises
    ------
    InputError
        If a file that the pages are made from is missing or malformed.
    """
    from benchmirt.report import profile

    found = profile.gather(Path(results_dir), study, configfiles, overrides)
    return profile.write(found, Path(out_folder))
