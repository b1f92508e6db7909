r"""How far a source's features lie from the reference's, before any label is looked at.

Mixed-up columns, other units or noise change the features' second moments. For a linear hypothesis
and the squared loss these moments are the part of a loss difference that no label has a say in,

.. math:: \epsilon_i(w) - \epsilon_T(w) = w^\top (G_i - G_T) w - 2 w^\top (b_i - b_T) + c,
          \qquad G = E\, x x^\top, \quad b = E\, y x,

so their distance is that of two moment matrices, as a multiple of the reference's own:

.. math:: u_i = \|G_i - G_T\|_F / \|G_T\|_F .

Sources that differ by nature, and are useful all the same, lie at some distance too. A distance
therefore counts only as far as the source is likely to do harm (``combined.py``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.engine import Arrays


def features_sent(reference: ReferenceRows, choices: Choices) -> dict[str, Any]:
    """Return what a source is told: some of the reference's features, and how many rows to use.

    A source of fewer than ``least_rows`` says nothing.
    """
    X, shares = _some_rows(reference.X, reference.shares, choices.feature_rows)
    return {
        "X": X,
        "shares": shares,
        "most_rows": choices.feature_rows,
        "least_rows": choices.feature_least_rows,
    }


def describe_features(
    sources: SourceData, X: FloatArray, shares: FloatArray, most_rows: int, least_rows: int
) -> Arrays:
    r"""Tell three numbers of every source.

    ``feature_norms`` is :math:`\|G_i\|_F^2`, from pairs of different rows, ``feature_products`` is
    :math:`\langle G_i, G_T \rangle`, and ``concentration`` the sum of the squared shares of the
    rows that were used; NaN where there are too few.
    """
    found = np.full((3, sources.n_sources), np.nan)
    for i, rows in enumerate(sources.slices()):
        if rows.stop - rows.start < least_rows:
            continue
        Z, own = _some_rows(sources.X[rows], sources.row_shares[rows], most_rows)
        found[0, i] = _mean_of_pairs(_squared_products(Z, Z), own)
        found[1, i] = own @ _squared_products(Z, X) @ shares
        found[2, i] = np.sum(own**2)
    return dict(zip(("feature_norms", "feature_products", "concentration"), found, strict=True))


def features_known(sent: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """Return what answers are compared with.

    The squared norm of the reference's moments, their noise, and the rows they are from.
    """
    X, shares = sent["X"], sent["shares"]
    products = _squared_products(X, X)
    noise = np.sqrt(2.0 * _mean_of_pairs(_centred(products, shares) ** 2, shares))
    return {
        "own": _mean_of_pairs(products, shares),
        "noise": choices.feature_noise * float(noise),
        "size": float(1.0 / np.sum(shares**2)),
    }


def judge_features(answer: Arrays, own: float, noise: float, size: float) -> Findings:
    """Find how ``far`` features lie, beyond what noise alone would give.

    Rows like the reference's are at zero.
    """
    norms = answer["feature_norms"]
    if size < 1.5:
        return {"far": np.zeros_like(norms)}
    distance = norms - 2.0 * answer["feature_products"] + own
    level = noise * (answer["concentration"] + 1.0 / size)
    beyond = np.maximum(np.nan_to_num(distance - level, nan=0.0), 0.0)
    return {"far": np.sqrt(beyond / own)}


def _some_rows(X: FloatArray, shares: FloatArray, most: int) -> tuple[FloatArray, FloatArray]:
    """Features and shares of a source's rows, of many rows some at random."""
    if len(X) > most:
        # Seeded by their number alone, so that neither names nor other sources matter.
        chosen = np.random.default_rng(len(X)).permutation(len(X))[:most]
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
