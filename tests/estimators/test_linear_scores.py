"""Scores of sparse rows are those of the same rows as an array, cut off alike."""

import numpy as np
import pytest
import scipy.sparse

from sourcewise.core.feature_map import linear_scores, rows_with_constant


@pytest.mark.parametrize("around", [0.0, 3.0])  # where it is not zero, zeros are cut off too
def test_sparse_and_dense_rows_have_the_same_scores(around):
    rng = np.random.default_rng(0)
    X = 5.0 * rng.normal(size=(30, 6)) * (rng.random((30, 6)) < 0.4)
    reach = np.stack([np.full(6, around - 2.0), np.full(6, around + 2.0)])
    coef, intercept = rng.normal(size=(3, 6)), rng.normal(size=3)
    expected = np.clip(X, *reach) @ coef.T + intercept
    np.testing.assert_allclose(linear_scores(X, coef, intercept, reach), expected)
    sparse = scipy.sparse.csr_matrix(X)
    np.testing.assert_allclose(linear_scores(sparse, coef, intercept, reach), expected)
    rows = rows_with_constant(sparse, reach)
    model = np.append(coef[0], intercept[0])
    np.testing.assert_allclose(rows @ model, expected[:, 0])
    np.testing.assert_allclose(rows_with_constant(X, reach) @ model, expected[:, 0])
