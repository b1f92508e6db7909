import warnings

import numpy as np
import pytest

from sourcewise.core.residuals import residuals


def plain(scores, labels):
    """Probability minus indicator of one row in double precision, the label's from the others."""
    if len(labels) == 1:
        return -labels / (1.0 + np.exp(np.clip(labels * scores, -700, 700)))
    p = np.exp(scores - np.logaddexp.reduce(scores))
    own = labels.argmax()
    p[own] = -np.delete(p, own).sum()
    return p


@pytest.mark.parametrize("n_outputs", [1, 3, 7])
@pytest.mark.parametrize("spread", [0.1, 10.0, 25.0, 60.0, 1e4])
@pytest.mark.parametrize("shift", [0.0, 50.0, -300.0])
def test_residuals_are_those_of_double_precision_relative_to_themselves(n_outputs, spread, shift):
    rng = np.random.default_rng(0)
    n, columns = 40, 3
    scores = spread * rng.uniform(-1, 1, size=(n, n_outputs, columns)) + shift * (n_outputs > 1)
    labels = np.eye(n_outputs)[rng.integers(n_outputs, size=n)]
    if n_outputs == 1:
        labels = rng.choice([-1.0, 1.0], size=(n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = residuals(scores.reshape(n, -1), labels).reshape(scores.shape)
    for j in range(n):
        for c in range(columns):
            # Scores of single precision are what they are; smaller residuals are none.
            expected = plain(scores[j, :, c], labels[j])
            rounding = 1e-5 + 4e-7 * (spread + abs(shift))
            np.testing.assert_allclose(found[j, :, c], expected, rtol=rounding, atol=1e-37)


def test_one_row_far_off_changes_no_other_row():
    scores = np.random.default_rng(1).normal(size=(5, 4))
    labels = np.eye(4)[[0, 1, 2, 3, 0]]
    near = residuals(scores, labels)
    scores[4] *= 1e5
    np.testing.assert_allclose(residuals(scores, labels)[:4], near[:4], rtol=1e-6)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_no_rows_have_no_residuals(n_outputs):
    assert residuals(np.zeros((0, 2 * n_outputs)), np.zeros((0, n_outputs))).size == 0
