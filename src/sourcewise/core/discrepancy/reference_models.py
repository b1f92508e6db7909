"""What the reference knows of itself: fold models, and their losses on rows they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows
from sourcewise.core.discrepancy.local import Sample
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.losses import BoundedLoss


@dataclass(frozen=True)
class ReferenceModels:
    """Fold models of the reference, all pairs of folds included; fitted once for a fit.

    Set 0 uses the whole reference; set ``1 + v`` leaves out validation fold ``v``.
    """

    rows: ReferenceRows
    folds: ReferenceFolds
    family: Family
    setting: float  # regularisation of these and of all models that they are compared with
    loss: BoundedLoss
    models: Any  # a batch of models, as the family returns them; they leave out ``folds.left_out``

    @classmethod
    def fit(
        cls,
        rows: ReferenceRows,
        folds: ReferenceFolds,
        family: Family,
        setting: float,
        loss: BoundedLoss,
    ) -> ReferenceModels:
        """Fit the models."""
        weights = folds.training_weights(rows.shares)
        models = family.fit(rows.X, rows.y, weights, np.full(weights.shape[1], setting))
        return cls(rows, folds, family, setting, loss, models)

    @cached_property
    def predicted(self) -> FloatArray:
        """Predictions of the reference's rows, (n_models, n_rows, ...)."""
        return self.family.predict(self.models, self.rows.X)

    @cached_property
    def losses(self) -> FloatArray:
        """Loss of every model on every row, (n_models, n_rows)."""
        return self.loss(self.predicted, self.rows.y)

    @cached_property
    def cross_fitted(self) -> FloatArray:
        """Losses on rows that a model has not seen, (n_sets, n_rows); NaN on rows left out."""
        return self.folds.cross_fitted(self.losses)

    @cached_property
    def set_shares(self) -> FloatArray:
        """Row shares of each set, (n_sets, n_rows)."""
        return self.folds.set_shares(self.rows.shares)

    @cached_property
    def set_sizes(self) -> FloatArray:
        """Effective rows of each set."""
        return np.asarray(1.0 / np.sum(self.set_shares**2, axis=1))

    @cached_property
    def average(self) -> FloatArray:
        """How each set averages the models' losses on other rows, (n_sets, n_models)."""
        return self.folds.average(self.rows.shares)

    @cached_property
    def own(self) -> Sample:
        """Losses of the reference under its own models, in each set."""
        shares = self.set_shares
        losses = np.nan_to_num(self.cross_fitted)
        return sample(losses, shares)

    @cached_property
    def tested(self) -> IntArray:
        """Models that leave out one fold only, for the p-values."""
        return np.concatenate([self.folds.models_of(r) for r in range(len(self.folds.folds))])

    @cached_property
    def held_out(self) -> Sample:
        """Loss of each such model on its held-out fold."""
        left_out = self.folds.left_out[self.tested]
        return sample(self.losses[self.tested], np.where(left_out, self.rows.shares, 0.0))


def sample(losses: FloatArray, shares: FloatArray) -> Sample:
    """Moments along the last axis; the size is the effective one."""
    shares = shares / shares.sum(axis=-1, keepdims=True)
    size = 1.0 / np.sum(shares**2, axis=-1)
    mean = np.sum(losses * shares, axis=-1)
    off = losses - mean[..., None]
    square = size * np.sum(shares * off**2, axis=-1)
    return Sample(mean, square, size * np.sum(shares * off**3, axis=-1), size)


def from_raw(mean: FloatArray, second: FloatArray, third: FloatArray, size: FloatArray) -> Sample:
    """Moments of losses from the means of their powers."""
    square = np.maximum(second - mean**2, 0.0)
    return Sample(mean, size * square, size * (third - 3.0 * mean * second + 2.0 * mean**3), size)
