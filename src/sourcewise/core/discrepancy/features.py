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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, ReferenceRows, SourceData


@dataclass(frozen=True)
class FeatureAnswer:
    r"""Three numbers of every source, each of shape (n_sources,).

    Attributes
    ----------
    own : array
        :math:`\|G_i\|_F^2`, from pairs of different rows; NaN where there are too few.
    cross : array
        :math:`\langle G_i, G_T \rangle`.
    concentration : array
        Sum of the squared shares of the rows that were used.
    """

    own: FloatArray
    cross: FloatArray
    concentration: FloatArray


@dataclass(frozen=True)
class FeatureMessage:
    """What a source is told for the distance of its features: some of the reference's features.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    shares : array of shape (n_rows,)
    most_rows, least_rows : int
        Of a source that are used, and that it has to have.
    """

    rows_beside: ClassVar[int] = 0

    X: FloatArray
    shares: FloatArray
    most_rows: int
    least_rows: int

    def answer(self, sources: SourceData, names: Sequence[Any]) -> FeatureAnswer:
        """Answer for some sources."""
        found = np.full((3, sources.n_sources), np.nan)
        for i, rows in enumerate(sources.slices()):
            if rows.stop - rows.start < self.least_rows:
                continue
            Z, shares = _some_rows(sources.X[rows], sources.row_shares[rows], self.most_rows)
            found[0, i] = _mean_of_pairs(_squared_products(Z, Z), shares)
            found[1, i] = shares @ _squared_products(Z, self.X) @ self.shares
            found[2, i] = np.sum(shares**2)
        return FeatureAnswer(*found)


@dataclass(frozen=True)
class FeatureDistances:
    """Distances of some sources' features; rows like the reference's are at zero."""

    values: FloatArray


@dataclass(frozen=True)
class FeatureQuestion:
    """The features' distance: what is sent, and what the server makes of the answers."""

    reference: ReferenceRows
    choices: Choices

    @cached_property
    def message(self) -> FeatureMessage:
        """What has to be sent to the sources."""
        most, least = self.choices.feature_rows, self.choices.feature_least_rows
        some = _some_rows(self.reference.X, self.reference.shares, most)
        return FeatureMessage(*some, most, least)

    @cached_property
    def _own(self) -> tuple[float, float, float]:
        """Squared norm of the reference's moments, their noise, and the rows they are from."""
        X, shares = self.message.X, self.message.shares
        products = _squared_products(X, X)
        noise = np.sqrt(2.0 * _mean_of_pairs(_centred(products, shares) ** 2, shares))
        return _mean_of_pairs(products, shares), float(noise), float(1.0 / np.sum(shares**2))

    def judge(self, answer: FeatureAnswer) -> FeatureDistances:
        """Compare moments, beyond what noise alone would give."""
        own, noise, size = self._own
        if size < 1.5:
            return FeatureDistances(np.zeros_like(answer.own))
        distance = answer.own - 2.0 * answer.cross + own
        level = noise * (answer.concentration + 1.0 / size)
        beyond = np.maximum(
            np.nan_to_num(distance - self.choices.feature_noise * level, nan=0.0), 0.0
        )
        return FeatureDistances(np.sqrt(beyond / own))


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
