"""Numbers, intervals and names are written in one way."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmirt.figures import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.85, ".85"),
        (-0.06, "−.06"),
        (-0.001, ".00"),
        (1.0, "1.00"),
        (0.999, "1.00"),
        (-12.345, "−12.35"),
        (34301, "34,301.00"),
        (None, "–"),
        (math.nan, "–"),
        (True, "–"),
    ],
)
def test_numbers_are_written_without_a_leading_zero(value: object, text: str) -> None:
    assert words.number(value) == text


def test_units_decide_on_digits() -> None:
    assert words.quantity(27.4, "degrees") == "27°"
    assert words.quantity(34301, "count") == "34,301"
    assert words.quantity(-3, "count") == "−3"
    assert words.quantity(0.5489, "log loss") == ".549"
    assert [words.quantity(x, "gain") for x in (0.0923, 0.0004, -0.00003, 0.0)] == [
        ".092",
        ".0004",
        "−.00003",
        ".000",
    ]


def test_intervals() -> None:
    assert words.interval([0.8, 0.892]) == "[.80, .89]"
    assert words.interval([None, 12.2], "degrees") == "[…, 12°]"
    assert words.interval(None) == words.interval([None, None]) == "–"


def test_shares_are_never_rounded_to_nothing_or_all() -> None:
    assert words.share(0.0004) == "<1\u00a0%"
    assert words.share(0.9996) == ">99\u00a0%"
    assert words.share(0) == "0\u00a0%"
    assert words.share(1) == "100\u00a0%"


def test_p_values() -> None:
    assert words.probability(0.0099) == "p = .010"
    assert words.probability(0.31) == "p = .31"
    assert words.probability(0.00001) == "p < .001"


@given(st.text(max_size=60), st.integers(8, 40))
def test_shortened_names_fit(name: str, width: int) -> None:
    short = words.shorten(name, width)
    assert len(short) <= width
    assert short == name or words.ELLIPSIS in short


@given(
    st.lists(st.text("ab/-@", min_size=1, max_size=40), min_size=2, max_size=12, unique=True),
    st.integers(10, 24),
)
def test_different_names_stay_different(names: list[str], width: int) -> None:
    short = words.shorten_all(names, width)
    assert len(short) == len(names)
    cut = [s for s, name in zip(short, names, strict=True) if s != name]
    assert len(set(cut)) == len(cut)


def test_the_part_that_differs_is_kept() -> None:
    names = [f"benchmark-number-{i}/with a long name" for i in range(12)]
    assert all(str(i) in short for i, short in enumerate(words.shorten_all(names, 24)))


def test_sentences() -> None:
    assert words.sentences("it holds. it really does") == "It holds. It really does."
    assert words.sentences("") == ""


def test_listing_and_plural() -> None:
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.plural(1, "model") == "1 model"
    assert words.plural(3100, "model") == "3,100 models"


def test_every_verdict_has_symbol_and_word_of_its_own_kind() -> None:
    for look in words.VERDICTS.values():
        assert look.symbol
        assert look.meaning
    assert words.verdict("something new").word == "something new"
    assert words.verdict(None).word == "no verdict"


def test_units_are_found_or_guessed() -> None:
    assert words.unit_of({"kind": "direction"}) == "degrees"
    assert words.unit_of({"kind": "direction", "unit": "r"}) == "r"
    assert words.unit_of({"kind": "correlation"}, {"statistic": "angle"}) == "degrees"
    assert words.unit_of({"kind": "correlation"}, {"unit": "count"}) == "count"


def test_regions_in_words() -> None:
    assert words.region({"low": 0.0, "high": None}) == "above .00"
    assert words.region({"low": None, "high": -0.5}) == "below −.50"
    assert words.region({"low": 2, "high": 2}, "count") == "exactly 2"
    assert words.region({"low": 0, "high": 45, "text": None}, "degrees") == "from 0° to 45°"
    assert words.region({"low": 0, "high": 1, "text": "all of it"}) == "all of it"
    assert words.region(None) == "–"


def test_models_are_named_without_their_organisation_unless_two_would_look_the_same() -> None:
    names = ["meta-llama/Llama-3.1-8B@host", "01-ai__Yi-34B-Chat", "plain_name", "a/same", "b/same", "x" * 90]
    short = words.model_names(names, 24)
    assert short[:5] == ["Llama-3.1-8B@host", "Yi-34B-Chat", "plain_name", "a/same", "b/same"]
    assert len(short[5]) == 24
    alike = [f"organisation-{k}/the-same-long-model-name-indeed" for k in range(3)]
    assert len(set(words.model_names(alike, 24))) == 3


def test_quotes_and_percentages_are_written_in_one_way() -> None:
    assert words.punctuate('HarmBench\'s "kept" items ("95%")') == "HarmBench’s “kept” items (“95\u00a0%”)"
    assert words.punctuate("the models' 'own' 95 % interval") == "the models’ ‘own’ 95\u00a0% interval"
    assert words.punctuate("it’s “so”, 5\u00a0%") == "it’s “so”, 5\u00a0%"


def test_figures_about_other_data_and_spans_that_are_no_intervals_are_named() -> None:
    assert words.published_about({"published": {"data": "other"}}) == "about other models and questions"
    assert words.published_about({"published": {"data": "simulated"}}) == "about real models"
    assert words.published_about({"published": {"data": "same"}}) == words.published_about({}) == ""
    assert words.span_name("correlation") == "95\u00a0% interval"
    assert words.span_name("dimensionality") == "range of the two methods"
    assert "splits" in words.span_name("stability")


def test_fits_are_named_in_words() -> None:
    assert words.fit_name("dims-k1") == "with 1 dimension"
    assert words.fit_name("dims-k3") == "with 3 dimensions"
    assert words.fit_name("published") == "as published"


def test_sentences_from_elsewhere_get_the_house_style() -> None:
    assert words.sentences("they correlate at 0.82 (at least -0.06); e.g. here") == (
        "They correlate at .82 (at least −.06); e.g. here."
    )
    assert words.sentences("made by jax 0.10.2 in 10.5 s") == "Made by jax 0.10.2 in 10.5 s."


def test_numbers_in_texts_from_elsewhere() -> None:
    assert words.typeset("-.89 with reasoning, -0.21 with safety") == "−.89 with reasoning, −.21 with safety"
    assert words.typeset("a 16-item set, 10-0.5, 1.0.3, 3.5") == "a 16-item set, 10-0.5, 1.0.3, 3.5"
