r"""How far a source's features lie from the reference's, before any label is looked at.

Mixed-up columns, other units or noise change the features' second moments. For a linear hypothesis
and the squared loss these moments are the part of a loss difference that no label has a say in,

.. math:: \epsilon_i(w) - \epsilon_T(w) = w^\top (G_i - G_T) w - 2 w^\top (b_i - b_T) + c,
          \qquad G = E\, x x^\top, \quad b = E\, y x,

so their distance is that of two moment matrices, as a multiple of the reference's own:

.. math:: u_i = \|G_i - G_T\|_F / \|G_T\|_F .

Sources that differ by nature, and are useful all the same, lie at some distance too. A distance
therefore tells against a source only beyond that of the nearest ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sourcewise.core.data import FloatArray, SourceData

MOST_ROWS = 300  # of a source: enough to tell, and the work grows with their square
LEAST_ROWS = 3  # below, moments are not told from noise
# Distances count beyond so many standard deviations that rows like the reference's would have.
BEYOND_NOISE = 2.0
# They count beyond half as much again as the nearest tenth of the sources has.
NEAREST_SHARE = 0.1
MARGIN = 0.5


def beyond_nearest(distances: FloatArray) -> FloatArray:
    """By how much each distance exceeds what the nearest sources make look natural."""
    natural = (1.0 + MARGIN) * np.quantile(distances, NEAREST_SHARE)
    return np.asarray(np.maximum(distances - natural, 0.0))


def feature_distances(data: SourceData, asked: Sequence[int]) -> FloatArray:
    """Measure the sources at positions ``asked``; rows like the reference's are at zero."""
    X, shares = _some_rows(data, data.reference)
    products = _squared_products(X, X)
    own = _mean_of_pairs(products, shares)
    noise = np.sqrt(2.0 * _mean_of_pairs(_centred(products, shares) ** 2, shares))
    size = 1.0 / np.sum(shares**2)
    values = np.zeros(len(asked))
    for k, i in enumerate(asked):
        if data.row_counts[i] < LEAST_ROWS or size < 1.5:
            continue
        Z, z_shares = _some_rows(data, i)
        distance = (
            _mean_of_pairs(_squared_products(Z, Z), z_shares)
            - 2.0 * z_shares @ _squared_products(Z, X) @ shares
            + own
        )
        level = noise * (np.sum(z_shares**2) + 1.0 / size)
        values[k] = np.sqrt(max(distance - BEYOND_NOISE * level, 0.0) / own)
    return values


def _some_rows(data: SourceData, source: int) -> tuple[FloatArray, FloatArray]:
    """Features and shares of a source's rows, of many rows some at random."""
    rows = data.rows(source)
    X, shares = data.X[rows], data.row_shares[rows]
    if len(X) > MOST_ROWS:
        # Seeded by their number alone, so that neither names nor other sources matter.
        chosen = np.random.default_rng(len(X)).permutation(len(X))[:MOST_ROWS]
        X, shares = X[chosen], shares[chosen]
        shares = shares / shares.sum()
    return X, shares


def _squared_products(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Inner products of moment matrices of rows: that of ``x x'`` and ``z z'`` is (x'z)^2."""
    return np.asarray((X @ Z.T) ** 2)


def _mean_of_pairs(products: FloatArray, shares: FloatArray) -> float:
    """Mean over pairs of different rows, which is free of bias."""
    itself = float(np.sum(shares**2 * np.diag(products)))
    pairs = 1.0 - float(np.sum(shares**2))
    return (float(shares @ products @ shares) - itself) / max(pairs, 1e-12)


def _centred(products: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the same products of moment matrices less their mean."""
    row_means = products @ shares
    return np.asarray(products - row_means[:, None] - row_means + shares @ row_means)
