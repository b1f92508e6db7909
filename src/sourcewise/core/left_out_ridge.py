r"""Ridge regressions that leave out some rows each, from one factorisation of all rows.

With :math:`A = Z^\top Z + Q` of all rows, scaled by the roots of their weights, and their model
:math:`w`, the model without the rows :math:`S` is, by Woodbury's identity,

.. math:: w_{-S} = w - A^{-1} Z_S^\top \big( I - Z_S A^{-1} Z_S^\top \big)^{-1} (u_S - Z_S w) ,

with :math:`u` the scaled targets: a system of the size of :math:`S` instead of one of all features.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from sourcewise.core.data import FloatArray

LEAST_LEFT = 1e-9  # of 1 minus a row's leverage; below, the identity loses too many digits


def pays(n_left_out: int, n_features: int) -> bool:
    """Whether rows that are ever left out are few enough beside the features."""
    return n_left_out <= 2 * n_features


def ridge_without(
    X: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    left_out: NDArray[np.bool_],
    ridge: FloatArray,
) -> FloatArray | None:
    """Models without the rows of each group.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,)
    left_out : bool array of shape (n_groups, n_some)
        Of the first ``n_some`` rows; the others are in every model.
    ridge : array of shape (n_features,)

    Returns
    -------
    coef : array of shape (n_groups, n_features), or None
        None where rounding would spoil it: a group that all but decides a coefficient.
    """
    root = np.sqrt(weights.astype(np.float64))
    Z, u = X * root[:, None], y * root
    A = Z.T @ Z
    A[np.diag_indices(len(ridge))] += ridge
    some = left_out.shape[1]
    try:
        factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        solved = cho_solve(factor, np.column_stack([Z[:some].T, Z.T @ u]), check_finite=False)
        influence, w = solved[:, :some], solved[:, some]
        leverage = Z[:some] @ influence
        if some and np.diag(leverage).max() > 1.0 - LEAST_LEFT:
            return None
        missed = u[:some] - Z[:some] @ w
        models = np.empty((len(left_out), len(w)))
        for model, group in zip(models, left_out, strict=True):
            S = np.flatnonzero(group)
            left = np.eye(len(S)) - leverage[np.ix_(S, S)]
            part = cho_solve(cho_factor(left, lower=True, check_finite=False), missed[S])
            model[:] = w - influence[:, S] @ part
    except LinAlgError:
        return None
    return models
