"""What every corruption promises."""

import inspect

import numpy as np
import pytest

from sourcewise import corruption
from sourcewise.corruption import Corrupted
from sourcewise.corruption.sources import IMAGE_KINDS, KINDS

ALL = list(KINDS.values())
CHANGES_FEATURES = {
    "shuffle_features",
    "feature_noise",
    "feature_scale",
    "duplicate_rows",
    *IMAGE_KINDS,
}
CHANGES_LABELS = {
    "label_bias",
    "shuffle_labels",
    "flip_labels",
    "class_confusion",
    "duplicate_rows",
}
each_corruption = pytest.mark.parametrize("corrupt", ALL, ids=list(KINDS))


def rows(corrupt, n=40, n_classes=3):
    rng = np.random.default_rng(0)
    shape = (n, 6, 4, 3) if corrupt.__name__ in IMAGE_KINDS else (n, 5)
    return rng.uniform(size=shape), rng.integers(0, n_classes, n)


def test_all_of_them_are_public():
    assert set(KINDS) <= set(corruption.__all__)


@each_corruption
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_touches_its_share_of_rows_and_no_other(corrupt, p):
    X, y = rows(corrupt)
    before = X.copy(), y.copy()
    done = corrupt(X, y, p=p, random_state=3)
    assert isinstance(done, Corrupted)
    assert done.mask.dtype == bool and done.mask.sum() == round(p * 40)
    np.testing.assert_array_equal(done.X[~done.mask], X[~done.mask])
    np.testing.assert_array_equal(done.y[~done.mask], y[~done.mask])
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])
    assert not np.shares_memory(done.X, X) and not np.shares_memory(done.y, y)


@each_corruption
def test_changes_what_it_says_and_nothing_else(corrupt):
    X, y = rows(corrupt)
    done = corrupt(X, y, random_state=3)
    assert (done.X != X).any() == (corrupt.__name__ in CHANGES_FEATURES)
    assert (done.y != y).any() == (corrupt.__name__ in CHANGES_LABELS)


@each_corruption
def test_same_seed_same_rows(corrupt):
    X, y = rows(corrupt)
    one, two, other = (corrupt(X, y, p=0.5, random_state=seed) for seed in (1, 1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one.mask != other.mask).any()


@each_corruption
def test_a_share_outside_zero_and_one_is_refused(corrupt):
    with pytest.raises(ValueError, match="share of rows to corrupt, between 0 and 1; got -0.1"):
        corrupt(*rows(corrupt), p=-0.1)


@each_corruption
def test_lists_and_words(corrupt):
    X, _ = rows(corrupt, 3)
    done = corrupt(X.tolist(), ["a", "b", "a"], random_state=0)
    assert set(done.y.tolist()) <= {"a", "b"} and done.X.shape == X.shape


@each_corruption
def test_options_are_named(corrupt):
    kinds = [p.kind for p in inspect.signature(corrupt).parameters.values()][2:]
    assert set(kinds) == {inspect.Parameter.KEYWORD_ONLY}
