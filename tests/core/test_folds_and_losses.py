import numpy as np
import pytest

from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.losses import (
    brier_loss,
    clipped_squared_loss,
    log_loss,
    spread,
    zero_one_loss,
)


@pytest.mark.parametrize("n_folds", [2, 5])
def test_folds_are_even_within_every_class(n_folds):
    labels = np.repeat([0, 1, 2], [23, 11, 6])
    folds = stratified_folds(labels, 40, n_folds, np.random.default_rng(0))
    for label in range(3):
        counts = np.bincount(folds[labels == label], minlength=n_folds)
        assert counts.max() - counts.min() <= 1
    counts = np.bincount(folds, minlength=n_folds)
    assert counts.max() - counts.min() <= 1


def test_named_seeds_differ_by_name_and_by_seed():
    assert len({named_seed(s, n) for s in range(3) for n in ("a", "b", 1, "1 ")}) == 12


def test_losses_by_hand():
    p = np.array([[[0.2, 0.8], [1.0, 0.0]]])
    y = np.array([0, 0])
    np.testing.assert_allclose(brier_loss(p, y), [[0.64, 0.0]])
    np.testing.assert_allclose(log_loss(p, y), [[-np.log(0.2), 0.0]])
    np.testing.assert_array_equal(zero_one_loss(p, y), [[1, 0]])
    predictions = np.array([[0.0, 3.0, 1e300]])
    np.testing.assert_allclose(
        clipped_squared_loss(predictions, np.array([1.0, 1.0, 1.0]), scale=1.0), [[0.25, 1, 1]]
    )


def test_brier_is_bounded_and_is_the_error_of_a_certain_prediction():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(4, 0.3), size=(3, 50))
    y = rng.integers(0, 4, 50)
    loss = brier_loss(p, y)
    assert loss.shape == (3, 50)
    assert (loss >= 0).all() and (loss <= 1).all()
    certain = np.eye(4)[p.argmax(axis=2)]
    np.testing.assert_array_equal(brier_loss(certain, y), zero_one_loss(p, y))


def test_log_loss_of_a_certain_mistake_is_finite():
    assert np.isfinite(log_loss(np.array([[[1.0, 0.0]]]), np.array([1]))).all()


def test_spread_is_the_standard_deviation_but_for_rows_far_off():
    y = np.random.default_rng(0).normal(3.0, 2.0, size=100)
    assert spread(y) == np.std(y)
    for placeholder in (-999.0, 1e6, 1e300):
        spoilt = np.append(y, placeholder)
        assert 1.9 < spread(spoilt) < 4.0
    mostly_one_value = np.array([0.0] * 6 + [1.0, 5.0])
    assert spread(mostly_one_value) == np.std(mostly_one_value)
    assert spread(np.zeros(5)) == 1.0
