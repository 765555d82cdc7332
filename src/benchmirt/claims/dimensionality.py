"""How many dimensions there are, by two methods that share little.

Held-out log score on held-out lineages (one-standard-error rule) and eigenvalues of residuals against a
sequential parametric null. The claim is reproduced if both methods choose the claimed number, not reproduced
if both choose fewer or both choose more, and inconclusive otherwise: the answer is the range of the two.
"""

from __future__ import annotations

from typing import Any

from benchmirt.claims.gate import trial
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.record import PartResult
from benchmirt.claims.spec import Claim, Part
from benchmirt.claims.verdict import Region

__all__ = ["METHODS", "evaluate"]

METHODS = {
    "as_published": "random held-out cells: the largest number of dimensions that gains more than 1 point of macro "
    "accuracy",
    "corrected": "held-out log score on held-out lineages (one-standard-error rule) and eigenvalues of residuals "
    "against a parametric null",
}


def _chosen(number: dict[str, Any], method: str) -> int | None:
    entry = number.get(method) or {}
    found = entry.get("chosen")
    return None if found is None else int(found)


def _part(part: Part, results: Results) -> PartResult:
    number, (models, lineages) = results.number, results.size()
    expected = part.expected or 0
    kept = results.items()["kept"].to_numpy(dtype=bool)
    published = _chosen(results.prediction, "cellwise")
    base: dict[str, Any] = {
        "part": part,
        "region": Region.whole(expected, expected, f"exactly {expected}, by both methods"),
        "chosen": kept,
        "models": models,
        "lineages": lineages,
        "published": results.published_figure(part),
        "as_published": None if published is None else float(published),
        "as_published_why": "" if published is not None else "the number was not chosen over random cells",
    }
    held_out, eigen = _chosen(number, "heldout"), _chosen(number, "eigen")
    if held_out is None or eigen is None:
        missing = "held-out log score" if held_out is None else "residual eigenvalues"
        why = number.get("why_not") or f"the {missing} chose no number of dimensions"
        return PartResult(**base, blocked=Unavailable(str(why)))
    open_ended = bool((number.get("eigen") or {}).get("at_least"))
    ends = sorted((held_out, eigen))
    told = f"held-out log score: {held_out}, residual eigenvalues: {'at least ' if open_ended else ''}{eigen}"
    return PartResult(
        **base,
        blocked=trial(number.get("eigen") or {}),
        estimate=float(held_out),
        interval=(float(ends[0]), float(ends[1])),
        interval_kind="range of two methods, not a confidence interval",
        told=told,
        extra={"methods": {"heldout": held_out, "eigen": eigen, "eigen_at_least": open_ended}},
    )


def evaluate(claim: Claim, results: Results) -> list[PartResult]:
    """Judge the parts of a claim on the number of dimensions."""
    return [_part(part, results) for part in claim.parts]
