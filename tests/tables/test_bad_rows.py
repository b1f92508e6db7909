from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from sourcewise.tables import bad_rows
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training


def table(n=40, sources=("gold", "a", "b")):
    rng = np.random.default_rng(0)
    size = n * len(sources)
    return pd.DataFrame(
        {
            "x": rng.normal(size=size).round(3).astype(str),
            "y": rng.choice(["no", "yes"], size),
            "who": np.repeat(list(sources), n),
        }
    )


def read(frame, **how):
    return read_training(TableRequest(frame, "y", "who", "gold", **{"skip_bad_rows": True, **how}))


@pytest.fixture(params=["csv", "frame", "parquet"])
def given(request, tmp_path):
    """Put a frame where the user has it: in memory, or in a file."""

    def place(frame):
        if request.param == "frame":
            return frame
        path = tmp_path / f"data.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
        return path

    return place


def test_each_kind_is_told_against_its_source(given):
    frame = table()
    frame.loc[3, "x"] = "rubbish"  # of the reference itself
    frame.loc[[50, 51], "y"] = ["perhaps", "maybe"]
    frame.loc[52, "y"] = None
    frame.loc[90, "x"] = "n/k"
    frame.loc[91, "who"] = None
    found = read(given(frame))
    told = {(item.source, item.rows, item.first) for item in found.skipped}
    assert told == {
        ("gold", 1, 4),
        ("a", 2, 51),
        ("a", 1, 53),
        ("b", 1, 91),
        ("(rows without a source)", 1, 92),
    }
    assert found.counts.tolist() == [39, 37, 38]
    assert "such as 'perhaps'" in str(next(i for i in found.skipped if i.rows == 2))
    gone = [3, 50, 51, 52, 90, 91]
    assert np.flatnonzero(found.row_codes < 0).tolist() == gone
    assert found.X[:, 0].tolist() == frame.drop(index=gone)["x"].astype(float).tolist()
    assert found.preprocessor.rules_[0].kind == "number"


def test_what_is_left_is_read_as_if_the_bad_rows_had_never_been(given):
    frame = table()
    spoiled = frame.copy()
    spoiled.loc[[45, 46], "x"] = "?"
    found = read(given(spoiled))
    clean = read(frame.drop(index=[45, 46]).astype({"x": float}), skip_bad_rows=False)
    assert np.array_equal(found.X, clean.X)
    assert np.array_equal(found.y, clean.y)
    assert found.names == clean.names


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("x", "oops"), "Column 'x' mixes numbers and text .* --skip-bad-rows"),
        (("y", "maybe"), "has the label 'maybe', which the reference .* --skip-bad-rows"),
        (("y", None), "has no label in 1 row .* --skip-bad-rows"),
    ],
)
def test_without_it_the_sentence_names_the_option(given, change, sentence):
    frame = table()
    frame.loc[60, change[0]] = change[1]
    with pytest.raises(ValueError, match=sentence):
        read(given(frame), skip_bad_rows=False)


def test_a_source_of_nothing_but_rubbish_is_left_out():
    frame = table().astype({"x": float})
    frame.loc[frame.who == "a", "y"] = "maybe"
    found = read(frame)
    assert found.names == ["gold", "b"]
    assert found.left_out == {"a": 0}
    assert found.skipped[0].rows == 40


def test_most_vendors_may_write_rubbish():
    # Not the majority says what a column is, but the reference.
    frame = table(sources=("gold", *"abcdefgh"))
    frame.loc[~frame.who.isin(["gold", "a"]), "x"] = "unknown"
    found = read(frame)
    assert found.names == ["gold", "a"]
    assert found.preprocessor.rules_[0].kind == "number"
    with pytest.raises(ValueError, match="mixes numbers and text"):
        read(frame, skip_bad_rows=False)


def test_what_labels_are_is_for_the_reference_to_say():
    frame = table().astype({"x": float})
    frame["y"] = np.where(frame.y == "yes", 1.0, 0.0)
    frame.loc[60, "y"] = 0.5
    found = read(frame)
    assert found.classification
    assert found.skipped[0].why == "a label that no trusted row has (such as 0.5)"


def test_infinity_in_numbers_and_labels():
    frame = table().astype({"x": float})
    frame["y"] = np.random.default_rng(0).normal(size=len(frame))
    frame.loc[60, "x"] = np.inf
    frame.loc[61, "y"] = -np.inf
    found = read(frame)
    assert {item.first for item in found.skipped} == {61, 62}
    assert np.isfinite(found.X).all() and np.isfinite(found.y).all()
    with pytest.raises(ValueError, match="infinite label .* --skip-bad-rows"):
        read(frame, skip_bad_rows=False)


def test_lines_with_too_many_cells_are_counted(tmp_path):
    path = tmp_path / "d.csv"
    table().to_csv(path, index=False)
    lines = path.read_text().splitlines()
    lines.insert(70, "1,2,3,4,5")
    path.write_text("\n".join(lines) + "\n")
    found = read(path)
    assert found.skipped[0].source == "(lines with too few or too many cells)"
    assert found.counts.sum() == 120
    with pytest.raises(ValueError, match="line 71 has 5 cells .* --skip-bad-rows"):
        read(path, skip_bad_rows=False)


@pytest.mark.parametrize("cell", [1e39, -1e300])
def test_a_number_that_no_tree_could_read_is_a_bad_row_of_its_source(cell):
    frame = table().astype({"x": float})
    frame.loc[60, "x"] = cell
    (skipped,) = read(frame).skipped
    assert (skipped.source, skipped.rows, skipped.first) == (frame["who"][60], 1, 61)
    assert skipped.why == bad_rows.TOO_LARGE.format(column="x", value=cell)
    with pytest.raises(ValueError, match=rf"{skipped.source}.*{re.escape(bad_rows.BEYOND)}.*'?x'?"):
        read(frame, skip_bad_rows=False)


def test_braces_in_names_and_values_are_only_braces():
    frame = table().rename(columns={"x": "x {0}"})
    frame.loc[60, "x {0}"] = "{value}"
    assert "such as '{value}'" in read(frame).skipped[0].why


def test_too_few_trusted_rows_remain():
    frame = table(n=12)
    frame.loc[:4, "y"] = None
    with pytest.raises(ValueError, match="The reference 'gold' has 7 rows"):
        read(frame)
