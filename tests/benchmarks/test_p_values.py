"""The benchmark of honest p-values compares with the textbook's test."""

import numpy as np
from benchmarks.p_values import LEVELS, TESTS, one_draw, student_p_values
from scipy.stats import ttest_ind

from sourcewise.core.discrepancy.local import Sample


def sample(losses):
    off = losses - losses.mean()
    return Sample(losses.mean(), np.sum(off**2), np.sum(off**3), float(len(losses)))


def test_student_is_students():
    rng = np.random.default_rng(0)
    first, second = rng.exponential(size=7), rng.exponential(size=40)
    found = student_p_values(sample(first), sample(second))
    np.testing.assert_allclose(found, ttest_ind(first, second).pvalue)
    same = sample(np.ones(5))
    assert student_p_values(same, same) == 1.0


def test_student_sees_too_much_in_few_rows():
    # Ten rows of wine a source, nothing bad: the library's test should hardly ever fall below 0.01.
    library, student = (
        np.mean([one_draw("wine", test, seed) for seed in range(200, 220)], axis=0)
        for test in TESTS
    )
    assert (library <= LEVELS).all()
    assert student[1] > 2.0 * LEVELS[1]
