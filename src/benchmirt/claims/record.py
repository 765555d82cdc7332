"""The record of a claim: the same shape for every kind, as JSON, and its parts as a small table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmirt import files
from benchmirt.claims.spec import Part
from benchmirt.claims.verdict import (
    CANNOT_TEST,
    DIFFERS,
    EXPLORATORY,
    MATCHES,
    MIN_MODELS,
    Bounds,
    Region,
    judge,
    number,
)

if TYPE_CHECKING:
    import pandas as pd

    from benchmirt.claims.inputs import Ability, Unavailable

__all__ = ["PartResult", "flat", "read", "write"]


@dataclass(frozen=True)
class PartResult:
    """What came out for one part of a claim.

    Attributes
    ----------
    part
        The part as it was asked for.
    region
        Where it is true (for counts: the whole number that is expected).
    estimate, interval, interval_kind
        The corrected answer; None where there is none.
    blocked
        Why it cannot be judged, which then settles the verdict.
    told
        The reason of a verdict that the interval gave, if it needs other words than that.
    note
        What a reader should know besides.
    chosen, models, lineages
        Usable items (shape (J,), over all items of the honest matrix), and the number of models and lineages
        that the answer rests on.
    needs_models
        Whether fewer than 30 models make the answer exploratory (a count has no sampling error).
    published
        The published figure.
    as_published, as_published_why
        What the published way gives here, and why that cannot be compared (empty if it can).
    pairs
        Numbers here and as published that have to meet one by one, instead of `as_published` and `published`.
    compares
        Whether the as-published number is compared with a published one.
    extra
        Further entries of the record.
    """

    part: Part
    region: Region | None = None
    estimate: float | None = None
    interval: Bounds | None = None
    interval_kind: str | None = None
    level: float | None = None
    blocked: Unavailable | None = None
    told: str = ""
    note: str = ""
    ability: Ability | None = None
    against: Ability | None = None
    chosen: np.ndarray | None = None
    models: int = 0
    lineages: int = 0
    needs_models: bool = True
    published: float | None = None
    as_published: float | None = None
    as_published_why: str = ""
    pairs: tuple[tuple[float, float], ...] = ()
    compares: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)

    def block(self, reason: Unavailable) -> PartResult:
        """Return the same answer with a reason that settles its verdict."""
        return replace(self, blocked=reason)

    @property
    def verdict(self) -> str:
        """The corrected verdict."""
        if self.blocked is not None and self.blocked.verdict == CANNOT_TEST:
            return CANNOT_TEST
        if self.needs_models and self.models < MIN_MODELS:
            return EXPLORATORY
        if self.blocked is not None:
            return self.blocked.verdict
        return CANNOT_TEST if self.region is None else judge(self.interval, self.region)

    @property
    def why(self) -> str:
        """The reason of the verdict in one sentence, with the note."""
        verdict = self.verdict
        few = self.needs_models and self.models < MIN_MODELS
        if self.blocked is not None and not (few and verdict == EXPLORATORY):
            text = str(self.blocked)
        elif verdict == EXPLORATORY:
            text = f"{self.models} models are fewer than {MIN_MODELS}: shown without a verdict"
            text += f" ({self.blocked})" if self.blocked is not None else ""
        elif self.interval is None or self.region is None:
            text = "there is no interval"
        elif self.told:
            text = self.told
        else:
            low, high = (number(end, self.part.unit) for end in self.interval)
            place = {
                "reproduced": "lies wholly in the region",
                "not reproduced": "lies wholly outside the region",
            }.get(verdict, "reaches across the border of the region")
            text = f"the interval from {low} to {high} {place} ({self.region.text})"
        return f"{text}; {self.note}" if self.note else text

    @property
    def as_published_verdict(self) -> str | None:
        """Whether the published way gives the published figure; None where nothing is compared."""
        if not self.compares:
            return None
        if self.as_published is None or self.as_published_why:
            return CANNOT_TEST
        if self.published is not None and self.part.published_region is None:
            pairs = self.pairs or ((self.as_published, self.published),)
            near = all(abs(here - there) <= self.part.tolerance + 1e-9 for here, there in pairs)
            return MATCHES if near else DIFFERS
        region = self.part.published_region or self.region
        if region is None:
            return CANNOT_TEST
        return MATCHES if region.holds(self.as_published) else DIFFERS

    def as_dict(self) -> dict[str, Any]:
        """Return the part as it stands in the record."""
        part = self.part
        verdict = self.as_published_verdict
        return {
            "name": part.name,
            "statistic": part.statistic,
            "unit": part.unit,
            "select": {column: list(values) for column, values in part.select.items()},
            "except": {column: list(values) for column, values in part.excepted.items()},
            "ability": None if self.ability is None else self.ability.index + 1,
            "ability_name": part.ability if self.ability is None else self.ability.name,
            "against": None if self.against is None else self.against.index + 1,
            "against_name": part.against if self.against is None else self.against.name,
            "estimate": self.estimate,
            "interval": None if self.interval is None else list(self.interval),
            "interval_kind": self.interval_kind,
            "level": self.level,
            "region": None if self.region is None else self.region.as_dict(),
            "verdict": self.verdict,
            "why": self.why,
            "items": None if self.chosen is None else int(self.chosen.sum()),
            "models": self.models,
            "lineages": self.lineages,
            "published": self.published,
            "as_published": self.as_published,
            "as_published_verdict": verdict,
            "as_published_why": self.as_published_why,
            **self.extra,
        }


# -- files --------------------------------------------------------------------------------------------------


def _words(select: Mapping[str, Any]) -> str:
    return "; ".join(f"{column}={'|'.join(values)}" for column, values in select.items())


def _row(record: Mapping[str, Any], part: Mapping[str, Any], row: str, **more: object) -> dict[str, Any]:
    region, interval = part.get("region") or {}, part.get("interval") or (None, None)
    return {
        "claim": record["claim"],
        "row": row,
        "part": part["name"],
        "select": _words(part["select"]),
        "except": _words(part["except"]),
        "statistic": part["statistic"],
        "unit": part["unit"],
        "ability": part["ability_name"],
        "against": part["against_name"],
        "estimate": part["estimate"],
        "low": interval[0],
        "high": interval[1],
        "region_low": region.get("low"),
        "region_high": region.get("high"),
        "verdict": part["verdict"],
        "published": part["published"],
        "as_published": part["as_published"],
        "as_published_verdict": part["as_published_verdict"],
        "items": part["items"],
        "models": part["models"],
        "lineages": part["lineages"],
        **more,
    }


def flat(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a record's table.

    ``row`` says what a row is: ``part``, a ``cell`` of a table that a part compares, an ``angle`` of a
    selection to one ability, a ``direction`` (the mean discriminations of a selection, one column per
    dimension), what the kind's own table says, or a ``check value`` from outside (the last two with columns of their own).
    """
    for part in record["corrected"]["parts"]:
        yield _row(record, part, "part")
        for table in filter(None, (part.get("table"), part.get("curve"))):
            for row in table["rows"]:
                yield {"claim": record["claim"], "row": table["row"], **row}
        for cell in part.get("cells", ()):
            yield _row(
                record,
                {
                    **part,
                    "select": cell["select"],
                    "except": {},
                    "ability_name": cell["ability"],
                    "estimate": cell["estimate"],
                    "interval": cell["interval"],
                    "published": cell["published"],
                    "as_published": cell["as_published"],
                    "as_published_verdict": None,
                    "verdict": cell["within"],
                    "items": cell["items"],
                    "models": cell["models"],
                    "lineages": cell["lineages"],
                    "region": None,
                    "unit": "r",
                },
                "cell",
            )
        sides = part.get("sides") or ([part] if part.get("direction") else [])
        for side in sides:
            blank = {
                **part,
                "select": side["select"],
                "except": side["except"],
                "items": side["items"],
                "region": None,
                "verdict": None,
                "published": None,
                "as_published": None,
                "as_published_verdict": None,
                "against_name": None,
            }
            vector = {f"direction_{k + 1}": value for k, value in enumerate(side["direction"])}
            yield _row(
                record,
                {**blank, "ability_name": None, "statistic": "direction", "unit": "", "estimate": None,
                 "interval": None},
                "direction",
                **vector,
            )  # fmt: skip
            for angle in side["angles"].values():
                yield _row(
                    record,
                    {
                        **blank,
                        "estimate": angle["estimate"],
                        "interval": angle["interval"],
                        "ability_name": angle["name"],
                        "statistic": "angle",
                    },
                    "angle",
                )
    for check in record["check_values"]:
        yield {"claim": record["claim"], "row": "check value", **check}


def write(record: Mapping[str, Any], json_path: str | Path, csv_path: str | Path) -> None:
    """Write a record as JSON and its parts, cells and directions as a table."""
    import pandas as pd

    files.write_json(record, json_path)
    rows = list(flat(record))
    table: pd.DataFrame = pd.DataFrame(rows)
    if not rows:
        table = pd.DataFrame(columns=["claim", "row", "part"])
    files.write_csv(table, csv_path)


def read(path: str | Path) -> dict[str, Any]:
    """Read a record."""
    found: dict[str, Any] = files.read_json(path)
    return found
