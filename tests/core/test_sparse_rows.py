"""Sparse rows do what an array with the same entries does."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from sourcewise.core.logistic import scores_each
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_rows import (
    SparseRows,
    canonical,
    column_extremes,
    column_sums,
    only_columns,
    squared_norms,
    stack_rows,
)

N, D = 40, 70


def sparse_and_dense(dtype=np.float64, n=N, d=D, seed=0):
    rng = np.random.default_rng(seed)
    features = scipy.sparse.random_array((n, d), density=0.15, rng=rng, format="csr", dtype=dtype)
    shift = rng.normal(size=d).astype(dtype)
    last = np.ones(n, dtype=dtype)
    rows = SparseRows.of(features, shift, last)
    return rows, np.column_stack([features.toarray() - shift, last])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_the_array(dtype):
    rows, X = sparse_and_dense(dtype)
    rng = np.random.default_rng(1)
    W, P = rng.normal(size=(D + 1, 3)).astype(dtype), rng.normal(size=(N, 3)).astype(dtype)
    tolerance = {"rtol": 1e-4, "atol": 1e-4} if dtype == np.float32 else {"atol": 1e-12}
    assert rows.shape == X.shape and len(rows) == N and rows.dtype == dtype
    for found, wanted in (
        (rows @ W, X @ W),
        (rows @ W[:, 0], X @ W[:, 0]),
        (rows.T @ P, X.T @ P),
        (rows.T @ P[:, 0], X.T @ P[:, 0]),
        (W.T @ rows.T, W.T @ X.T),
        (rows @ rows[:7].T, X @ X[:7].T),
        (rows.products(rows), X[:, :-1] @ X[:, :-1].T),
        (squared_norms(rows), squared_norms(X)),
        (rows.weighted_gram(P[:, 0] ** 2), X.T @ (X * P[:, :1] ** 2)),
    ):
        np.testing.assert_allclose(found, wanted, **tolerance)
        assert found.dtype == dtype or found.ndim == 1
    assert rows.largest >= np.abs(X).max()


def test_rows_are_chosen_and_stacked_like_those_of_an_array():
    rows, X = sparse_and_dense()
    W = np.random.default_rng(1).normal(size=(D + 1, 2))
    mask = np.arange(N) % 3 == 0
    for some in (slice(3, 17), slice(None), slice(5, 5), np.array([4, 4, 1]), mask):
        np.testing.assert_allclose(rows[some] @ W, X[some] @ W, atol=1e-12)
    stacked = stack_rows([rows[10:], rows[mask]])
    np.testing.assert_allclose(stacked @ W, np.concatenate([X[10:], X[mask]]) @ W, atol=1e-12)
    assert rows[3:17].features.data.base is not None  # no copy


def test_each_row_is_scored_by_its_own_model():
    rows, X = sparse_and_dense()
    models = np.random.default_rng(1).normal(size=(4, 2, D + 1))
    which = np.arange(N) % 4
    np.testing.assert_allclose(
        scores_each(models, which, rows), scores_each(models, which, X), atol=1e-12
    )


@pytest.mark.parametrize("n, d", [(20, 70), (60, 15), (1, 5)])
def test_coordinates_keep_scores_and_norms(n, d):
    rows, X = sparse_and_dense(n=n, d=d)
    space = RowSpace.of(rows)
    assert space.X.shape[1] <= min(n, d) + 1
    # Models that are combinations of the rows.
    models = np.random.default_rng(2).normal(size=(2, 3, n)) @ X
    there = space.into(models)
    np.testing.assert_allclose(space.X @ there[0].T, X @ models[0].T, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        np.linalg.norm(there[..., :-1], axis=-1), np.linalg.norm(models[..., :-1], axis=-1)
    )
    np.testing.assert_allclose(space.back(there), models, rtol=1e-6, atol=1e-7)


def test_rows_that_repeat_others_or_are_empty_need_no_coordinates():
    rows, X = sparse_and_dense(n=10)
    repeated = stack_rows([rows, rows, rows[:3]])
    space = RowSpace.of(repeated)
    assert space.X.shape == (23, 11)
    np.testing.assert_allclose(
        space.X @ space.X.T, np.tile(X, (3, 1))[:23] @ np.tile(X, (3, 1))[:23].T
    )
    nothing = SparseRows.of(scipy.sparse.csr_array((4, 9)), np.zeros(9), np.ones(4))
    space = RowSpace.of(nothing)
    assert space.X.shape == (4, 1)
    np.testing.assert_array_equal(space.back(np.ones((2, 1))), np.eye(10)[[9, 9]])


def test_statistics_of_columns_count_zeros_that_are_not_stored():
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((30, 20)) < 0.5, rng.normal(size=(30, 20)), 0.0)
    dense[:, 3] = np.linspace(1.0, 2.0, 30)
    dense[:, 4] = 0.0
    X = scipy.sparse.csr_array(dense)
    np.testing.assert_allclose(column_sums(X), dense.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(column_sums(X, lambda v, c: v**2), (dense**2).sum(axis=0))
    low, high = column_extremes(X)
    np.testing.assert_array_equal(low, dense.min(axis=0))
    np.testing.assert_array_equal(high, dense.max(axis=0))


@pytest.mark.parametrize("kept", [[], [2], [0, 3, 4], [0, 1, 2, 3, 4]])
def test_chosen_columns_bring_along_nothing_of_the_others(kept):
    dense = np.array([[0, 1.0, 0, 2, 0], [0, 0, 0, 0, 0], [3, 4, 5, 0, 6]])
    X = scipy.sparse.csr_array(dense)
    found = only_columns(X, np.array(kept, dtype=int))
    found.check_format(full_check=True)
    assert found.has_sorted_indices and found.has_canonical_format
    np.testing.assert_array_equal(found.toarray(), dense[:, kept])
    assert len(found.data) == np.count_nonzero(dense[:, kept])
    assert found.indices.dtype == found.indptr.dtype


def test_canonical_form_is_a_copy_only_where_it_has_to_be():
    good = scipy.sparse.csr_array(np.eye(3))
    assert canonical(good) is good
    data, indices, pointers = [1.0, 2.0, 3.0], [2, 0, 2], [0, 3, 3, 3]
    odd = scipy.sparse.csr_array((data, indices, pointers), shape=(3, 3))
    np.testing.assert_array_equal(canonical(odd).data, [2.0, 4.0])
    np.testing.assert_array_equal(odd.data, data)
