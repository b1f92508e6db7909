"""Coordinates of sparse rows keep their inner products, whatever the rank."""

import numpy as np
import pytest
import scipy.sparse

from sourcewise.core.sparse_rows import SparseRows
from sourcewise.core.sparse_span import SparseSpan, pivoted_cholesky


def sparse_rows(n=12, d=40, repeated=0, seed=0):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    dense[n - repeated :] = dense[:repeated]
    return SparseRows.of(scipy.sparse.csr_array(dense), rng.normal(size=d), rng.normal(size=n))


@pytest.mark.parametrize("repeated", [0, 3])
def test_inner_products_are_kept_and_repeated_rows_need_no_coordinate(repeated):
    X = sparse_rows(repeated=repeated)
    coordinates, _ = SparseSpan.of(X)
    dense = X.features.toarray() - X.shift
    assert coordinates.shape == (12, 12 - repeated + 1)
    np.testing.assert_allclose(coordinates[:, :-1] @ coordinates[:, :-1].T, dense @ dense.T)
    np.testing.assert_array_equal(coordinates[:, -1], X.last)


def test_models_come_back_with_the_same_scores():
    X = sparse_rows(repeated=2)
    coordinates, span = SparseSpan.of(X)
    models = np.random.default_rng(1).normal(size=(2, 3, coordinates.shape[1] - 1))
    back = span.back(models)
    dense = X.features.toarray() - X.shift
    np.testing.assert_allclose(back @ dense.T, models @ coordinates[:, :-1].T, atol=1e-10)
    np.testing.assert_allclose(span.into(back), models, atol=1e-9)


def test_rows_of_zeros_have_no_dimension():
    factor, _, rank = pivoted_cholesky(np.zeros((4, 4)))
    assert rank == 0
    assert factor.shape == (4, 0)
