"""Judge one claim: what it needs, its parts, the dimension it rests on, and the record of it all."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmirt import provenance
from benchmirt.claims import outside, selection, spec
from benchmirt.claims.gate import missing_dimension
from benchmirt.claims.inputs import Results, Unavailable
from benchmirt.claims.record import PartResult
from benchmirt.claims.verdict import (
    CANNOT_TEST,
    DIFFERS,
    EXPLORATORY,
    MIN_MODELS,
    NOT_COMPARED,
    REPRODUCED,
    combine,
    combine_published,
    number,
)
from benchmirt.errors import InputError, nearest

if TYPE_CHECKING:
    from benchmirt.config import Study

__all__ = ["evaluate"]

_TOLD = 3


def _lacking(needs: spec.Selection, results: Results, *, usable: bool) -> str | None:
    """Say what of the needed items the study lacks, or (if they must be usable) has too few of."""
    items = results.items()
    for column, values in needs.items():
        reason = selection.absent(items, {column: values})
        if reason is not None:
            return reason
        for value in values if usable else ():
            reason = selection.too_few(items, selection.mask(items, {column: (value,)}))
            if reason is not None:
                return f"{column} {value}: {reason}"
    return None


SAME, SIMULATED, OTHER = "same", "simulated", "other"
"""Whose data a published figure is about: these, those that these simulate, or other models and questions."""


def _has_figure(claim: spec.Claim) -> bool:
    """Say whether anything was published that a claim can be compared with."""
    return (
        bool(claim.published_text)
        or claim.published_value is not None
        or any(part.published is not None or part.published_region is not None for part in claim.parts)
    )


def _published_data(claim: spec.Claim, study: Study, unlike: str | None) -> str | None:
    """Return whose data the published figures are about; None without any.

    Figures that say what they need are about these data only if the study has all of it, is real, and is at full size.
    """
    if not _has_figure(claim):
        return None
    if unlike is not None:
        return OTHER
    if study.simulated:
        return SIMULATED
    return OTHER if claim.published_needs and not study.published_size else SAME


def _uncompared(claim: spec.Claim, unlike: str | None) -> str | None:
    """Say why nothing is compared with a published figure; None if something is."""
    if not _has_figure(claim):
        return "there is no published figure"
    return None if unlike is None else f"the published figure is about other data: {unlike}"


def _rests_on(claim: spec.Claim, results: Results) -> int:
    """Return the number of the last ability that a claim speaks of; 0 if it speaks of none."""
    last = 0
    for wanted in (one for part in claim.parts for one in (part.ability, part.against) if one is not None):
        try:
            last = max(last, results.ability(wanted).index + 1)
        except Unavailable:  # the parts that speak of it say why
            continue
    return last


def _gated(part: PartResult, gate: Unavailable, results: Results) -> PartResult:
    """Return a part whose verdict is settled by the dimension that it rests on, unless another reason goes first.

    With fewer than 30 models a part whose dimension could not be tested is exploratory, like all others.
    """
    other = part.blocked
    if other is not None and (other.absent or (gate.verdict == EXPLORATORY and other.verdict == CANNOT_TEST)):
        return part
    models, lineages = results.size()
    if gate.verdict == CANNOT_TEST and (part.models or models) < MIN_MODELS:
        # there would be no verdict anyway: what the estimate is can be shown
        gate = Unavailable(str(gate), EXPLORATORY)
    return replace(part, blocked=gate, models=part.models or models, lineages=part.lineages or lineages)


def evaluate(claim_id: str, results_dir: str | Path, study: Study) -> dict[str, Any]:
    """Judge a claim from the results of a study.

    Parameters
    ----------
    claim_id
        Its id in the claims file.
    results_dir
        The results folder, with the files that :func:`benchmirt.claims.spec.inputs_of` lists.
    study
        The checked study.

    Returns
    -------
    dict
        The record; see :mod:`benchmirt.claims.record`.

    Raises
    ------
    InputError
        If there is no such claim, or a file is missing.
    """
    claims = spec.load(study)
    if claim_id not in claims:
        near = nearest(claim_id, claims)
        raise InputError(
            "no claim has this id",
            found=claim_id,
            todo=f'Did you mean "{near}"?' if near else f"Known: {', '.join(claims)}",
        )
    claim = claims[claim_id]
    results = Results(results_dir, study)
    kind = importlib.import_module(f"benchmirt.claims.{claim.kind}")
    # a count is about all items, usable or not
    lacking = _lacking(claim.needs, results, usable=claim.kind != "count")
    gate, rests_on = None, claim.needs_dimension or 0
    if lacking is not None:
        reason = Unavailable(lacking, absent=True)
        parts = [PartResult(part=part, blocked=reason, as_published_why=lacking) for part in claim.parts]
    else:
        parts = kind.evaluate(claim, results)
        rests_on = claim.needs_dimension or _rests_on(claim, results)
        if rests_on:
            gate = missing_dimension(results.stability, rests_on)
    unlike = _lacking(claim.published_needs, results, usable=False)
    uncompared = _uncompared(claim, unlike)
    if uncompared is not None and lacking is None:
        parts = [
            part
            if part.blocked is not None and part.blocked.absent
            else replace(part, as_published_why=uncompared, compares=False)
            for part in parts
        ]
    if gate is not None:
        parts = [_gated(part, gate, results) for part in parts]
    record = _record(claim, results, parts, kind.METHODS, gate, rests_on)
    record["check_values"] = outside.checked(claim, results)
    record["published"]["data"] = _published_data(claim, study, unlike)
    return record


_VERBS = {
    "not reproduced": ("does not hold", "do not hold"),
    "cannot test": ("cannot be tested", "cannot be tested"),
    "exploratory": ("is shown without a verdict", "are shown without a verdict"),
    "inconclusive": ("is open", "are open"),
}


def _reasons(parts: Sequence[PartResult], word: str) -> str:
    """Tell in one sentence which parts have a verdict, and why, the first few in full."""
    chosen = [part for part in parts if part.verdict == word]
    told = "; ".join(f"{part.part.name}: {part.why}" for part in chosen[:_TOLD])
    more = f"; and {len(chosen) - _TOLD} more" if len(chosen) > _TOLD else ""
    verb = _VERBS[word][len(chosen) > 1]
    return f"{len(chosen)} of {len(parts)} parts {verb}: {told}{more}"


def _why(parts: Sequence[PartResult], verdict: str, gate: Unavailable | None) -> str:
    """Say in one sentence why the claim as a whole has its verdict."""
    if not parts:
        return "this study has nothing that the claim speaks of"
    if gate is not None and any(part.blocked is gate for part in parts) and verdict == gate.verdict:
        return str(gate)
    if len({part.why for part in parts}) == 1:
        return parts[0].why
    if verdict == REPRODUCED:
        return f"all {len(parts)} parts hold"
    return _reasons(parts, verdict)


def _published(claim: spec.Claim, parts: Sequence[PartResult], method: str) -> dict[str, Any]:
    """Return the as-published answer."""
    compared = [part for part in parts if part.as_published_verdict is not None]
    verdict = combine_published(part.as_published_verdict or "" for part in compared)
    at_odds = [part for part in compared if part.as_published_verdict == verdict]
    head = next(iter(at_odds or parts), None)
    why = ""
    if verdict == NOT_COMPARED:
        why = next(
            (part.as_published_why for part in parts if part.as_published_why), "there is no published figure"
        )
    elif verdict == CANNOT_TEST:
        reasons = list(dict.fromkeys(part.as_published_why for part in at_odds if part.as_published_why))
        why = "; ".join(reasons[:_TOLD]) or "nothing came out"
    elif verdict == DIFFERS:
        verb = "differ" if len(at_odds) > 1 else "differs"
        why = f"{len(at_odds)} of {len(compared)} parts {verb}: " + "; ".join(
            _compared(part) for part in at_odds[:_TOLD]
        )
        why += f"; and {len(at_odds) - _TOLD} more" if len(at_odds) > _TOLD else ""
    known = [part for part in parts if part.as_published is not None]
    text = "; ".join(_stated(part) for part in known[:6]) + ("; ..." if len(known) > 6 else "")
    return {
        "method": method,
        "estimate": None if head is None else head.as_published,
        "text": text or "nothing came out",
        "verdict": verdict,
        "why": why,
        "parts": [
            {
                "name": part.part.name,
                "estimate": part.as_published,
                "published": part.published,
                "verdict": part.as_published_verdict,
                "why": part.as_published_why,
            }
            for part in parts
        ],
    }


def _stated(part: PartResult) -> str:
    assert part.as_published is not None
    ending = " degrees" if part.part.unit == "degrees" else ""
    return f"{part.part.name} {number(part.as_published, part.part.unit)}{ending}"


def _compared(part: PartResult) -> str:
    if part.published is not None and part.pairs:
        here, there = (
            " and ".join(number(one, part.part.unit) for one in side)
            for side in zip(*part.pairs, strict=True)
        )
        return f"{part.part.name}: {here} against {there}"
    if part.published is not None:
        return f"{_stated(part)} against {number(part.published, part.part.unit)}"
    region = part.part.published_region or part.region
    return _stated(part) + (f", not {region.text}" if region is not None else "")


def _record(
    claim: spec.Claim,
    results: Results,
    parts: Sequence[PartResult],
    methods: dict[str, str],
    gate: Unavailable | None,
    rests_on: int,
) -> dict[str, Any]:
    """Put the record of a claim together."""
    verdict = combine(part.verdict for part in parts)
    # the part shown for the whole claim is the first that has the claim's verdict
    head = next((part for part in parts if part.verdict == verdict), None)
    figure = None if head is None else head.published
    if figure is None and len(parts) == 1:
        figure = claim.published_value
    judged = [part for part in parts if part.models > 0]
    models, lineages = results.size()
    masks = [part.chosen for part in parts if part.chosen is not None]
    items = int(np.logical_or.reduce(masks).sum()) if masks else 0
    study = results.study
    return {
        "claim": claim.id,
        "kind": claim.kind,
        "statement": claim.statement,
        "unit": "" if head is None else head.part.unit,
        "needs_dimension": rests_on or None,
        "published": {"text": claim.published_text, "value": figure},
        "as_published": _published(claim, parts, methods["as_published"]),
        "corrected": {
            "method": methods["corrected"],
            "headline": None if head is None else head.part.name,
            "estimate": None if head is None else head.estimate,
            "interval": None if head is None or head.interval is None else list(head.interval),
            "level": None if head is None else head.level,
            "interval_kind": None if head is None else head.interval_kind,
            "region": None if head is None or head.region is None else head.region.as_dict(),
            "verdict": verdict,
            "why": _why(parts, verdict, gate),
            "parts": [part.as_dict() for part in parts],
        },
        "sample": {
            "models": min((part.models for part in judged), default=models),
            "items": items,
            "lineages": min((part.lineages for part in judged), default=lineages),
        },
        "why": claim.why,
        "figures": [f"claim_{claim.id}"],
        "tables": [f"claims/{claim.id}.csv", "claims/claims.csv"],
        "simulated": study.simulated,
        "provenance": provenance.record(config_sha256=study.config_sha256, data_hash=results.data_hash),
    }
