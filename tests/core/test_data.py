import numpy as np

from sourcewise.core.data import group_rows


def test_rows_are_grouped_in_order_and_can_be_found_again():
    rng = np.random.default_rng(0)
    X, source = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    y = rng.integers(0, 2, 30)
    data, order = group_rows(X, y, source, reference=1, n_classes=2)
    np.testing.assert_array_equal(data.X, X[order])
    np.testing.assert_array_equal(data.y, y[order])
    np.testing.assert_array_equal(data.source_of_row, source[order])
    for i, rows in enumerate(data.slices()):
        np.testing.assert_array_equal(data.X[rows], X[source == i])


def test_effective_size_is_the_row_count_unless_rows_are_weighted():
    X, y, source = np.zeros((5, 1)), np.zeros(5, dtype=int), np.array([0, 0, 1, 1, 1])
    plain, _ = group_rows(X, y, source, reference=0, n_classes=2)
    np.testing.assert_allclose(plain.sizes, [2, 3])
    weight = np.array([7.0, 7.0, 1.0, 1.0, 0.0])
    weighted, _ = group_rows(X, y, source, reference=0, n_classes=2, sample_weight=weight)
    np.testing.assert_allclose(weighted.sizes, [2, 2])
    np.testing.assert_allclose(np.add.reduceat(weighted.row_shares, [0, 2]), 1.0)


def test_some_sources_in_another_order():
    X, source = np.arange(12.0)[:, None], np.repeat([0, 1, 2], 4)
    data, _ = group_rows(X, np.zeros(12, dtype=int), source, reference=0, n_classes=2)
    chosen = data.select([2, 0])
    np.testing.assert_array_equal(chosen.X[:, 0], [8, 9, 10, 11, 0, 1, 2, 3])
    assert chosen.reference == 1
    assert data.select([0, 1, 2]) is data
