from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest

from benchmirt import config, matrix, outcomes, sources
from benchmirt.errors import InputError
from benchmirt.files import read_json

Make = Callable[..., dict[str, Any]]
Build = Callable[..., Path]
Policy = Literal["published", "honest"]


@pytest.fixture
def build(tmp_path: Path, minimal_config: Make) -> Build:
    """Give a function that writes tables, collects them and builds a matrix; returns its folder.

    ``build(text or [text, ...], policy="honest", items=..., models_file=..., **configuration)``
    """

    def run(tables: str | Sequence[str], policy: Policy = "honest", **keys: Any) -> Path:
        texts = [tables] if isinstance(tables, str) else list(tables)
        for role, key in (("items", "items"), ("models", "models_file")):
            given = keys.get(key)
            for number, text in enumerate([given] if isinstance(given, str) else given or []):
                (tmp_path / f"{role}{number}.csv").write_text(text)
        raw = minimal_config("t0.csv", **{k: v for k, v in keys.items() if k not in ("items", "models_file")})
        first = raw["sources"][0]
        raw["sources"] = []
        for number, text in enumerate(texts):
            (tmp_path / f"t{number}.csv").write_text(text)
            source = {**first, "name": f"s{number}", "responses": f"t{number}.csv"}
            for role, key in (("items", "items"), ("models", "models_file")):
                if keys.get(key):
                    source[role] = f"{role}{number}.csv"
            raw["sources"].append(source)
        raw.setdefault("filter", {}).setdefault("min_observed", 1)
        raw.setdefault("fits", {"dims": 1, "max_dims": 1})
        study = config.load(raw, tmp_path)
        shards = [sources.collect(s, study, tmp_path / "outcomes" / s.name)[0] for s in study.sources]
        folder = tmp_path / policy
        matrix.build(shards, study, policy, folder)
        return folder

    return run


def fault(build: Build, *args: Any, **keys: Any) -> str:
    with pytest.raises(InputError) as caught:
        build(*args, **keys)
    text = str(caught.value)
    assert "\n" not in text
    return text


def tables(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Read the three tables; responses by question_id."""
    return (
        pd.read_parquet(folder / "responses.parquet").set_index("question_id"),
        pd.read_parquet(folder / "items.parquet").set_index("question_id"),
        pd.read_parquet(folder / "models.parquet").set_index("model"),
    )


SMALL = "question_id,a,b,c\nq1,1,0,1\nq2,0,,1\nq3,1,1,1\nq4,,,\nq5,0,1,0\n"


def test_everything_is_kept_in_the_tables_with_a_reason(build: Build) -> None:
    responses, items, models = tables(build(SMALL))
    assert list(responses.columns) == ["a", "b", "c"]
    assert {str(kind) for kind in responses.dtypes} == {"Int8"}
    assert responses.loc["q2"].tolist() == [0, pd.NA, 1]
    assert items["kept"].tolist() == [True, True, False, False, True]
    assert items["drop_reason"].tolist()[2:4] == ["all outcomes equal", "no outcomes"]
    assert items["observed"].tolist() == [3, 2, 3, 0, 3]
    assert items["mean"].tolist()[:3] == [2 / 3, 0.5, 1.0]
    assert np.isnan(items["mean"].iloc[3])
    assert models["kept"].all()
    assert models["observed"].tolist() == [4, 3, 4]
    matrix.item_table_schema().validate(items.reset_index())
    matrix.model_table_schema().validate(models.reset_index())


def test_load_gives_the_kept_part(build: Build) -> None:
    data = matrix.load(build(SMALL), asymptotes=True)
    assert data.items == ("q1", "q2", "q5")
    assert data.models == ("a", "b", "c")
    np.testing.assert_array_equal(data.responses, [[1, 0, 0], [0, -1, 1], [1, 1, 0]])
    assert data.responses.dtype == np.int8
    assert (data.floor == 0).all()
    assert (data.ceiling == 1).all()
    assert list(data.item_table["question_id"]) == list(data.items)
    assert list(data.lineage) == [0, 1, 2]


def test_outputs_are_byte_identical_on_a_rerun(build: Build) -> None:
    first = {path.name: path.read_bytes() for path in build(SMALL).iterdir()}
    assert set(first) == {
        "responses.parquet",
        "items.parquet",
        "models.parquet",
        "coverage.csv",
        "conflicts.csv",
        "missingness.csv",
        "summary.json",
    }
    assert {path.name: path.read_bytes() for path in build(SMALL).iterdir()} == first


# -- filters


def hundred(passed: Sequence[int]) -> str:
    """Write a table of 100 models whose item j is passed by passed[j] of them."""
    models = ",".join(f"m{number}" for number in range(100))
    rows = [
        f"q{number}," + ",".join("1" if place < count else "0" for place in range(100))
        for number, count in enumerate(passed)
    ]
    return f"question_id,{models}\n" + "\n".join(rows) + "\n"


def test_the_published_filter_is_strict_to_the_last_bit(build: Build) -> None:
    """Exactly 5 or 95 of 100 is dropped; 6 and 94 are kept."""
    _, items, _ = tables(build(hundred([0, 4, 5, 6, 50, 94, 95, 96, 100]), "published"))
    assert items["kept"].tolist() == [False, False, False, True, True, True, False, False, False]
    assert items["drop_reason"].tolist() == [
        "all outcomes equal",
        "mean not above 0.05",
        "mean not above 0.05",
        *[np.nan] * 3,
        "mean not below 0.95",
        "mean not below 0.95",
        "all outcomes equal",
    ]


@pytest.mark.parametrize("of", [20, 40, 60, 80, 99, 100, 1000, 4500])
def test_means_are_correctly_rounded(of: int) -> None:
    passed = np.arange(of + 1)
    mean = matrix._mean(passed, np.full(of + 1, of))
    dropped = (mean <= 0.05) | (mean >= 0.95)
    exact = (passed * 20 <= of) | (passed * 20 >= 19 * of)
    np.testing.assert_array_equal(dropped, exact)


def test_the_honest_filter_drops_only_what_tells_nothing(build: Build) -> None:
    _, items, _ = tables(build(hundred([0, 1, 99, 100]), "honest"))
    assert items["kept"].tolist() == [False, True, True, False]


def test_min_observed(build: Build) -> None:
    text = "question_id,a,b,c\nq1,1,0,\nq2,1,0,1\nq3,1,,\n"
    _, items, _ = tables(build(text, filter={"min_observed": 3}))
    assert items["drop_reason"].tolist()[0] == "fewer than 3 outcomes"
    assert items["kept"].tolist() == [False, True, False]


def test_means_are_those_of_the_kept_models(build: Build) -> None:
    _, items, models = tables(build(SMALL, models={"exclude": ["a"]}))
    assert items["observed"].tolist() == [2, 1, 2, 0, 2]
    assert items.loc["q1", "mean"] == 0.5
    assert models.loc["a", "drop_reason"] == "in models.exclude"
    assert models.loc["a", "observed"] == 4


def test_no_item_left(build: Build) -> None:
    text = fault(build, "question_id,a,b\nq1,1,1\nq2,0,0\nq3,1,1\n")
    assert text.startswith("t0.csv: filter.honest, filter.min_observed: no item is left")
    assert "3 items: all outcomes equal" in text


def test_a_model_that_only_has_dropped_items_is_dropped(build: Build) -> None:
    folder = build("question_id,a,b,c\nq1,1,0,\nq2,1,1,1\n")
    _, _, models = tables(folder)
    assert models["kept"].tolist() == [True, True, False]
    assert models.loc["c", "drop_reason"] == "no outcome on a kept item"
    assert matrix.load(folder, asymptotes=False).models == ("a", "b")


# -- models


def test_one_model_only(build: Build) -> None:
    text = fault(build, "question_id,lonely\nq1,1\nq2,0\n")
    assert text.startswith("t0.csv: row 1, columns of models: ")
    assert 'found only "lonely"' in text
    assert "at least 2 models" in text
    text = fault(build, SMALL, models={"exclude": ["a", "c"]})
    assert 'found only "b"' in text
    assert "a: in models.exclude" in text


def test_a_model_without_any_outcome(build: Build) -> None:
    table = "question_id,a,silent,c\nq1,1,,0\nq2,0,,1\n"
    text = fault(build, table)
    assert text.startswith('t0.csv: row 1, column "silent": this model has no outcome at all')
    _, _, models = tables(build(table, models={"exclude": ["silent"]}))
    assert models["kept"].tolist() == [True, False, True]


@pytest.mark.parametrize("section", ["include", "exclude"])
def test_unknown_models_are_told_with_the_nearest(build: Build, section: str) -> None:
    table = SMALL.replace("a,b,c", "Llama-3/8B,b,c")
    text = fault(build, table, models={section: ["Llama-3-8B"]})
    assert text.startswith(f"t0.csv: models.{section}: no source has this model")
    assert 'Did you mean "Llama-3/8B"?' in text


def test_include(build: Build) -> None:
    _, _, models = tables(build(SMALL, models={"include": ["a", "b"]}))
    assert models["drop_reason"].tolist()[2] == "not in models.include"
    assert models["kept"].tolist() == [True, True, False]


DOUBLES = "question_id,a@one,b,a@two,c,c@x\nq1,1,0,1,0,0\nq2,0,1,,1,1\nq3,1,0,1,1,1\n"
CANONICAL = "model,canonical,family\na@one,a,F\nb,,F\na@two,a,F\nc,c,\nc@x,c,\n"


def test_duplicates_keep_the_most_complete_or_the_first(build: Build) -> None:
    _, _, models = tables(build(DOUBLES, models_file=CANONICAL))
    assert models["kept"].tolist() == [True, True, False, True, False]
    assert models.loc["a@two", "drop_reason"] == "the same model as a@one, which is more complete"
    assert models.loc["c@x", "drop_reason"] == "the same model as c, which comes first"
    assert models.loc["b", "canonical"] == "b"


def test_the_excluded_are_no_rivals(build: Build) -> None:
    _, _, models = tables(build(DOUBLES, models_file=CANONICAL, models={"exclude": ["a@one"]}))
    assert models.loc["a@two", "kept"]


def test_duplicates_may_be_kept(build: Build) -> None:
    _, _, models = tables(build(DOUBLES, models_file=CANONICAL, models={"duplicates": "keep"}))
    assert models["kept"].all()


@pytest.mark.parametrize(
    ("second", "further"),
    [("c", "c"), ("a", "a")],  # a chain, a circle
)
def test_canonical_names_that_lead_on_are_refused(build: Build, second: str, further: str) -> None:
    text = fault(build, SMALL, models_file=f"model,canonical\na,b\nb,{second}\nc,\n")
    assert text.startswith('models0.csv: row 2, column "canonical"')
    assert f'found "b", and for "b": "{further}"' in text


def test_lineage_and_its_evidence(build: Build) -> None:
    facts = "model,family,lineage\na,F,base-1\nb,F,\nc,,\n"
    folder = build(SMALL, models_file=facts)
    _, _, models = tables(folder)
    assert models["lineage"].tolist() == ["base-1", "F", "c"]
    assert models["lineage_evidence"].tolist() == ["lineage column", "family column", "none: own cluster"]
    assert list(matrix.load(folder, asymptotes=False).lineage) == [0, 1, 2]


def test_names_with_slashes_and_spaces(build: Build) -> None:
    data = matrix.load(build(SMALL.replace("a,b,c", "org/a@fp8,b c,ü")), asymptotes=False)
    assert data.models == ("org/a@fp8", "b c", "ü")
    assert data.model_table["slug"].tolist() == ["org=2Fa=40fp8", "b=20c", "=C3=BC"]


# -- asymptotes


def test_floors_and_ceilings(build: Build) -> None:
    items = "question_id,benchmark,options,inverted\nq1,m,4,\nq2,w,4,true\nq3,m,2,\nq4,m,,\nq5,w,,true\n"
    table = "question_id,a,b\nq1,1,0\nq2,0,1\nq3,1,0\nq4,0,1\nq5,1,0\n"
    folder = build(table, items=items)
    data = matrix.load(folder, asymptotes=True)
    np.testing.assert_allclose(data.floor, [0.25, 0, 0.5, 0, 0])
    np.testing.assert_allclose(data.ceiling, [1, 0.75, 1, 1, 1])
    assert data.floor.dtype == data.ceiling.dtype == np.float32
    plain = matrix.load(folder, asymptotes=False)
    assert (plain.floor == 0).all()
    assert (plain.ceiling == 1).all()
    assert plain.hash != data.hash
    assert read_json(folder / "summary.json")["hash"] == data.hash


# -- several sources


def test_sources_with_other_items_are_put_together(build: Build) -> None:
    one = "question_id,a,b\nx1,1,0\nx2,0,1\n"
    two = "question_id,b,c\ny1,1,0\ny2,0,1\n"
    responses, items, models = tables(build([one, two]))
    assert list(responses.index) == ["x1", "x2", "y1", "y2"]
    assert list(models.index) == ["a", "b", "c"]
    assert list(items["benchmark"]) == ["s0", "s0", "s1", "s1"]
    expected = [[1, 0, pd.NA], [0, 1, pd.NA], [pd.NA, 1, 0], [pd.NA, 0, 1]]
    assert responses.to_numpy(dtype=object).tolist() == expected


def test_sources_with_other_models_of_the_same_items(build: Build) -> None:
    one = "question_id,a,b\nq1,1,0\nq2,0,1\n"
    two = "question_id,c,b\nq2,1,\nq1,0,0\n"
    responses, _, _ = tables(build([one, two], benchmark="same"))
    assert responses.to_numpy(dtype=object).tolist() == [[1, 0, 0], [0, 1, 1]]


def test_sources_that_disagree_about_a_cell(build: Build) -> None:
    one = "question_id,a,b\nq1,1,0\nq2,0,1\nq3,1,1\n"
    two = "question_id,c,b\nq3,1,1\nq2,1,0\nq1,0,0\n"
    text = fault(build, [one, two], benchmark="same")
    assert text == (
        't1.csv: row 3, column "b": two files disagree about "q2" and this model: found 0; '
        "expected 1, as in t0.csv, row 3. "
        "Correct one of the two files, rename the model in one if it was run twice, name the items apart if "
        "they are two questions, or say in joining.repeated_runs what counts."
    )


def test_columns_are_told_by_their_whole_names_and_rows_by_the_models_where_tables_are_turned_round(
    build: Build,
) -> None:
    one = "question_id,acc_a,acc_b\nq1,1,0\nq2,0,1\n"
    text = fault(build, [one, one.replace("q2,0", "q2,1")], benchmark="same", prefix="acc_")
    assert text.startswith('t1.csv: row 3, column "acc_a": ')
    assert "expected 0, as in t0.csv, row 3" in text
    turned = "model,q1,q2\na,1,0\nb,0,1\n"
    text = fault(build, [turned, turned.replace("a,1", "a,0")], benchmark="same")
    assert text.startswith('t1.csv: row of "a", column "q1": ')
    empty = fault(build, one.replace("1,0", "1,").replace("0,1", "0,"), prefix="acc_")
    assert empty.startswith('t0.csv: row 1, column "acc_b": this model has no outcome at all')
    empty = fault(build, turned.replace("b,0,1", "b,,"))
    assert empty.startswith('t0.csv: row of "b": this model has no outcome at all')


def test_a_disagreement_names_the_file_that_holds_the_cell(build: Build) -> None:
    """The first of three files knows the item and the model, but not the cell."""
    one = "question_id,a,b\nq1,1,\nq2,0,1\n"
    two = "question_id,b\nq1,1\n"
    three = "question_id,b\nq1,0\n"
    text = fault(build, [one, two, three], benchmark="same")
    assert text.startswith('t2.csv: row 2, column "b"')
    assert "expected 1, as in t1.csv, row 2" in text


def test_sources_that_disagree_about_facts(build: Build) -> None:
    table = "question_id,a,b\nq1,1,0\nq2,0,1\n"
    items = ["question_id,benchmark\nq1,A\nq2,A\n", "question_id,benchmark\nq2,A\nq1,B\n"]
    text = fault(build, [table, table], items=items)
    assert text.startswith('items1.csv: row 3, column "benchmark": "q1" has another benchmark in items0.csv')
    assert 'found "B"; expected "A"' in text
    models = ["model,size_b\na,7\nb,\n", "model,size_b\na,8\nb,3\n"]
    text = fault(build, [table, table], models_file=models, benchmark="same")
    assert text.startswith('models1.csv: row 2, column "size_b"')
    assert 'found "8.0"; expected "7.0"' in text


def test_facts_of_several_sources_complete_each_other(build: Build) -> None:
    table = "question_id,a,b\nq1,1,0\nq2,0,1\n"
    models = [
        "model,size_b,reasoning,notes\na,7,,x\nb,,,\n",
        "model,size_b,reasoning,notes\nb,3,true,z\na,,,y\n",
    ]
    _, _, merged = tables(build([table, table], models_file=models, benchmark="same"))
    assert merged["size_b"].tolist() == [7.0, 3.0]
    assert merged["reasoning"].tolist() == [pd.NA, True]
    assert merged["notes"].tolist() == ["x; y", "z"]


# -- policies, coverage, summary


@pytest.fixture
def failing(tmp_path: Path, minimal_config: Make) -> tuple[Path, config.Study]:
    """Write a source in which each reason occurs, on a plain and on an inverted item; all have a third."""
    text = "question_id," + ",".join(f"m{n}" for n in range(12)) + "\n"
    text += "".join(f"{item}," + ",".join("1" if n < 5 else "0" for n in range(12)) + "\n" for item in "pwx")
    (tmp_path / "t.csv").write_text(text)
    columns = {
        "inverted": {"column": "question_id", "pattern": "w", "value": True},
        "benchmark": "question_id",
    }
    study = config.load(
        minimal_config("t.csv", columns=columns, filter={"min_observed": 1}, fits={"dims": 1, "max_dims": 1}),
        tmp_path,
    )
    from benchmirt.sources import table

    found = table.read(study.sources[0], study)
    for number in range(1, len(outcomes.REASONS) + 1):
        found.outcome[:2, number], found.reason[:2, number] = -1, number
    published = found.outcome.copy()
    for number, reason in enumerate(outcomes.REASONS, start=1):
        if reason in outcomes.FAILURES:
            published[:2, number] = [0, 1]
    found = dataclasses.replace(
        found, manifest={**found.manifest, "failures_known": True}, published=published
    )
    shard = outcomes.write(found, tmp_path / "o")[0]
    return shard, study


def test_published_fills_failures_and_honest_does_not(
    failing: tuple[Path, config.Study], tmp_path: Path
) -> None:
    shard, study = failing
    for policy in matrix.POLICIES:
        matrix.build([shard], study, policy, tmp_path / policy)
    honest, _, _ = tables(tmp_path / "honest")
    published, _, _ = tables(tmp_path / "published")
    for number, reason in enumerate(outcomes.REASONS, start=1):
        assert honest[f"m{number}"].isna().tolist() == [True, True, False]
        if reason in outcomes.FAILURES:
            assert published[f"m{number}"].tolist()[:2] == [0, 1], "a failure is what its row says"
        else:
            assert published[f"m{number}"].isna().tolist() == [True, True, False]
    assert published["m0"].tolist() == honest["m0"].tolist() == [1, 1, 1]
    summary = read_json(tmp_path / "published" / "summary.json")
    assert summary["cells_filled_by_policy"] == 2 * len(outcomes.FAILURES)
    assert summary["failures_known"] is True
    assert read_json(tmp_path / "honest" / "summary.json")["cells_filled_by_policy"] == 0


def test_coverage_counts_by_reason(failing: tuple[Path, config.Study], tmp_path: Path) -> None:
    shard, study = failing
    for policy in matrix.POLICIES:
        matrix.build([shard], study, policy, tmp_path / policy)
        coverage = pd.read_csv(tmp_path / policy / "coverage.csv")
        matrix.coverage_schema().validate(coverage)
        assert len(coverage) == 3 * 12
        missing = coverage.groupby("model", sort=False)[list(outcomes.REASONS)].sum()
        for number, reason in enumerate(outcomes.REASONS, start=1):
            filled = policy == "published" and reason in outcomes.FAILURES
            assert missing.loc[f"m{number}", reason] == (0 if filled else 2)
        assert missing.to_numpy().sum() == 2 * (10 - (len(outcomes.FAILURES) if policy == "published" else 0))


def test_the_summary_counts(build: Build) -> None:
    folder = build(SMALL, models={"exclude": ["b"]})
    summary = read_json(folder / "summary.json")
    assert (summary["models"], summary["models_kept"]) == (3, 2)
    assert (summary["items"], summary["items_kept"]) == (5, 1)
    assert summary["items_dropped"] == {"all outcomes equal": 3, "no outcomes": 1}
    assert summary["models_dropped"] == {"in models.exclude": 1}
    assert summary["observed"] == 11
    assert summary["missing"] == 4
    assert summary["failures_known"] is False
    assert summary["benchmarks"] == {"s0": {"items": 5, "kept": 1}}
    assert summary["provenance"]["data_hash"] == summary["hash"]
    assert "time" not in str(summary)


def test_an_unknown_policy_is_a_fault_of_the_caller(build: Build) -> None:
    with pytest.raises(ValueError, match="typo"):
        build(SMALL, "typo")


def test_loading_an_incomplete_folder(build: Build) -> None:
    folder = build(SMALL)
    (folder / "models.parquet").unlink()
    with pytest.raises(InputError, match=r"models\.parquet"):
        matrix.load(folder, asymptotes=True)


def test_loading_a_table_of_another_form(build: Build) -> None:
    folder = build(SMALL)
    models = pd.read_parquet(folder / "models.parquet")
    models.drop(columns="slug").to_parquet(folder / "models.parquet")
    with pytest.raises(InputError, match=r"models\.parquet.*found slug \(absent\); expected slug \(str\)"):
        matrix.load(folder, asymptotes=True)


# -- invariance: order carries no meaning


def test_permuting_models_and_items_permutes_the_matrix(build: Build) -> None:
    generator = np.random.default_rng(3)
    cells = generator.choice(["1", "0", ""], size=(12, 6))
    frame = pd.DataFrame(cells, columns=list("abcdef"))
    frame.insert(0, "question_id", [f"q{number}" for number in range(12)])
    plain = matrix.load(build(frame.to_csv(index=False)), asymptotes=False)
    columns = ["question_id", *generator.permutation(list("abcdef"))]
    shuffled = matrix.load(
        build(frame[columns].sample(frac=1, random_state=1).to_csv(index=False)), asymptotes=False
    )
    rows = [shuffled.models.index(name) for name in plain.models]
    places = [shuffled.items.index(name) for name in plain.items]
    again = matrix.select(shuffled, rows, places)
    np.testing.assert_array_equal(again.responses, plain.responses)
    assert again.models == plain.models


# -- from arrays and selections


def test_from_arrays() -> None:
    responses = np.array([[1, 0, np.nan], [0, 1, 1]])
    data = matrix.from_arrays(
        responses, lineage=[4, 4], benchmark=["x", "y", "y"], floor=0.25, ceiling=np.array([1, 1, 0.5])
    )
    np.testing.assert_array_equal(data.responses, [[1, 0, -1], [0, 1, 1]])
    assert list(data.lineage) == [4, 4]
    assert list(data.item_table["benchmark"]) == ["x", "y", "y"]
    assert data.item_table["observed"].tolist() == [2, 2, 1]
    assert data.floor.tolist() == [0.25] * 3
    assert data.ceiling.tolist() == [1, 1, 0.5]
    matrix.item_table_schema().validate(data.item_table)
    matrix.model_table_schema().validate(data.model_table)
    assert list(matrix.from_arrays(responses).lineage) == [0, 1]


@pytest.mark.parametrize(
    ("keys", "match"),
    [
        ({"responses": np.zeros(3)}, "shape"),
        ({"responses": np.full((2, 2), 2)}, "1, 0"),
        ({"responses": np.full((2, 2), 0.5)}, "1, 0"),
        ({"responses": np.zeros((2, 2)), "lineage": [1]}, "lineage"),
        ({"responses": np.zeros((2, 2)), "floor": np.zeros(3)}, "floor"),
    ],
)
def test_from_arrays_refuses_what_does_not_fit(keys: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        matrix.from_arrays(**keys)


def test_select_by_places_and_masks() -> None:
    data = matrix.from_arrays(np.arange(12).reshape(3, 4) % 2, lineage=[5, 6, 5])
    part = matrix.select(data, models=[2, 0], items=np.array([True, False, False, True]))
    assert part.models == (data.models[2], data.models[0])
    assert part.items == (data.items[0], data.items[3])
    assert list(part.lineage) == [5, 5]
    assert part.hash != data.hash
    assert matrix.select(data).hash == data.hash


@pytest.mark.parametrize("change", ["responses", "names", "floor", "lineage"])
def test_the_hash_sees_every_change(change: str) -> None:
    data = matrix.from_arrays(np.eye(3, dtype=int))
    altered: dict[str, Any] = {
        "responses": {"responses": 1 - data.responses},
        "names": {"models": ("x", *data.models[1:])},
        "floor": {"floor": data.floor + np.float32(0.1)},
        "lineage": {"lineage": data.lineage + 1},
    }
    assert dataclasses.replace(data, **altered[change]).hash != data.hash
    assert matrix.from_arrays(np.eye(3)).hash == data.hash


# -- real tables


def test_the_ready_studies_on_real_tables(real_data: Path, repository: Path, tmp_path: Path) -> None:
    import yaml

    (tmp_path / "data").symlink_to(real_data)
    kept = {}
    for name in ("agentdojo", "korbench", "speechmap", "joint"):
        raw = yaml.safe_load((repository / "workflow" / "studies" / f"{name}.yaml").read_text())
        study = config.load({**raw, "claims": {"file": []}}, tmp_path)
        shard = sources.collect(study.sources[0], study, tmp_path / name / "outcomes")[0]
        matrix.build([shard], study, "honest", tmp_path / name)
        data = matrix.load(tmp_path / name, asymptotes=True)
        kept[name] = data.responses.shape
        assert data.item_table["category"].notna().all()
        raw_cells = pd.read_csv(real_data / name / "responses.csv.gz", index_col=0)
        expected = raw_cells.loc[list(data.items), list(data.models)].fillna(-1).to_numpy().T
        np.testing.assert_array_equal(data.responses, expected)
        assert len(data.item_table["benchmark"].unique()) >= 4
    assert kept["korbench"][0] == 62
    assert kept["joint"][0] == 44


# -- faults that would end a fit hours later


FOUR = "question_id,a,b,c,d\nq1,1,0,1,0\nq2,0,1,1,0\nq3,1,1,0,0\nq4,1,1,1,1\nq5,0,0,1,1\nq6,0,1,0,1\n"
KINDS = "question_id,benchmark,category\nq1,bbq,safety\nq2,bbq,safety\nq3,bbh,\nq4,arc,\nq5,bbh,\nq6,bbh,\n"


@pytest.mark.parametrize("policy", ["published", "honest"])
def test_anchors_that_nothing_is_called(build: Build, policy: Policy) -> None:
    anchors = {"bbq": 1, "safty": -1}
    text = fault(build, FOUR, policy, items=KINDS, dimensions={"anchors": anchors})
    assert text.startswith(
        "items0.csv: dimensions.anchors.safty: an anchor names neither a benchmark nor a cat"
    )
    assert 'found "safty"; expected one of arc, bbh, bbq, safety. Did you mean "safety"?' in text


def test_anchors_whose_items_are_dropped(build: Build) -> None:
    text = fault(build, FOUR, items=KINDS, dimensions={"anchors": {"arc": 1}})
    assert 'items0.csv: dimensions.anchors.arc: the filter leaves no item of this anchor: found "arc"' in text
    build(FOUR, "published", items=KINDS, dimensions={"anchors": {"arc": 1}})
    build(FOUR, items=KINDS, dimensions={"anchors": {"bbq": 1, "safety": -1}})


@pytest.mark.parametrize(
    ("fits", "policy", "where"),
    [
        ({"dims": 4}, "published", "fits.dims: 4 models and 5 items"),
        ({"dims": 4}, "honest", "fits.dims: 4 models and 5 items"),
        ({"dims": 1}, "honest", "fits.max_dims: 4 models and 5 items"),
    ],
)
def test_more_dimensions_than_the_matrix_carries(
    build: Build, fits: dict[str, int], policy: Policy, where: str
) -> None:
    text = fault(build, FOUR, policy, fits={"max_dims": 4, **fits})
    assert text.startswith(f"t0.csv: {where} are kept under the policy {policy}: found 4; expected at most 3")
    assert f"Lower {where.partition(':')[0]}, or add models" in text


def test_as_many_dimensions_as_the_matrix_carries(build: Build) -> None:
    build(FOUR, fits={"dims": 3, "max_dims": 3})


def test_two_sources_that_give_one_name_to_two_questions(build: Build) -> None:
    text = fault(build, [FOUR, FOUR.replace("a,b,c,d", "e,f,g,h")])
    assert text.startswith('t1.csv: row 2: "q1" has another benchmark in t0.csv: found "s1"; expected "s0"')
    assert "name them apart in one of the sources" in text
    assert "benchmark: NAME" in text


@pytest.mark.parametrize("column", ["benchmark", "category"])
def test_two_benchmarks_or_categories_that_differ_in_case_only(build: Build, column: str) -> None:
    other = "category" if column == "benchmark" else "benchmark"
    rows = "".join(f"q{k},{'BBH' if k == 3 else 'bbh'},x\n" for k in range(1, 7))
    text = fault(build, FOUR, items=f"question_id,{column},{other}\n{rows}")
    assert f"two names in the column {column} differ in case only" in text
    assert text.startswith(f'items0.csv: question "q3", column "{column}"')
    assert 'found "BBH" beside "bbh"' in text


def test_two_sources_with_a_name_in_two_unicode_forms(build: Build) -> None:
    one, two = "\u00e9", "e\u0301"
    text = fault(build, [FOUR.replace("b,c", f"{one},c"), FOUR.replace("b,c", f"{two},c")], benchmark="same")
    assert "t1.csv: the name of this model looks like one in t0.csv, written in another Unicode form" in text
    text = fault(build, [FOUR.replace("q1", one), FOUR.replace("q1", two)], benchmark="same")
    assert "t1.csv: the name of this item looks like one in t0.csv" in text
