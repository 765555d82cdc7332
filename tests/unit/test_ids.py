from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmirt.ids import slug, unslug


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
