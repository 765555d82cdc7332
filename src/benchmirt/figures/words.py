"""How numbers, intervals, verdicts and names are written, on figures and on the page alike."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmirt.claims.verdict import MIN_MODELS

MINUS = "\u2212"
NOTHING = "\u2013"
ELLIPSIS = "\u2026"

UNITS = ("r", "degrees", "count", "share", "congruence", "log loss", "gain", "")
_UNIT_OF_KIND = {
    "count": "count",
    "correlation": "r",
    "direction": "degrees",
    "contrast": "degrees",
    "stability": "congruence",
    "dimensionality": "",
    "shortform": "share",
    "pair": "share",
    "mix": "congruence",
    "label": "r",
    "prediction": "gain",
}


@dataclass(frozen=True)
class Verdict:
    """How one verdict is shown: never by colour alone.

    Attributes
    ----------
    word
        The verdict as the records spell it.
    symbol
        One character that goes with it.
    colour
        Colour of marks (Okabe-Ito, hex).
    marker
        Matplotlib marker.
    css
        Class name on the page.
    meaning
        One sentence for the legend.
    """

    word: str
    symbol: str
    colour: str
    marker: str
    css: str
    meaning: str


VERDICTS: dict[str, Verdict] = {
    v.word: v
    for v in (
        Verdict("matches", "\u2713", "#009E73", "o", "good", "the number comes out as it was published"),
        Verdict("differs", "\u2717", "#D55E00", "X", "bad", "the number does not come out as published"),
        Verdict(
            "reproduced",
            "\u2713",
            "#009E73",
            "o",
            "good",
            "the whole interval lies where the claim is true",
        ),
        Verdict(
            "not reproduced",
            "\u2717",
            "#D55E00",
            "X",
            "bad",
            "the whole interval lies where the claim is false, or what the claim speaks of is not there",
        ),
        Verdict(
            "inconclusive",
            "?",
            "#E69F00",
            "D",
            "open",
            "the interval reaches across the border: these data cannot tell",
        ),
        Verdict(
            "exploratory",
            "\u25cb",
            "#0072B2",
            "s",
            "early",
            f"fewer than {MIN_MODELS} models, or a trial run: the number is shown, no verdict is given",
        ),
        Verdict(
            "cannot test",
            NOTHING,
            "#6B6B6B",
            "_",
            "none",
            "this study lacks the data that the claim is about",
        ),
        Verdict(
            "not compared",
            NOTHING,
            "#6B6B6B",
            "_",
            "none",
            "there is no published figure, or it is about questions that this study lacks",
        ),
    )
}
_UNKNOWN = Verdict("no verdict", NOTHING, "#6B6B6B", "_", "none", "no verdict was given")


def verdict(word: str | None) -> Verdict:
    """Look of a verdict; an unknown word keeps its text and is shown in grey."""
    if word in VERDICTS:
        return VERDICTS[word]
    if not word:
        return _UNKNOWN
    return Verdict(word, NOTHING, _UNKNOWN.colour, _UNKNOWN.marker, "none", "")


def published_about(record: Mapping[str, Any]) -> str:
    """Say whose data a claim's published figure is about, where these are others; else an empty text."""
    return {"simulated": "about real models", "other": "about other models and questions"}.get(
        str((record.get("published") or {}).get("data")), ""
    )


def span_name(kind: str) -> str:
    """Name what stands around the estimate of a kind of claim: an interval, or what is no confidence interval."""
    return {"dimensionality": "range of the two methods", "stability": "95\u00a0% of the splits"}.get(
        kind, "95\u00a0% interval"
    )


def fit_name(name: str) -> str:
    """Name a fit in words: `published` is the fit as published, `dims-k2` the one with two dimensions."""
    size = re.fullmatch(r"dims-k(\d+)", name)
    if size:
        return f"with {plural(int(size[1]), 'dimension')}"
    return {"published": "as published", "nuts": "check by sampling", "testlets": "with testlets"}.get(
        name, name
    )


def is_number(value: object) -> bool:
    """Return True for a finite number (booleans are not numbers)."""
    if isinstance(value, bool) or value is None:
        return False
    try:
        return math.isfinite(float(value))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False


def count(value: object) -> str:
    """Write a whole number with thousands separated: 34,301."""
    if not is_number(value):
        return NOTHING
    rounded = round(float(value))  # type: ignore[arg-type]
    return f"{abs(rounded):,}" if rounded >= 0 else f"{MINUS}{abs(rounded):,}"


def number(value: object, digits: int = 2) -> str:
    """Write a number in the house style: .85, −.06, 1.00, 12.35, 34,301.00; a dash where there is none.

    Parameters
    ----------
    value
        A number, or None or NaN for none.
    digits
        Digits after the point.
    """
    if not is_number(value):
        return NOTHING
    x = float(value)  # type: ignore[arg-type]
    text = f"{abs(x):,.{digits}f}"
    if digits and text.startswith("0."):
        text = text[1:]
    return MINUS + text if x < 0 and text.strip("0.,") else text


def quantity(value: object, unit: str = "") -> str:
    """Write a number in the style of its unit: degrees without decimals, counts whole, all else two decimals."""
    if not is_number(value):
        return NOTHING
    if unit == "degrees":
        return number(value, 0) + "\u00b0"
    if unit == "count":
        return count(value)
    if unit == "log loss":
        return number(value, 3)
    if unit == "gain":  # may be tiny, and its sign is what a claim asks for
        size = abs(float(value))  # type: ignore[arg-type]
        return number(value, next((digits for digits in (3, 4, 5) if round(size, digits)), 3))
    return number(value)


def interval(bounds: Sequence[object] | None, unit: str = "") -> str:
    """Write an interval such as [.80, .89]; an open end is written as … and nothing as a dash."""
    if bounds is None or len(bounds) != 2 or not any(is_number(b) for b in bounds):
        return NOTHING
    low, high = (quantity(b, unit) if is_number(b) else ELLIPSIS for b in bounds)
    return f"[{low}, {high}]"


def share(value: object) -> str:
    """Write a share as a percentage without decimals; tiny and nearly full shares are not rounded to 0 or 100 %."""
    if not is_number(value):
        return NOTHING
    x = float(value)  # type: ignore[arg-type]
    if 0 < x < 0.005:
        return "<1\u00a0%"
    if 0.995 < x < 1:
        return ">99\u00a0%"
    return f"{x:.0%}".replace("%", "\u00a0%")


def probability(value: object) -> str:
    """Write a p-value: p = .03, p < .001."""
    if not is_number(value):
        return f"p {NOTHING}"
    x = float(value)  # type: ignore[arg-type]
    return "p < .001" if x < 0.001 else f"p = {number(x, 3 if x < 0.1 else 2)}"


def plural(n: int, one: str, many: str | None = None) -> str:
    """`1 model`, `28 models`, `3,100 models`."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def listing(words: Sequence[str], conjunction: str = "and") -> str:
    """Join words: `a`, `a and b`, `a, b and c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]


def spelled(n: int) -> str:
    """Small whole numbers as words."""
    return _SMALL[n] if 0 <= n < len(_SMALL) else count(n)


def shorten(name: str, width: int) -> str:
    """Cut a long name in the middle, so that both the maker and the version stay readable.

    Parameters
    ----------
    name
        Any text.
    width
        Largest number of characters of the answer, at least 3.
    """
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 3
    return name[: width - 1 - tail] + ELLIPSIS + name[len(name) - tail :]


def _common(texts: Sequence[str]) -> str:
    """Return the longest beginning that all texts share."""
    first, last = min(texts), max(texts)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]


def shorten_all(names: Sequence[str], width: int) -> list[str]:
    """Cut long names so that names which differ still look different.

    Names that would be cut to the same text lose what they have in common at either end instead; where even
    that does not help they are numbered.

    Parameters
    ----------
    names
        Any texts.
    width
        Largest number of characters of each answer, at least 8.
    """
    out = [shorten(name, width) for name in names]
    for text in {t for t in out if out.count(t) > 1}:
        places = [i for i, t in enumerate(out) if t == text and names[i] != t]
        if len({names[i] for i in places}) < 2:
            continue
        group = [names[i] for i in places]
        start = len(_common(group))
        stop = len(_common([name[start:][::-1] for name in group]))
        for order, i in enumerate(places, start=1):
            core = names[i][start : len(names[i]) - stop or None]
            room = width - len(core) - 2
            head = names[i][: max(0, room // 2)] if start else ""
            tail = names[i][len(names[i]) - max(0, room - len(head)) :] if stop and room > len(head) else ""
            cut = f"{head}{ELLIPSIS if start > len(head) else ''}{core}{ELLIPSIS if stop > len(tail) else ''}{tail}"
            out[i] = cut if len(cut) <= width else f"{shorten(names[i], width - 4)} #{order}"
    return out


def shorten_end(text: str, width: int) -> str:
    """Cut a long sentence at its end, between words where that is possible."""
    if len(text) <= width:
        return text
    head = text[: width - 1]
    if " " in head[width // 2 :]:
        head = head[: head.rindex(" ")]
    return head.rstrip(" ,;:.") + ELLIPSIS


def _own_name(name: str) -> str:
    """Return a model's name without its organisation (`org/name`, `org__name`)."""
    own = name.rsplit("/", 1)[-1]
    if own == name and "__" in own.strip("_"):
        own = own.split("__", 1)[1]
    return own or name


def model_names(names: Sequence[str], width: int = 26) -> list[str]:
    """Return models' names for a picture, cut: without the organisation, unless two would look the same.

    Parameters
    ----------
    names
        Names of all models of the study, each once.
    width
        Largest number of characters of each answer, at least 8.
    """
    own = [_own_name(name) for name in names]
    met = Counter(own)
    told = [name if met[short] > 1 else short for name, short in zip(names, own, strict=True)]
    return shorten_all(told, width)


def capital(text: str) -> str:
    """First letter large, the rest untouched."""
    return text[:1].upper() + text[1:]


def unit_of(record: Mapping[str, Any], part: Mapping[str, Any] | None = None) -> str:
    """Return the unit of a claim's estimate, as stated or else guessed from the statistic and the kind."""
    for holder in (part or {}, record):
        unit = holder.get("unit")
        if unit in UNITS:
            return str(unit)
    statistic = str((part or {}).get("statistic") or "")
    if statistic.startswith("angle"):
        return "degrees"
    if statistic in ("r", "abs_r", "abs_r_difference", "r_difference"):
        return "r"
    return _UNIT_OF_KIND.get(str(record.get("kind")), "")


def region(bounds: Mapping[str, Any] | None, unit: str = "") -> str:
    """Write the region in which a claim is true: `above .00`, `−.50 or less`, `from .90 to .94`."""
    if not bounds:
        return NOTHING
    text = bounds.get("text")
    if text:
        return typeset(str(text))
    low, high = bounds.get("low"), bounds.get("high")
    if is_number(low) and is_number(high):
        if low == high:
            return f"exactly {quantity(low, unit)}"
        return f"from {quantity(low, unit)} to {quantity(high, unit)}"
    if is_number(low):
        return f"above {quantity(low, unit)}"
    if is_number(high):
        return f"below {quantity(high, unit)}"
    return NOTHING


def punctuate(text: str) -> str:
    """Write quotes, apostrophes and percentages in a text from elsewhere as everywhere else: “it’s 95 %”."""
    text = re.sub(r"(?<=\d)[ \u00a0]?%", "\u00a0%", text).replace("...", ELLIPSIS)
    text = re.sub(r"(?<![^\s(\[])\"(?=\S)", "“", text).replace('"', "”")
    return re.sub(r"(?<![^\s(\[“])'(?=\S)", "‘", text).replace("'", "’")


def typeset(text: str) -> str:
    """Write the numbers in a text from elsewhere as everywhere else, −.89 for -0.89 and for -.89; and punctuate it."""
    return re.sub(
        r"(?<![\w.,\u2212-])(-?)0?(\.\d+)(?!\.?\d)",
        lambda m: (MINUS if m.group(1) else "") + m.group(2),
        punctuate(text),
    )


def sentences(text: str) -> str:
    """Write each sentence of a text with a large first letter, a full stop at the end, and numbers in house style."""
    text = typeset(" ".join(text.split()))
    text = re.sub(r"(?<![A-Za-z]\.[A-Za-z])([.!?] )([a-z])", lambda m: m.group(1) + m.group(2).upper(), text)
    return capital(text) + ("" if not text or text[-1] in ".!?" + ELLIPSIS else ".")
