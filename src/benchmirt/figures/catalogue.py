"""Which figures there are and which files each is drawn from. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FORMATS = ("png", "svg", "pdf")

LABELS = "dimensions/labels.json"
CONSENSUS = "dimensions/corrected/consensus.nc"
ITEMS = "dimensions/item_statistics.csv"
MODELS = "dimensions/model_statistics.csv"
LEAVE_ONE_OUT = "dimensions/leave_one_out.nc"
BOOTSTRAP = "dimensions/bootstrap.nc"
NUMBER = "dimensions/number.json"
STABILITY = (
    "dimensions/stability.json",
    "dimensions/stability_splits.csv",
    "dimensions/stability_null.csv",
)
REPRODUCIBILITY = "dimensions/reproducibility.csv"
SHORTFORMS = tuple(f"shortforms/{table}.csv" for table in ("curve", "correlations", "weakening"))
PREDICTION = "prediction/prediction.json"


@dataclass(frozen=True)
class Entry:
    """One figure of the catalogue.

    Attributes
    ----------
    name
        Stem of the file in ``<results>/figures/``.
    title
        Its heading in words.
    inputs
        Files that it is drawn from, relative to the results folder.
    all_claims
        True if it is drawn from every claim's record too.
    category
        Heading under which Snakemake's own report lists it.
    caption
        File name of its caption in ``workflow/report/``.
    sheet
        Figures of one sheet are drawn together, since starting up takes longer than drawing; empty: alone.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    all_claims: bool = False
    category: str = "Dimensions"
    caption: str = ""
    sheet: str = ""


def _entries(*entries: Entry) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


CATALOGUE: dict[str, Entry] = _entries(
    Entry("verdicts", "Every claim with its interval and its region", (), True, "Verdicts", "verdicts.rst"),
    Entry(
        "abilities",
        "Where the models stand",
        (MODELS, LABELS, CONSENSUS),
        False,
        "Models",
        "abilities.rst",
        "dimensions",
    ),
    Entry(
        "item_map",
        "What the questions of each benchmark tell apart",
        (ITEMS, LABELS, CONSENSUS),
        False,
        "Items",
        "item_map.rst",
        "dimensions",
    ),
    Entry(
        "directions",
        "Which way each benchmark points",
        (ITEMS, LABELS, CONSENSUS, BOOTSTRAP, MODELS),
        False,
        "Items",
        "directions.rst",
        "dimensions",
    ),
    Entry(
        "correlations",
        "Benchmark averages and abilities",
        (MODELS, LABELS, LEAVE_ONE_OUT, CONSENSUS),
        False,
        "Dimensions",
        "correlations.rst",
        "dimensions",
    ),
    Entry(
        "eigenvalues",
        "How many dimensions: eigenvalues of what is left over",
        (NUMBER, "dimensions/number_eigenvalues.csv"),
        False,
        "Dimensions",
        "eigenvalues.rst",
        "tests",
    ),
    Entry(
        "heldout",
        "How many dimensions: prediction of held-out models",
        (NUMBER, PREDICTION),
        False,
        "Dimensions",
        "heldout.rst",
        "tests",
    ),
    Entry(
        "scores",
        "How well held-out answers are predicted",
        (PREDICTION, "prediction/scores.csv"),
        False,
        "Prediction",
        "scores.rst",
        "prediction",
    ),
    Entry(
        "calibration",
        "Whether predicted probabilities mean what they say",
        (PREDICTION, "prediction/calibration.csv"),
        False,
        "Prediction",
        "calibration.rst",
        "prediction",
    ),
    Entry(
        "stability",
        "Agreement of independent halves",
        STABILITY,
        False,
        "Dimensions",
        "stability.rst",
        "tests",
    ),
    Entry(
        "reproducibility",
        "Agreement over random seeds",
        (REPRODUCIBILITY,),
        False,
        "Dimensions",
        "reproducibility.rst",
        "tests",
    ),
    Entry(
        "coverage",
        "Which model was run on which benchmark",
        ("matrix/honest/coverage.csv",),
        False,
        "Data",
        "coverage.rst",
        "dimensions",
    ),
)

_BY_KIND: dict[str, tuple[str, ...]] = {
    "count": (),
    "dimensionality": (NUMBER, PREDICTION),
    "stability": (*STABILITY, REPRODUCIBILITY),
    "direction": (ITEMS, LABELS, CONSENSUS, BOOTSTRAP, MODELS),
    "contrast": (ITEMS, LABELS, CONSENSUS, BOOTSTRAP, MODELS),
    "correlation": (MODELS, LABELS, LEAVE_ONE_OUT, CONSENSUS),
    "shortform": (*SHORTFORMS, LABELS, CONSENSUS),
    "pair": (),
    "mix": (),
    "label": (),
    "prediction": (),
}

_CLAIM = "claim_"
_TOGETHER = 8


def names(claims: Iterable[str]) -> list[str]:
    """Names of all figures of a study: those of the catalogue, then one per claim id."""
    return [*CATALOGUE, *(_CLAIM + claim for claim in claims)]


def sheets(claims: Iterable[str]) -> dict[str, list[str]]:
    """Figures that are drawn together, by a name for them: the catalogue's by what they wait for, the claims' by eights.

    A sheet of all claims would be the last thing that a study waits for.
    """
    together: dict[str, list[str]] = {}
    for entry in CATALOGUE.values():
        together.setdefault(entry.sheet or entry.name, []).append(entry.name)
    for place, claim in enumerate(claims):
        together.setdefault(f"claims_{place // _TOGETHER + 1}", []).append(_CLAIM + claim)
    return together


def inputs(drawn: Sequence[str], claims: Mapping[str, str]) -> list[str]:
    """Files that figures are drawn from, relative to the results folder, each once.

    Parameters
    ----------
    drawn
        Some of `names(claims)`.
    claims
        Kind of each claim by claim id.

    Raises
    ------
    KeyError
        If there is no such figure.
    """
    return list(dict.fromkeys(path for name in drawn for path in _inputs(name, claims)))


def _inputs(name: str, claims: Mapping[str, str]) -> list[str]:
    if name in CATALOGUE:
        entry = CATALOGUE[name]
        records = [f"claims/{claim}.json" for claim in claims] if entry.all_claims else []
        return [*records, *entry.inputs]
    claim = claim_of(name)
    return [f"claims/{claim}.json", *_BY_KIND.get(claims[claim], ())]


def claim_of(name: str) -> str:
    """Claim id of a claim's figure; KeyError for another name."""
    if not name.startswith(_CLAIM):
        raise KeyError(name)
    return name.removeprefix(_CLAIM)


def caption(name: str) -> str:
    """File name of a figure's caption in ``workflow/report/``."""
    return CATALOGUE[name].caption if name in CATALOGUE else "claim.rst"


def category(name: str) -> str:
    """Heading under which Snakemake's report lists a figure."""
    return CATALOGUE[name].category if name in CATALOGUE else "Claims"
