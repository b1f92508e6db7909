from __future__ import annotations

import datetime as dt
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sourcewise.tables import TablePreprocessor
from sourcewise.tables.rules import ColumnRule


def fit(**columns):
    return TablePreprocessor().fit(pa.table(columns))


def one_rule(values, name="x", **how):
    return (
        TablePreprocessor(**how)
        .fit(pa.table({name: values, "other": range(len(values))}))
        .rules_[0]
    )


class TestNumbers:
    def test_as_they_are(self):
        made = fit(x=[1.5, 2.5, 4.0])
        assert made.transform(pa.table({"x": [7.0, -1.0]})).tolist() == [[7.0], [-1.0]]

    @pytest.mark.parametrize("gap", [None, math.nan])
    def test_gaps_get_the_references_median_and_an_indicator(self, gap):
        made = fit(x=[1.0, 3.0, gap, 100.0])
        assert made.get_feature_names_out().tolist() == ["x", "x = (missing)"]
        assert made.transform(pa.table({"x": [None, 5.0]})).tolist() == [[3.0, 1.0], [5.0, 0.0]]

    def test_no_indicator_where_the_reference_has_no_gap(self):
        # Untrusted rows alone would decide what its coefficient is.
        made = fit(x=[1.0, 3.0, 100.0])
        assert made.transform(pa.table({"x": [None, 5.0]})).tolist() == [[3.0], [5.0]]

    def test_booleans(self):
        made = fit(x=[True, True, False, None])
        assert made.rules_[0].kind == "boolean"
        assert made.transform(pa.table({"x": [None, False]})).tolist() == [[1, 1], [0, 0]]

    def test_decimals_and_integers(self):
        decimal = pa.array([1, 2, 3], pa.decimal128(5, 2))
        made = fit(x=decimal, n=pa.array([1, 2, 3], pa.uint8()))
        assert made.transform(pa.table({"x": decimal, "n": [7, 8, 9]}))[:, 1].tolist() == [7, 8, 9]

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [
            (pa.float32(), "float32"),
            (pa.int16(), "float32"),
            (pa.int32(), "float64"),
            (pa.float64(), "float64"),
        ],
    )
    def test_single_precision_only_where_nothing_is_lost(self, kind, expected):
        made = fit(x=pa.array([1, 2, 3], kind), c=["a", "a", "b"], b=[True, False, True])
        assert made.dtype_ == expected
        assert made.transform(pa.table({"x": [1], "c": ["a"], "b": [True]})).dtype == expected


class TestCategories:
    def test_rare_levels_share_a_column(self):
        rule = one_rule(["a"] * 5 + ["b"] * 3 + ["c", "d"])
        assert rule.levels == ("a", "b")
        assert (rule.other, rule.grouped) == (True, 2)
        assert rule.features == ["x = a", "x = b", "x = (other)"]

    def test_levels_the_reference_never_saw(self):
        with_other = fit(x=["a", "a", "b", "b", "c"])
        assert with_other.transform(pa.table({"x": ["zzz"]})).tolist() == [[0, 0, 1]]
        without = fit(x=["a", "a", "b", "b"])
        assert without.transform(pa.table({"x": ["zzz"]})).tolist() == [[0, 0]]

    def test_gaps_are_a_level_where_the_reference_has_them(self):
        made = fit(x=["a", "a", None])
        assert made.transform(pa.table({"x": [None, "a"]})).tolist() == [[0, 1], [1, 0]]

    def test_at_most_thirty_levels(self):
        values = [f"level {k % 60:02d}" for k in range(600)]
        assert len(one_rule(values).levels) == 30

    def test_free_text_is_left_out(self):
        rule = one_rule([f"comment {k}" for k in range(50)])
        assert rule.kind == "left out"
        assert rule.features == []

    def test_numbers_as_categories(self):
        made = TablePreprocessor(categories=["zip"]).fit(pa.table({"zip": [10, 10, 20, 20]}))
        assert made.get_feature_names_out().tolist() == ["zip = 10", "zip = 20"]
        # The same column may hold 20.0 where another file has a gap in it.
        assert made.transform(pa.table({"zip": [20.0, None]})).tolist() == [[0, 1], [0, 0]]

    def test_dictionary_columns(self):
        column = pa.array(["a", "b", "a", "b"]).dictionary_encode()
        assert fit(x=column).transform(pa.table({"x": column}))[:, 0].tolist() == [1, 0, 1, 0]


class TestRefusals:
    @pytest.mark.parametrize(
        "values",
        [
            [dt.date(2024, 1, 1)] * 3,
            [dt.datetime(2024, 1, 1, 12)] * 3,
            [dt.time(12)] * 3,
            [dt.timedelta(1)] * 3,
            ["2024/01/31", "2024/02/28", "2024/03/31"],
            ["31.1.24 12:30", "28.2.24 8:00", "1.3.24 9:15"],
        ],
    )
    def test_dates_by_name(self, values):
        with pytest.raises(ValueError, match="Column 'signed up' holds dates or times"):
            fit(**{"signed up": values})

    def test_lists(self):
        with pytest.raises(ValueError, match="Column 'x' holds list"):
            fit(x=[[1, 2], [3]])

    @pytest.mark.parametrize("kind", [pa.null(), pa.float64(), pa.string(), pa.bool_()])
    def test_all_missing(self, kind):
        with pytest.raises(ValueError, match="Column 'x' has no value in any row of the reference"):
            fit(x=pa.array([None, None], kind))

    def test_nothing_left(self):
        with pytest.raises(ValueError, match="No column is left"):
            fit(x=["a", "b", "c"])

    def test_nothing_varies_in_the_reference(self):
        with pytest.raises(ValueError, match="that the reference's rows differ in some column"):
            fit(x=[1.0, 1.0, 1.0], kind=["a", "a", "a"])
        fit(x=[1.0, None, 1.0])  # that a value is missing is something to go by

    def test_column_absent(self):
        with pytest.raises(ValueError, match="no column 'x'"):
            fit(x=[1.0, 2.0]).transform(pa.table({"y": [1.0]}))

    def test_text_where_numbers_were(self):
        with pytest.raises(ValueError, match="'a' .row 1. where the reference has numbers"):
            fit(x=[1.0, 2.0]).transform(pa.table({"x": ["a"]}))


@pytest.mark.parametrize("frame", [pa.table, pd.DataFrame, pl.DataFrame])
def test_any_kind_of_frame(frame):
    columns = {"x": [1.0, 2.0, 3.0], "c": ["a", "a", "b"], "b": [True, False, True]}
    made = TablePreprocessor().fit(frame(columns))
    assert made.transform(frame(columns)).shape == (3, 4)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (ColumnRule("x", "number", 2.5), "as it is; if missing, the reference's median (2.5)"),
        (ColumnRule("x", "boolean", 1.0, True, missing=1), "missing in 1 trusted row: replaced by"),
        (
            ColumnRule("x", "category", levels=("a",), other=True, grouped=4),
            "1 category, a column each; 4 rare ones put together",
        ),
        (ColumnRule("x", "left out"), "left out: hardly any two rows share a value"),
    ],
)
def test_what_was_done_is_said(rule, words):
    assert words in str(rule)
