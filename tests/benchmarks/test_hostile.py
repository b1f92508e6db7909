"""What docs/hostile.md says is held: by the published runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.hostile.attacks import ATTACKS
from benchmarks.hostile.report import CELL, frame_of
from benchmarks.hostile.runs import read

PUBLISHED = Path(__file__).parents[2] / "benchmarks/hostile/published/runs.jsonl"
METHODS = ("default", "strict")
COPIES = ("exact copies", "noisy copies")


@pytest.fixture(scope="module")
def runs():
    return frame_of(read(PUBLISHED))


def of(runs, method, attacks, hostile):
    chosen = runs["attack"].isin(attacks) & (runs["hostile"] == hostile)
    return runs[chosen & (runs["method"] == method)]


def test_copies_buy_nothing_in_any_cell_and_are_counted(runs):
    found = of(runs, "default", COPIES, 10)
    assert len(found.groupby(CELL)) == 12
    assert found.groupby(CELL)["more_error"].mean().max() <= 0.01
    assert found["copies"].mean() >= 0.99 * 500


def test_triggers_that_are_said_to_fail_do(runs):
    constant = of(runs, "default", ["trigger in a constant column"], 9)
    assert constant.groupby(CELL)["success"].mean().max() <= 0.25
    others = of(runs, "strict", ["trigger in a rare column", "trigger beyond the range"], 6)
    assert others.groupby(CELL)["success"].mean().max() <= 0.3


def test_whoever_has_not_seen_the_reference_does_little_harm(runs):
    unseen = [name for name, attack in ATTACKS.items() if not attack.knows_reference]
    found = of(runs, "default", unseen, 10)
    means = found.groupby("attack")["more_error"].mean()
    assert len(means) == len(unseen)
    assert means.max() <= 0.02


def test_midpoints_of_trusted_rows_buy_nothing_in_any_cell(runs):
    found = of(runs, "default", ["midpoints of trusted rows"], 10)
    assert len(found.groupby(CELL)) == 6
    assert found.groupby(CELL)["more_error"].mean().max() <= 0.01


def test_strict_costs_no_more_where_there_are_many_names(runs):
    names = ["names of one row"]
    default, strict = (of(runs, m, names, 3).groupby(CELL)["error"].mean() for m in METHODS)
    assert len(default) == 6
    assert (strict - default).mean() <= 0.01
