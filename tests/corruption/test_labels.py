import numpy as np
import pytest

from sourcewise.corruption import flip_labels, label_bias, shuffle_labels

ALL = [flip_labels, label_bias, shuffle_labels]


def rows(n=40):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)), rng.integers(0, 2, n)


@pytest.mark.parametrize("corrupt", ALL)
@pytest.mark.parametrize("p", [0.0, 0.2, 1.0])
def test_touches_its_share_of_rows_and_no_other(corrupt, p):
    X, y = rows()
    before = X.copy(), y.copy()
    done = corrupt(X, y, p=p, random_state=3)
    assert done.mask.sum() == round(p * 40)
    np.testing.assert_array_equal(done.y[~done.mask], y[~done.mask])
    np.testing.assert_array_equal(done.X, X)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("corrupt", ALL)
def test_same_seed_same_rows(corrupt):
    X, y = rows()
    one, two = (corrupt(X, y, p=0.5, random_state=1) for _ in range(2))
    np.testing.assert_array_equal(one.mask, two.mask)
    np.testing.assert_array_equal(one.y, two.y)


@pytest.mark.parametrize("corrupt", ALL)
def test_a_share_outside_zero_and_one_is_refused(corrupt):
    with pytest.raises(ValueError, match="share of rows to corrupt, between 0 and 1; got 1.5"):
        corrupt(*rows(), p=1.5)


def test_what_each_does():
    X, y = rows()
    assert (label_bias(X, y).y == 1).all()
    assert (label_bias(X, y, label=0).y == 0).all()
    assert (flip_labels(X, y).y == 1 - y).all()
    np.testing.assert_array_equal(flip_labels(X[:3], np.array(["a", "b", "c"])).y, ["b", "c", "a"])
    shuffled = shuffle_labels(X, y, random_state=0).y
    assert shuffled.sum() == y.sum() and (shuffled != y).any()


def test_flipping_a_single_class_needs_to_know_the_others():
    with pytest.raises(ValueError, match="needs at least two classes"):
        flip_labels(np.zeros((2, 1)), [1, 1])
    assert flip_labels(np.zeros((2, 1)), [1, 1], classes=[0, 1]).y.tolist() == [0, 0]
