from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pandera.errors
import pytest

from benchmirt import outcomes


@pytest.fixture
def made() -> outcomes.Outcomes:
    """Make outcomes of 5 models on 4 items with every reason somewhere."""
    generator = np.random.default_rng(0)
    outcome = generator.integers(0, 2, (4, 5)).astype(np.int8)
    reason = np.zeros((4, 5), dtype=np.uint8)
    for number in range(1, len(outcomes.REASONS) + 1):
        place = divmod(2 * number - 1, 5)
        outcome[place], reason[place] = -1, number
    items = pd.DataFrame({name: pd.Series([None] * 4, dtype="str") for name in outcomes.ITEM_FACTS})
    items["question_id"] = pd.Series([f"q{number}" for number in range(4)], dtype="str")
    items["benchmark"] = pd.Series(["b"] * 4, dtype="str")
    items["options"] = pd.array([None, 2, 3, 4], dtype="Int16")
    items["inverted"] = False
    for name in outcomes.ITEM_ORIGINS:
        items[name] = pd.Series([None] * 4, dtype="str")
    items["row"] = pd.array([2, 3, 4, 5], dtype="Int64")
    items["fact_row"] = pd.array([None] * 4, dtype="Int64")
    models = pd.DataFrame({name: pd.Series([None] * 5, dtype="str") for name in outcomes.MODEL_FACTS})
    models["model"] = pd.Series(list("vwxyz"), dtype="str")
    models["size_b"] = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    models["reasoning"] = pd.array([None, True, False, None, None], dtype="boolean")
    models["fact_row"] = pd.array([None] * 5, dtype="Int64")
    return outcomes.Outcomes(
        tuple("vwxyz"), tuple(items["question_id"]), outcome, reason, items, models, {"source": "s"}
    )


@pytest.mark.parametrize("rows_a_group", [1, 8, 1_000_000])
def test_what_is_written_is_read_back(
    made: outcomes.Outcomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_a_group: int
) -> None:
    monkeypatch.setattr(outcomes, "_ROWS_A_GROUP", rows_a_group)
    shard = outcomes.write(made, tmp_path)[0]
    # codes in another order than the file's
    models = {name: place for place, name in enumerate("zyxwv")}
    items = {name: place for place, name in enumerate(["new", *reversed(made.items)])}
    outcome = np.full((5, 5), 7, dtype=np.int8)
    reason = np.full((5, 5), 99, dtype=np.uint8)
    for block in outcomes.blocks(shard, models, items):
        outcome[block.item, block.model] = block.outcome
        reason[block.item, block.model] = block.reason
    np.testing.assert_array_equal(outcome[1:][::-1, ::-1], made.outcome)
    np.testing.assert_array_equal(reason[1:][::-1, ::-1], made.reason)
    assert (outcome[0] == 7).all()
    read_items, read_models = outcomes.facts(shard)
    pd.testing.assert_frame_equal(read_items, made.item_facts)
    pd.testing.assert_frame_equal(read_models, made.model_facts)
    counts = [manifest["counts"] for manifest in outcomes.manifests(shard)]
    assert sum(count["observed"] for count in counts) == 20 - len(outcomes.REASONS)
    assert sum(sum(count["missing"].values()) for count in counts) == len(outcomes.REASONS)


@pytest.mark.parametrize(("rows_a_group", "groups"), [(2, 3), (5, 2), (1_000_000, 1)])
def test_models_of_one_shard_share_groups_of_rows(
    made: outcomes.Outcomes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows_a_group: int,
    groups: int,
) -> None:
    """Each model has items of its own in an order of its own; hashes are kept bit for bit, and may be unknown."""
    monkeypatch.setattr(outcomes, "_ROWS_A_GROUP", rows_a_group)
    hashes = {"q0": "ffffffffffffffff", "q1": "00000000000000ff", "q2": None, "q3": "fffffffffffffffe"}
    order = {"v": ("q0", "q1", "q2"), "x": ("q3", "q0"), "w": ("q2",)}

    def one(model: str) -> outcomes.OneModel:
        own = order[model]
        right = np.arange(len(own), dtype=np.int8) % 2
        return outcomes.OneModel(
            model=model,
            items=own,
            outcome=right,
            published=right,
            reason=np.zeros(len(own), dtype=np.uint8),
            score=right.astype(np.float64),
            content=[hashes[item] for item in own],
            manifest={"source": "s"},
        )

    shard = outcomes.write_models(
        {"shard0": [one(model) for model in order]}, made.item_facts, made.model_facts, tmp_path
    )[0]
    models = {name: place for place, name in enumerate(made.models)}
    items = {name: place for place, name in enumerate(made.items)}
    found = {}
    blocks = list(outcomes.blocks(shard, models, items))
    for block in blocks:
        columns = (block.model, block.item, block.outcome, block.content)
        for model, item, outcome, content in zip(*(column.tolist() for column in columns), strict=True):
            found[made.models[model], made.items[item]] = (outcome, content)
    assert len(blocks) == groups
    assert found == {
        (model, item): (place % 2, int(hashes[item] or "0", 16))
        for model, own in order.items()
        for place, item in enumerate(own)
    }


def test_names_without_a_code_are_refused(made: outcomes.Outcomes, tmp_path: Path) -> None:
    shard = outcomes.write(made, tmp_path)[0]
    with pytest.raises(KeyError):
        list(outcomes.blocks(shard, {"v": 0}, dict.fromkeys(made.items, 0)))


@pytest.mark.parametrize("change", ["reason without gap", "gap without reason", "value"])
def test_broken_outcomes_are_not_written(made: outcomes.Outcomes, tmp_path: Path, change: str) -> None:
    if change == "reason without gap":
        made.reason[0, 0] = 1
    elif change == "gap without reason":
        made.outcome[0, 0] = -1
    else:
        made.outcome[0, 0] = 2
    with pytest.raises(pandera.errors.SchemaError):
        outcomes.write(made, tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.parquet"))


def test_facts_obey_their_contract(made: outcomes.Outcomes) -> None:
    schema = outcomes.item_schema()
    schema.validate(made.item_facts)
    for column, value in (("options", 1), ("question_id", "q1"), ("benchmark", None)):
        bad = made.item_facts.copy()
        bad.loc[0, column] = value
        with pytest.raises(pandera.errors.SchemaError):
            schema.validate(bad)
    with pytest.raises(pandera.errors.SchemaErrors, match="extra"):
        schema.validate(made.item_facts.assign(extra=1))
    bad = made.model_facts.assign(size_b=0.0)
    with pytest.raises(pandera.errors.SchemaError):
        outcomes.model_schema().validate(bad)
