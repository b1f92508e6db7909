from __future__ import annotations

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from sourcewise.experiments.significance_tables import Counts, count, significance

NONE = np.nan
# Mean 2 and standard deviation 1, both exact.
OURS = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        ([4.0, 5.0, 6.0], 1),  # means differ by 3, deviations add up to 2
        ([3.0, 4.0, 5.0], 0),  # by exactly 2: error bars touch
        ([3.0, 4.0 + 1e-9, 5.0], 1),  # by a little more
        ([1.0, 2.0, 3.0], 0),
        ([-1.0, 0.0, 1.0], 0),  # touch on the other side
        ([-1.5, -0.5, 0.5], -1),
        ([4.5, 4.5, 4.5], 1),  # no deviation of its own
        ([0.0, 5.0, 10.0], 0),  # means differ by 3, deviations add up to 6
    ],
)
def test_error_bars_must_not_meet(theirs, expected):
    assert significance([OURS], [theirs]).tolist() == [expected]


def test_without_any_deviation_every_difference_counts():
    same, other = [[0.25] * 3], [[0.5] * 3]
    assert significance(same, same).tolist() == [0]
    assert significance(same, other).tolist() == [1]
    assert significance(other, same).tolist() == [-1]


def test_one_repeat_has_no_deviation():
    assert count([[0.1], [0.2]], [[0.9], [0.9]]) == Counts(0, 0, 0, missing=2, partial=0)
    assert count([[0.1, NONE]], [[0.9, NONE]]) == Counts(0, 0, 0, missing=1, partial=0)


def test_the_same_repeats_count_and_others_do_not():
    ours = [[0.1, 0.1, 0.1], [0.1, 0.1, NONE], [0.1, 0.1, NONE], [NONE] * 3, [0.1, 0.1, 0.1]]
    theirs = [[0.9, 0.9, 0.9], [0.9, 0.9, NONE], [0.9, NONE, 0.9], [NONE] * 3, [NONE] * 3]
    counts = count(ours, theirs)
    assert counts == Counts(better=2, equal=0, worse=0, missing=3, partial=1)
    assert counts.cells == 2


def test_a_method_that_was_not_run():
    counts = count(np.full((4, 3), 0.1), np.full((4, 3), NONE))
    assert counts == Counts(0, 0, 0, missing=4, partial=0)
    assert str(counts) == "–"


def test_no_cells():
    assert count(np.empty((0, 3)), np.empty((0, 3))) == Counts(0, 0, 0, 0, 0)


def test_written_as_in_the_paper():
    theirs = [[4.0, 5.0, 6.0], OURS, OURS, [-1.5, -0.5, 0.5]]
    assert str(count([OURS] * 4, theirs)) == "1/2/1"


ERRORS = st.floats(0, 1).map(lambda x: round(x, 3)) | st.just(NONE)


@given(arrays(float, (2, 5, 4), elements=ERRORS))
def test_against_the_definition_cell_by_cell(errors):
    ours, theirs = errors
    for a, b, found in zip(ours, theirs, significance(ours, theirs), strict=True):
        if np.isnan(a).tolist() != np.isnan(b).tolist() or np.isfinite(a).sum() < 2:
            assert np.isnan(found)
            continue
        x, y = a[np.isfinite(a)].tolist(), b[np.isfinite(b)].tolist()
        excess = abs(statistics.mean(x) - statistics.mean(y))
        excess -= statistics.stdev(x) + statistics.stdev(y)
        if abs(excess) > 1e-12:
            expected = np.sign(statistics.mean(y) - statistics.mean(x)) if excess > 0 else 0
            assert found == expected


@given(arrays(float, (2, 5, 4), elements=ERRORS))
def test_what_one_wins_the_other_loses(errors):
    ours, theirs = errors
    one, other = count(ours, theirs), count(theirs, ours)
    assert (one.better, one.equal, one.worse) == (other.worse, other.equal, other.better)
    assert one.missing == other.missing
    assert one.cells + one.missing == 5
