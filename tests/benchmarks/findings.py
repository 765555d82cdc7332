"""What finished studies found, as Markdown: a row per study, how well it is predicted, then a row per claim that it could test.

    python tests/benchmarks/findings.py results/zeroeval results/korbench ... [--parts] [--markdown findings.md]

Nothing is computed: everything stands in the studies' claims and tests of dimensions. Both answers stand there, by the procedure
of the published study and corrected, with its 95 % interval; ``--``: none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

COUNTED = ("reproduced", "not reproduced", "inconclusive", "exploratory", "cannot test")
FACTS = (
    "study",
    "models",
    "lineages",
    "items",
    "dimensions, new lineages",
    "dimensions, eigenvalues",
    "come back",
    *COUNTED,
)
PREDICTED = {
    "published": {
        "benchmark_mean": "benchmark mean",
        "published_1": "1-D",
        "published_1_matched": "1-D, priors of 2-D",
        "published_2": "2-D",
        "rasch": "Rasch",
    },
    "cells": {
        "benchmark_mean": "benchmark mean",
        "mirt_1": "1-D",
        "mirt_2": "2-D",
        "rasch": "Rasch",
        "rasch_benchmark": "Rasch per benchmark",
    },
}
"""Way of holding answers out -> method -> what it is called."""
WAYS = {"published": "as published", "cells": "same priors"}
CLAIMS = ("claim", "statement", "as published", "corrected", "the claim holds where", "verdict")


def read(path: Path) -> Any:
    """Return what a JSON file holds."""
    return json.loads(path.read_text("utf-8"))


def records(results: Path) -> list[Mapping[str, Any]]:
    """Return the claims' records of a study, in the order of its table of claims."""
    import pandas as pd

    order = pd.read_csv(results / "claims" / "claims.csv", usecols=["claim"])["claim"]
    return [read(results / "claims" / f"{claim}.json") for claim in order]


def _held(number: Mapping[str, Any]) -> tuple[str, str]:
    held, eigen = number.get("heldout") or {}, number.get("eigen") or {}
    most = "at least " if eigen.get("at_least") else ""
    chosen = [found.get("chosen") for found in (held, eigen)]
    fewest, left = ("--" if one is None else str(one) for one in chosen)
    return fewest, f"{most}{left}"


def _back(stability: Mapping[str, Any]) -> str:
    """Say how far each dimension agrees over halves, and whether that is more than chance gives."""
    said = []
    for one in stability.get("dimensions") or []:
        verdict = {True: "yes", False: "no", None: "not tested"}[one.get("passes")]
        said.append(
            f"{one['dimension']}: {verdict} ({one['congruence_mean']:.2f}, r {one['ability_r_mean']:.2f})"
        )
    return "; ".join(said) or "could not be judged"


def facts(results: Path, found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the cells of a study's row."""
    import pandas as pd

    models = pd.read_parquet(results / "matrix" / "honest" / "models.parquet")
    items = pd.read_parquet(results / "matrix" / "honest" / "items.parquet", columns=["kept"])
    kept = models[models["kept"]]
    yield results.name
    yield str(len(kept))
    yield str(kept["lineage"].nunique())
    yield f"{int(items['kept'].sum()):,}"
    yield from _held(read(results / "dimensions" / "number.json"))
    yield _back(read(results / "dimensions" / "stability.json"))
    for verdict in COUNTED:
        yield str(sum(one["corrected"]["verdict"] == verdict for one in found))


def predicted(results: Path) -> Iterator[str]:
    """Yield the accuracies of a study's row, means over benchmarks."""
    import pandas as pd

    scores = pd.read_csv(results / "prediction" / "scores.csv", dtype={"fold": str})
    scores = scores[
        (scores["fold"] == "all") & (scores["benchmark"] == "macro") & (scores["metric"] == "accuracy")
    ]
    known = scores.set_index(["split", "method"])["value"]
    yield results.name
    for way, methods in PREDICTED.items():
        for method in methods:
            value = known.get((way, method))
            yield "--" if value is None else f"{value:.3f}".removeprefix("0")


def _as_published(corrected: Mapping[str, Any]) -> float | None:
    """Return what the published procedure says of the part that decides a claim."""
    for part in corrected["parts"]:
        if (part["estimate"], part["interval"]) == (corrected["estimate"], corrected["interval"]):
            value: float | None = part["as_published"]
            return value
    return None


def claims(found: Sequence[Mapping[str, Any]], parts: bool) -> Iterator[list[str]]:
    """Yield a row per claim that could be tested, with `parts` one per part too where it has several."""
    from benchmirt.claims.overview import shown

    for record in found:
        corrected = record["corrected"]
        if corrected["verdict"] == "cannot test":
            continue
        region = corrected["region"]
        yield [
            record["claim"],
            record["statement"],
            shown({"estimate": _as_published(corrected), "interval": None}, record["unit"]),
            shown(corrected, record["unit"]),
            region["text"] if region else "",
            f"**{corrected['verdict']}**",
        ]
        if parts and len(corrected["parts"]) > 1:
            for part in corrected["parts"]:
                yield [
                    "",
                    part["name"],
                    shown({"estimate": part["as_published"], "interval": None}, part["unit"]),
                    shown(part, part["unit"]),
                    part["region"]["text"] if part["region"] else "",
                    part["verdict"],
                ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path, nargs="+", help="folders of results")
    parser.add_argument("--parts", action="store_true", help="a row per part of a claim as well")
    parser.add_argument("--markdown", type=Path, help="file to write [standard output]")
    given = parser.parse_args()

    studies = {results: records(results) for results in given.results}
    text = table(FACTS, [[*facts(*study)] for study in studies.items()]) + "\n"
    header = [
        "study",
        *(f"{WAYS[way]}: {name}" for way, names in PREDICTED.items() for name in names.values()),
    ]
    text += f"\n{table(header, [[*predicted(results)] for results in studies])}\n"
    for results, found in studies.items():
        text += f"\n## {results.name}\n\n{table(CLAIMS, [*claims(found, given.parts)])}\n"
    if given.markdown:
        given.markdown.write_text(text, "utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
