"""Folds of the reference, and which of their models has not seen what.

To choose the trade-off, discrepancies are needed again without each validation fold of the
reference. Leaving out a validation fold and an inner fold is symmetric in the two, so the models
of all pairs of folds serve every validation fold at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import kept_shares
from sourcewise.core.folds import stratified_folds


@dataclass(frozen=True)
class ReferenceFolds:
    """Repeated folds of the reference, and the held-out sets they give."""

    folds: IntArray  # (n_repeats, n_reference_rows)
    n_folds: int

    @classmethod
    def draw(
        cls,
        labels: NDArray[np.generic] | None,
        n_rows: int,
        n_folds: int,
        n_repeats: int,
        seed: int,
    ) -> ReferenceFolds:
        """Draw the folds of all repeats."""
        rng = np.random.default_rng(seed)
        drawn = [stratified_folds(labels, n_rows, n_folds, rng) for _ in range(n_repeats)]
        return cls(np.stack(drawn), n_folds)

    @property
    def held_out(self) -> NDArray[np.bool_]:
        """Validation masks of shape (n_repeats * n_folds, n_reference_rows)."""
        masks = self.folds[:, None, :] == np.arange(self.n_folds)[None, :, None]
        return np.asarray(masks.reshape(-1, self.folds.shape[1]))

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Rows that each fold model leaves out: in every repeat each fold, then each pair."""
        groups = [*((f,) for f in range(self.n_folds)), *self._pairs]
        return np.stack([np.isin(fold, group) for fold in self.folds for group in groups])

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.n_folds), 2))

    def models_of(self, repeat: int, without: int | None = None) -> IntArray:
        """Return which model has not seen each fold, nor the fold ``without``.

        The entry of ``without`` itself is -1.
        """
        first = repeat * (self.n_folds + len(self._pairs))
        if without is None:
            return first + np.arange(self.n_folds)
        position = {pair: self.n_folds + p for p, pair in enumerate(self._pairs)}
        return np.array(
            [
                -1 if f == without else first + position[min(f, without), max(f, without)]
                for f in range(self.n_folds)
            ]
        )

    def training_weights(self, shares: FloatArray) -> FloatArray:
        """Row weights of every fold model, (n_reference_rows, n_models); unseen rows have none.

        They add up to the effective number of rows seen, as if all rows were equal.
        """
        return np.asarray(np.where(self.left_out, 0.0, shares).T / np.sum(shares**2))

    def set_shares(self, shares: FloatArray) -> FloatArray:
        """Row shares of every set, (n_sets, n_reference_rows): the rows left out have none."""
        return np.stack([shares, *(kept_shares(shares, out) for out in self.held_out)])

    def average(self, shares: FloatArray) -> FloatArray:
        """How every set averages the models' losses on other rows, (n_sets, n_models)."""
        k, n_repeats = self.n_folds, len(self.folds)
        average = np.zeros((1 + n_repeats * k, len(self.left_out)))
        for r, fold in enumerate(self.folds):
            mass = np.bincount(fold, shares, minlength=k)
            average[0, self.models_of(r)] = mass / n_repeats
            for v in range(k):
                others = np.arange(k) != v
                models = self.models_of(r, without=v)[others]
                average[1 + r * k + v, models] = mass[others] / (1.0 - mass[v])
        return average

    def cross_fitted(self, losses: FloatArray) -> FloatArray:
        """Loss of each row under models that have not seen it, on every set of rows.

        Parameters
        ----------
        losses : array of shape (..., n_models, n_reference_rows)
            Of the models that leave out `left_out`.

        Returns
        -------
        losses : array of shape (..., n_sets, n_reference_rows)
            Set 0 is the whole reference, averaged over the repeats; set ``1 + v`` leaves out
            validation fold ``v``, whose rows are NaN.
        """
        rows = np.arange(self.folds.shape[1])
        n_sets = 1 + len(self.folds) * self.n_folds
        found = np.full((*losses.shape[:-2], n_sets, len(rows)), np.nan)
        found[..., 0, :] = 0.0
        for r, fold in enumerate(self.folds):
            found[..., 0, :] += losses[..., self.models_of(r)[fold], rows] / len(self.folds)
            for v in range(self.n_folds):
                kept = np.flatnonzero(fold != v)
                models = self.models_of(r, without=v)[fold[kept]]
                found[..., 1 + r * self.n_folds + v, kept] = losses[..., models, kept]
        return found


@dataclass(frozen=True)
class SingleFolds(ReferenceFolds):
    """Folds whose models leave out one fold each, for learners that are dear to fit.

    Without validation fold ``v`` other rows are judged by the one model that has not seen it. Only
    what the reference knows of itself is then taken from all models, and so from all its rows.
    """

    @property
    def left_out(self) -> NDArray[np.bool_]:
        """Rows that each fold model leaves out."""
        return self.held_out

    def models_of(self, repeat: int, without: int | None = None) -> IntArray:
        """Return which model has not seen each fold; the entry of ``without`` is -1."""
        models = repeat * self.n_folds + np.arange(self.n_folds)
        if without is not None:
            models[without] = -1
        return models

    def average(self, shares: FloatArray) -> FloatArray:
        """How every set averages the models' losses on other rows, (n_sets, n_models)."""
        whole = np.concatenate([np.bincount(f, shares, minlength=self.n_folds) for f in self.folds])
        return np.vstack([whole / len(self.folds), np.eye(len(whole))])
