"""What X may not be for the default learner, and that the column is named."""

from datetime import date

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise import columns

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


def frame(**more):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"a": X[:, 0], "b": X[:, 1], **more})


def refused(X, sentence, model=None):
    with pytest.raises(ValueError) as caught:
        (model or sw.SourceWeightedClassifier()).fit(X, Y)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("kind", ["object", "category", "string"])
def test_a_column_of_text_is_named(kind):
    pandas = pytest.importorskip("pandas")
    city = pandas.Series(["1"] * 59 + ["paris"], dtype=kind)
    refused(frame(city=city), columns.TEXT_COLUMN.format(column="city", value="paris"))


def test_a_column_of_text_in_an_array_or_a_list_has_a_position():
    table = np.column_stack([X.astype(object), np.array(["paris"] * 60, dtype=object)])
    for rows in (table, table.tolist()):
        refused(rows, columns.TEXT_COLUMN.format(column=2, value="paris"))


def test_numbers_written_as_text_are_numbers():
    model = sw.SourceWeightedClassifier().fit(frame(c=["1", "2.5"] * 30), Y)
    assert model.coef_.shape == (1, 3)


@pytest.mark.parametrize(
    "when",
    [
        np.full(60, "2020-01-01", dtype="datetime64[D]"),
        np.full(60, 3, dtype="timedelta64[h]"),
        [date(2020, 1, 1)] * 60,
    ],
)
def test_a_column_of_dates_is_named(when):
    refused(frame(when=when), columns.DATE_COLUMN.format(column="when"))


def test_nothing_but_dates_is_not_taken_for_numbers():
    dates = np.full((60, 1), "2020-01-01", dtype="datetime64[ns]")
    refused(dates, columns.DATE_COLUMN.format(column=0))


@pytest.mark.parametrize("model", [None, sw.SourceWeightedClassifier(LogisticRegression())])
def test_column_names_of_several_kinds_are_shown(model):
    mixed = frame().rename(columns={"b": 1})
    sentence = columns.NAMES_MIXED.format(one="a", kind_one="str", other=1, kind_other="int")
    refused(mixed, sentence, model)


def test_a_name_that_is_not_there_is_told_what_may_have_been_meant():
    assert columns.meant("vendr", ["age", "vendor"]) == "; did you mean 'vendor'?"
    assert columns.meant(3, [30, 41]) == "; did you mean '30'?"
    assert columns.meant("z", ["a", "b"], most=2) == "; it has 'a', 'b'."
    assert columns.meant("z", ["a", 7, "b"], most=2) == "; it has 'a', 7, ...."
