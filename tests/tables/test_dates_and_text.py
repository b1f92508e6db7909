from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from sourcewise.tables import TablePreprocessor
from sourcewise.tables.values import rarity, text_days, text_features

WRITTEN = {"ymd": "%Y-%m-%d", "dmy": "%d.%m.%Y", "mdy": "%m/%d/%y"}


def fit(values, **how):
    return TablePreprocessor(dates=True, **how).fit(pa.table({"when": values}))


@settings(max_examples=60, deadline=None)
@given(st.dates(dt.date(1970, 1, 1), dt.date(2069, 12, 31)), st.sampled_from(sorted(WRITTEN)))
def test_every_day_of_a_century(day, order):
    values = pa.array([day.strftime(WRITTEN[order])])
    assert text_days(values, order)[0] == (day - dt.date(1970, 1, 1)).days


@pytest.mark.parametrize("value", ["2023-02-29", "2023-13-01", "2023-00-10", "yesterday", "1-2"])
def test_what_is_no_day_is_missing(value):
    assert np.isnan(text_days(pa.array([value]), "ymd")[0])


def test_times_count_as_parts_of_days():
    assert text_days(pa.array(["1970-01-02 06:00", "1970-01-02T12:00:00.5Z"]), "ymd").tolist() == [
        1.25,
        1.5,
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([dt.date(1970, 1, 3), dt.date(1970, 1, 1)], [2.0, 0.0]),
        ([dt.datetime(1970, 1, 2, 12), dt.datetime(1969, 12, 31)], [1.5, -1.0]),
        ([dt.time(13, 30), dt.time(0)], [13.5, 0.0]),
        ([dt.timedelta(days=2), dt.timedelta(hours=6)], [2.0, 0.25]),
    ],
)
def test_typed_dates(values, expected):
    made = fit(values)
    assert made.transform(pa.table({"when": values})).ravel().tolist() == expected


def test_what_was_done_is_said():
    assert "turned into days since 1970-01-01 (read as day-month-year)" in str(
        fit(["31.12.2023", "1.2.2024"]).rules_[0]
    )
    assert "hours since midnight" in str(fit([dt.time(1), dt.time(2)]).rules_[0])


def test_day_or_month_first_is_not_guessed():
    with pytest.raises(ValueError, match="03/04/2024.*whether the day or the month comes first"):
        fit(["03/04/2024", "05/06/2024"])
    assert fit(["03/04/2024", "25/06/2024"]).rules_[0].order == "dmy"
    assert fit(["03/04/2024", "05/26/2024"]).rules_[0].order == "mdy"


def test_rubbish_among_new_dates_is_named():
    made = fit(["2024-01-01", "2024-01-03"])
    with pytest.raises(ValueError, match=r"holds 'soon' \(row 2\) where the reference has dates"):
        made.transform(pa.table({"when": ["2024-01-01", "soon"]}))


TEXTS = ["good work", "bad work", "good good pay", "no pay no work", None, "bad"]


def test_words_are_weighed_like_tf_idf():
    # Without collisions (there are none here) hashing changes names of columns, not numbers.
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    plain = ["" if t is None else t for t in TEXTS]
    expected = vectorizer.fit_transform(plain).toarray()
    values = pa.array(TEXTS)
    found = text_features(values, rarity(values), "float64").toarray()
    assert np.allclose(found @ found.T, expected @ expected.T, atol=1e-12)


def test_untrusted_texts_change_nothing_about_others():
    reference = pa.table({"body": TEXTS})
    made = TablePreprocessor(text=["body"]).fit(reference)
    alone = made.transform(pa.table({"body": ["good pay"]})).toarray()
    among = made.transform(pa.table({"body": ["good pay", "spam " * 50, "good " * 9]})).toarray()
    assert np.array_equal(alone[0], among[0])


def test_text_beside_numbers_is_sparse_and_in_units_of_the_reference():
    table = pa.table({"n": [1e6, 3e6, 1e6, 3e6, 1e6, 3e6], "body": TEXTS})
    made = TablePreprocessor(text=["body"]).fit(table)
    found = made.transform(table)
    assert scipy.sparse.issparse(found)
    assert np.allclose(found[:, [0]].toarray().ravel(), [1, 3] * 3)
    names = made.get_feature_names_out()
    assert names[0] == "n" and "body: good work" in names


def test_numbers_are_no_text_unless_they_are_words():
    with pytest.raises(ValueError, match="no text"):
        TablePreprocessor(text=["x"]).fit(pa.table({"x": [True, False]}))


def test_free_text_that_is_left_out_is_known_as_such():
    table = pd.DataFrame(
        {
            "note": [f"this is remark number {k}" for k in range(20)],
            "id": [f"a{k}" for k in range(20)],
            "x": range(20),
        }
    )
    rules = {rule.name: rule for rule in TablePreprocessor().fit(table).rules_}
    assert rules["note"].wordy and not rules["id"].wordy
