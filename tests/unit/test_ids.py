from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmirt.ids import code_point, lookalike, slug, unseen, unslug


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
def test_slugs_are_reversible_and_safe(name: str) -> None:
    text = slug(name)
    assert unslug(text) == name
    assert re.fullmatch(r"[A-Za-z0-9_.~=-]+", text)
    assert not text.startswith(".")


def test_known_slugs() -> None:
    assert slug("meta-llama/Llama 3@fp8") == "meta-llama=2FLlama=203=40fp8"
    assert slug("..") == "=2E."
    assert slug("a=b%c") == "a=3Db=25c"


@pytest.mark.parametrize("bad", ["", "a/b", "a=2", "=41", ".x", "a%20b"])
def test_what_is_no_slug_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="slug"):
        unslug(bad)


def test_an_empty_name_has_no_slug() -> None:
    with pytest.raises(ValueError, match="empty"):
        slug("")


@pytest.mark.parametrize(
    "character",
    [
        "\t",
        "\n",
        "\x7f",
        "\x85",
        "\xa0",
        "\xad",
        "\u200b",
        "\u200d",
        "\u202e",
        "\u2066",
        "\u2028",
        "\ufeff",
        "\ufe0f",
        "\u3164",
        "\U000e0041",
    ],
    ids=lambda one: f"{ord(one):04X}",
)
def test_what_cannot_be_seen_is_found(character: str) -> None:
    assert unseen(f"a b{character}é") == character
    assert code_point(character).startswith(f"U+{ord(character):04X}, ")


def test_what_can_be_seen_is_fine() -> None:
    for name in ("a b", "é", "e\u0301", "模型", "😀", "a/b@c", ""):
        assert unseen(name) is None


def test_names_in_two_unicode_forms_look_alike() -> None:
    assert lookalike(["a", "\u00e9", "b", "e\u0301"]) == (1, 3)
    assert lookalike(["a", "a", "\u00e9", "e"]) is None
