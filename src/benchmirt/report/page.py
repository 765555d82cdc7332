"""Lay the findings out as one HTML page that holds all it shows."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from benchmirt.claims.verdict import is_trial
from benchmirt.errors import InputError
from benchmirt.figures import catalogue, claim, verdicts, words
from benchmirt.files import write_text
from benchmirt.report import captions, card, story, tables
from benchmirt.report.gather import Findings

HEAVY = 900_000
"""A drawing whose SVG file has more bytes than this is shown as PNG."""

SCALE = 1.32
"""How much larger than in print a figure is shown on a screen (CSS pixels at 96 per inch)."""


@dataclass(frozen=True)
class Picture:
    """A figure as the page holds it.

    Attributes
    ----------
    name
        Name of the figure.
    source
        Data address of the image.
    alt
        Text that stands in for it.
    width
        Width on the screen in pixels, if there is room.
    least
        Width below which it scrolls in its own box instead of shrinking, pixels.
    """

    name: str
    source: str
    alt: str
    width: int
    least: int


def picture(results: Path, name: str) -> Picture:
    """Read a figure of the results folder.

    Raises
    ------
    InputError
        If the figure has not been drawn.
    """
    drawing = results / "figures" / f"{name}.svg"
    if not drawing.exists():
        raise InputError("the figure has not been drawn", file=drawing, todo="Run the workflow first")
    text = drawing.read_text(encoding="utf-8")
    if len(text.encode()) > HEAVY:
        return picture_of(name, text, drawing.with_suffix(".png").read_bytes())
    return picture_of(name, text)


def picture_of(name: str, text: str, pixels: bytes | None = None) -> Picture:
    """Make a picture from the text of an SVG drawing, shown as these pixels (PNG) where they are given."""
    size = re.search(r'<svg[^>]* width="([\d.]+)pt"', text)
    points = float(size.group(1)) if size else 252.0
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    alt = html.unescape(found.group(1)) if found else name
    data, kind = (text.encode(), "svg+xml") if pixels is None else (pixels, "png")
    size_on_paper = points / 72 * 96
    return Picture(
        name,
        f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}",
        " ".join(alt.split()),
        round(size_on_paper * SCALE),
        0 if size_on_paper < 350 else round(size_on_paper * 0.92),
    )


def strip(record: Mapping[str, Any]) -> Markup:
    """Return a small drawing of where a claim's interval lies; empty where there is no estimate."""
    row = verdicts.row_of(record)
    if row.estimate is None:
        return Markup("")
    low, high = verdicts.limits(row)

    def at(value: float) -> str:
        share = (min(max(value, low), high) - low) / (high - low)
        return f"{6 + 168 * share:.1f}"

    look = words.verdict(row.verdict)
    pieces = ['<line x1="6" y1="20" x2="174" y2="20" class="axis"/>']
    if row.region is not None:
        start = float(at(low if row.region[0] is None else row.region[0]))
        stop = float(at(high if row.region[1] is None else row.region[1]))
        pieces.append(
            f'<rect x="{start:.1f}" y="3" width="{max(stop - start, 2.0):.1f}" height="17" class="region"/>'
        )
    if row.low is not None or row.high is not None:
        loose = " loose" if row.loose else ""
        left, right = at(low if row.low is None else row.low), at(high if row.high is None else row.high)
        pieces.append(f'<line x1="{left}" y1="11.5" x2="{right}" y2="11.5" class="span {look.css}{loose}"/>')
    pieces.append(f'<circle cx="{at(row.estimate)}" cy="11.5" r="3.6" class="dot {look.css}"/>')
    ends = (words.quantity(low, row.unit), words.quantity(high, row.unit))
    label = f"estimate {verdicts.said(row)}, on a scale from {ends[0]} to {ends[1]}"
    return Markup(
        '<svg class="strip" viewBox="0 0 180 31" role="img" aria-label="{label}">{pieces}'
        '<text x="6" y="30">{low}</text><text x="174" y="30" text-anchor="end">{high}</text></svg>'
    ).format(label=label, pieces=Markup("".join(pieces)), low=ends[0], high=ends[1])


_ICONS = {
    "good": '<path d="M3 8.5l3.2 3.5L13 4.5"/>',
    "bad": '<path d="M4 4l8 8M12 4l-8 8"/>',
    "open": '<path d="M5.2 6a2.8 2.8 0 1 1 4.3 2.4c-1 .6-1.5 1.1-1.5 2.1M8 13.4v.2"/>',
    "early": '<circle cx="8" cy="8" r="4.6"/>',
    "none": '<path d="M3.5 8h9"/>',
}


def badge(word: str) -> Markup:
    """Return a verdict as colour, symbol and word."""
    look = words.verdict(word)
    return Markup(
        '<span class="badge {css}"><svg viewBox="0 0 16 16" aria-hidden="true">{icon}</svg>{word}</span>'
    ).format(css=look.css, icon=Markup(_ICONS[look.css]), word=look.word)


@dataclass(frozen=True)
class ClaimSection:
    """All that the page shows of one claim.

    `silent` if neither column has anything to say; `about` says whose data the published figure is about, where these
    are others; `untestable` claims of a published study are only listed.
    """

    id: str
    anchor: str
    kind: str
    statement: str
    published: str
    as_published: tables.Column
    corrected: tables.Column
    region: str
    strip: Markup
    picture: Picture | None
    caption: str
    parts: list[dict[str, str]]
    part_columns: list[tuple[str, str]]
    evidence: list[tables.Evidence]
    why: str
    sample: str
    commands: list[str]
    files: list[str]
    needs: int | None
    silent: bool
    about: str
    untestable: bool


def section(found: Findings, record: Mapping[str, Any]) -> ClaimSection:
    """Return the section of a claim."""
    identifier = str(record["claim"])
    sample = record.get("sample") or {}
    sized = [
        words.plural(int(sample[key]), key.removesuffix("s"))
        for key in ("models", "lineages", "items")
        if words.is_number(sample.get(key)) and sample[key]
    ]
    drawn = claim.nothing(record) is None
    needs = record.get("needs_dimension")
    parts = tables.parts(record)
    drawn_as = "angles" if claim.angles_by_ability(record) else str(record.get("kind") or "")
    return ClaimSection(
        id=identifier,
        anchor="claim-" + re.sub(r"[^A-Za-z0-9_.-]", "-", identifier),
        kind=str(record.get("kind") or ""),
        statement=words.typeset(str(record.get("statement") or "")),
        published=tables.published(record),
        as_published=tables.column(record, "as_published"),
        corrected=tables.column(record, "corrected"),
        region=tables.region(record),
        strip=strip(record),
        picture=picture(found.results, f"claim_{identifier}") if drawn else None,
        caption=captions.of_kind(drawn_as, found.naming.dims),
        parts=parts,
        part_columns=tables.part_columns(parts, str(record.get("kind") or "")),
        evidence=tables.evidence(record),
        why=str(record.get("why") or ""),
        sample=words.listing(sized),
        commands=[
            tables.command(found, f"claims/{identifier}.json"),
            tables.command(found, f"figures/claim_{identifier}.svg"),
        ],
        files=[str(path) for path in record.get("tables") or []],
        needs=needs if isinstance(needs, int) else None,
        silent=not drawn
        and story.corrected_verdict(record) == "cannot test"
        and all((record.get(which) or {}).get("estimate") is None for which in ("as_published", "corrected")),
        about=words.published_about(record),
        untestable=story.untestable(record),
    )


def environment() -> Environment:
    """Return the template environment: everything that is not marked as HTML is escaped."""
    made = Environment(
        loader=PackageLoader("benchmirt.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        number=words.number,
        count=words.count,
        share=words.share,
        interval=words.interval,
        capital=words.capital,
        sentence=words.sentences,
        punctuate=words.punctuate,
        typeset=words.typeset,
    )
    made.globals.update(badge=badge, verdict=words.verdict, verdicts=words.VERDICTS, nothing=words.NOTHING)
    return made


def style() -> Markup:
    """Return the style sheet that all pages share."""
    return Markup(Path(__file__).with_name("page.css").read_text(encoding="utf-8"))


def render(found: Findings) -> str:
    """Return the page as HTML."""
    made = environment()
    pictures = {name: picture(found.results, name) for name in catalogue.CATALOGUE}
    reasons, dropped = tables.dropped_items(found)
    missing_reasons, missing = tables.missing(found)
    provenance = found.summaries["honest"].get("provenance") or {}
    shown_models = tables.models(found)
    about = {words.published_about(record) for record in found.records}
    sections = [section(found, record) for record in found.records]
    return made.get_template("page.html").render(
        found=found,
        style=style(),
        pictures=pictures,
        captions={name: captions.of_figure(name, found.naming.dims) for name in catalogue.CATALOGUE},
        titles={name: entry.title for name, entry in catalogue.CATALOGUE.items()},
        done=story.done(found),
        data=story.data(found),
        outcome=[story.claims(found), *story.dimensions(found), *story.axes(found), *story.strangers(found)],
        cautions=story.cautions(found),
        tally=story.tally(found.records),
        claims=[claim for claim in sections if not claim.untestable],
        untestable=[claim for claim in sections if claim.untestable],
        about=next(iter(about)) if len(about) == 1 else None,
        any_published=any((record.get("published") or {}).get("data") for record in found.records),
        dotted=any(verdicts.row_of(record).loose for record in found.records),
        unstable=story.unstable(found),
        tested=sum(story.corrected_verdict(record) != "cannot test" for record in found.records),
        trial=is_trial(found.stability),
        benchmarks=tables.benchmarks(found),
        models=shown_models,
        more_models=int(found.model_statistics["ability_1"].notna().sum()) - len(shown_models),
        stability=tables.stability(found),
        reproducibility=tables.reproducibility(found),
        checks=tables.checks(found),
        drop_reasons=reasons,
        dropped=dropped,
        dropped_models=tables.dropped_models(found),
        missing_reasons=missing_reasons,
        missing=missing,
        sources=tables.sources(found),
        card_sources=card.sources(found.card),
        conflicts=card.conflicts(found.card),
        missingness=card.missingness(found.card),
        directions=card.directions(found.card),
        rescoring=card.rescoring(found.card),
        roads=card.roads(found.card),
        cards=[tables.fit_card(fit) for fit in found.fits],
        page_command=tables.command(found, "report/index.html"),
        provenance=provenance,
        provenance_lines=tables.origins(provenance),
        versions=sorted((provenance.get("versions") or {}).items()),
    )


def write(found: Findings, out: Path) -> Path:
    """Write the page, whole or not at all."""
    write_text(render(found), out)
    return out
