import numpy as np
import pytest

from sourcewise.corruption import (
    class_confusion,
    duplicate_rows,
    feature_noise,
    feature_scale,
    label_bias,
    shuffle_features,
)


def rows(n=400, n_classes=3):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 5)) * [1, 2, 3, 4, 0] + 1, rng.integers(0, n_classes, n)


def test_shuffled_features_are_permuted():
    X, y = rows()
    order = np.array([4, 3, 2, 1, 0])
    np.testing.assert_array_equal(shuffle_features(X, y, permutation=order).X, X[:, order])
    drawn = shuffle_features(X, y, random_state=0).X
    np.testing.assert_array_equal(np.sort(drawn, axis=1), np.sort(X, axis=1))
    with pytest.raises(ValueError, match="each of the column numbers 0 to 4 once"):
        shuffle_features(X, y, permutation=[0, 0, 1, 2, 3])
    with pytest.raises(ValueError, match="X must be a table"):
        shuffle_features(X[:, 0], y)


def test_noise_is_in_units_of_each_feature():
    X, y = rows()
    noise = feature_noise(X, y, scale=2.0, random_state=0).X - X
    np.testing.assert_allclose(noise.std(axis=0)[:4] / X.std(axis=0)[:4], 2.0, rtol=0.15)
    assert (noise[:, 4] == 0).all()
    with pytest.raises(ValueError, match="scale must be a number that is not negative"):
        feature_noise(X, y, scale=-1.0)


def test_scale_and_whole_numbers():
    X, y = rows()
    np.testing.assert_allclose(feature_scale(X, y, factor=3.0).X, 3.0 * X)
    whole = feature_scale(np.array([[2, 4]]), [0], factor=[0.25, 1.0]).X
    np.testing.assert_allclose(whole, [[0.5, 4.0]])
    assert feature_scale(X.astype(np.float32), y).X.dtype == np.float32


def test_duplicates_keep_the_number_of_rows():
    X, y = rows()
    done = duplicate_rows(X, y, p=0.5, n_distinct=3, random_state=0)
    assert done.X.shape == X.shape
    copies = np.unique(done.X[done.mask], axis=0)
    assert len(copies) == 3
    original = {tuple(row): label for row, label in zip(X, y, strict=True)}
    assert all(original[tuple(r)] == t for r, t in zip(done.X, done.y, strict=True))
    with pytest.raises(ValueError, match="n_distinct must be a whole number, at least 1"):
        duplicate_rows(X, y, n_distinct=0)


def test_confusion_follows_its_table():
    X, y = rows(6000)
    table = [[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]
    done = class_confusion(X, y, confusion=table, random_state=0)
    found = np.array([[np.mean(done.y[y == a] == b) for b in range(3)] for a in range(3)])
    np.testing.assert_allclose(found, table, atol=0.03)
    halves = class_confusion(X, y, random_state=0)
    assert (halves.y[y == 2] == 2).all() and 0.4 < np.mean(halves.y[y == 0]) < 0.6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confusion": [[1.0]]}, "one row and one column for each of the 3 classes"),
        ({"confusion": np.ones((3, 3))}, "probabilities that sum to 1"),
        ({"classes": [0, 1]}, "The label 2 is not among classes"),
        ({"classes": [0]}, "at least two classes"),
    ],
)
def test_confusions_that_make_no_sense(options, message):
    with pytest.raises(ValueError, match=message):
        class_confusion(*rows(), **options)


def test_a_longer_label_is_not_cut():
    assert label_bias([[0]], ["no"], label="maybe").y.tolist() == ["maybe"]
