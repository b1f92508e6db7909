"""Losses, their derivatives and what they are known to exceed."""

import warnings

import numpy as np
import pytest

from sourcewise.core.loss import Logistic, Squared, label_sums, loss_of, residuals


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


def value(loss, scores, y):
    """Return the loss of one row by its formula."""
    if isinstance(loss, Squared):
        return 0.5 * (scores[0] - y) ** 2
    if loss.outputs == 1:
        scores = np.append(0.0, scores)
    return np.logaddexp.reduce(scores) - scores[y]


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_derivatives_are_those_of_the_formula(n_classes):
    loss, rng = loss_of(n_classes), np.random.default_rng(0)
    scores = 2.0 * rng.normal(size=(20, loss.outputs))
    y = rng.integers(n_classes, size=20) if n_classes else rng.normal(size=20)
    slopes = loss.residuals(scores.copy(), loss.labels(y, np.float64))
    curvature, parts, step = loss.curvature(scores), loss.parts(scores), 1e-4
    for j, (row, label) in enumerate(zip(scores, y, strict=True)):
        for k in range(loss.outputs):
            up, down = (row + sign * step * np.eye(loss.outputs)[k] for sign in (1, -1))
            above, here, below = (value(loss, z, label) for z in (up, row, down))
            assert slopes[j, k] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)
            second = (above - 2 * here + below) / step**2
            assert curvature[j, k] == pytest.approx(second, rel=1e-3, abs=1e-5)
    if loss.outputs == 1:
        np.testing.assert_allclose(parts, curvature)
    else:
        np.testing.assert_allclose(parts * (1.0 - parts), curvature)


@pytest.mark.parametrize("n_classes", [0, 2, 4])
def test_sums_of_losses_exceed_what_they_are_said_to_exceed(n_classes):
    loss, rng = loss_of(n_classes), np.random.default_rng(1)
    X, W = rng.normal(size=(30, 3)), rng.normal(size=(3, 1, loss.outputs))
    y = rng.integers(n_classes, size=30) if n_classes else rng.normal(size=30)
    labels = loss.labels(y, np.float64)
    P = loss.residuals(X @ W[:, 0], labels)
    gradient = (X.T @ P)[:, None]
    floor = loss.floor(label_sums(labels, P).sum(axis=1), W, gradient)[0]
    whole = sum(value(loss, x @ W[:, 0], label) for x, label in zip(X, y, strict=True))
    assert 0.0 < floor <= whole * (1.0 + 1e-6)
    if n_classes == 0:
        assert floor == pytest.approx(whole)


def test_two_classes_have_signs_and_more_an_indicator():
    np.testing.assert_array_equal(Logistic(2).labels(np.array([0, 1]), float), [[-1.0], [1.0]])
    np.testing.assert_array_equal(Logistic(3).labels(np.array([2, 0]), float), np.eye(3)[[2, 0]])
