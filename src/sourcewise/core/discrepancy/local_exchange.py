"""What the reference and the sources tell each other for the ``local`` discrepancy.

The reference sends out fold models; a source answers with its losses under them (a few numbers),
with fold models of its own and their cross-fitted loss. The server judges the source's models on
the reference's rows. Nothing a source answers depends on another source, so sources can be asked in
any order, anywhere, and new ones added later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.local import (
    LocalFindings,
    Sample,
    from_cauchy,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.reference_models import ReferenceModels, from_raw, sample
from sourcewise.core.family import Family, SourceRuns
from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.losses import BoundedLoss


@dataclass(frozen=True)
class LocalAnswer:
    """What some sources tell; the last axis of every array runs over them.

    Attributes
    ----------
    sizes : array of shape (n_sources,)
        Effective number of rows.
    means : array of shape (n_models, n_sources)
        Mean loss under each of the reference's models.
    squares, cubes : arrays of shape (n_tests, n_sources)
        Means of squared and cubed losses under those that are tested.
    variance_under, variance_own : arrays of shape (n_sources,)
        Of a row's loss under the reference's models (averaged) and under its own; NaN if one row.
    own : array of shape (n_sources,)
        Cross-fitted mean loss under the source's own models, NaN if it has one row.
    n_folds : int array of shape (n_sources,)
        Own models of each source, 0 if it has one row.
    own_models : batch of models
        In (source, fold) order.
    own_samples : Sample of arrays of shape (n_own_models,)
        Loss of each own model on the fold it has not seen.
    masses : array of shape (n_own_models,)
        Share of that fold in its source.
    """

    sizes: FloatArray
    means: FloatArray
    squares: FloatArray
    cubes: FloatArray
    variance_under: FloatArray
    variance_own: FloatArray
    own: FloatArray
    n_folds: IntArray
    own_models: Any
    own_samples: Sample
    masses: FloatArray


@dataclass(frozen=True)
class LocalMessage:
    """What a source is told for the ``local`` discrepancy: models and how to fit its own.

    Attributes
    ----------
    family : Family
    setting : float
    loss : BoundedLoss
    models : batch of models
        The reference's.
    average : array of shape (n_models,)
        How the whole reference averages their losses.
    tested : int array of shape (n_tests,)
    n_folds : int
        Of the source's own models, fewer if it has fewer rows.
    seed : int
        Draws, with the source's name, the source's folds.
    """

    rows_beside: ClassVar[int] = 0

    family: Family
    setting: float
    loss: BoundedLoss
    models: Any
    average: FloatArray
    tested: IntArray
    n_folds: int
    seed: int

    def answer(
        self, sources: SourceData, names: Sequence[Any], predicted: FloatArray | None = None
    ) -> LocalAnswer:
        """Answer for some sources at once: every sum below runs over the rows of each of them.

        ``predicted`` are the models' predictions of the rows, if they are known.
        """
        X, y, shares, counts = sources.X, sources.y, sources.row_shares, sources.row_counts
        starts = sources.starts[:-1]
        sizes = 1.0 / np.add.reduceat(shares**2, starts)

        def per_source(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values * shares, starts, axis=-1))

        def variance(losses: FloatArray) -> FloatArray:
            spread = np.maximum(per_source(losses**2) - per_source(losses) ** 2, 0.0)
            return spread * sizes / np.maximum(sizes - 1.0, 1e-9)

        if predicted is None:
            predicted = self.family.predict(self.models, X)
        losses = self.loss(predicted, y)
        tested = losses[self.tested]
        # The source's own models, each judged on the fold that it has not seen.
        k = np.where(counts > 1, np.minimum(self.n_folds, counts), 0)
        fold = self._folds(sources, names, k)
        owner = sources.source_of_row
        model_of_row = np.concatenate([[0], np.cumsum(k)[:-1]])[owner] + fold
        judged = np.flatnonzero(counts[owner] > 1)
        own = np.full(len(y), np.nan)
        models: Any = None
        if len(judged):
            runs = SourceRuns(X, y, sizes[owner] * shares, counts)
            models = self.family.fit_folds(runs, fold, k, self.setting)
            # As a rule all rows are, and need not be copied.
            rows = judged if len(judged) < len(y) else slice(None)
            by_own = self.family.predict_each(models, model_of_row[rows], X[rows])
            own[judged] = self.loss(by_own[None], y[judged])[0]
        n_models = int(k.sum())
        unseen = model_of_row[judged], own[judged], shares[judged]
        return LocalAnswer(
            sizes=sizes,
            means=per_source(losses),
            squares=per_source(tested**2),
            cubes=per_source(tested**3),
            variance_under=np.where(counts > 1, variance(self.average @ losses), np.nan),
            variance_own=variance(own),
            own=per_source(own),
            n_folds=k,
            own_models=models,
            own_samples=_sample_by(*unseen, n_models),
            masses=np.bincount(unseen[0], unseen[2], minlength=n_models).astype(np.float64),
        )

    def _folds(self, sources: SourceData, names: Sequence[Any], n_folds: IntArray) -> IntArray:
        return np.concatenate(
            [
                stratified_folds(
                    sources.y[rows] if sources.n_classes else None,
                    rows.stop - rows.start,
                    max(int(k), 1),
                    np.random.default_rng(named_seed(self.seed, name)),
                )
                for rows, k, name in zip(sources.slices(), n_folds, names, strict=True)
            ]
        )


def _sample_by(group: IntArray, losses: FloatArray, shares: FloatArray, n_groups: int) -> Sample:
    """Moments of the rows of each group."""
    mass = np.bincount(group, shares, minlength=n_groups)
    size = mass**2 / np.bincount(group, shares**2, minlength=n_groups)

    def mean_of(values: FloatArray) -> FloatArray:
        return np.bincount(group, shares * values, minlength=n_groups) / mass

    return from_raw(mean_of(losses), mean_of(losses**2), mean_of(losses**3), size)


@dataclass(frozen=True)
class LocalQuestion:
    """The ``local`` discrepancy: what is sent, and what the server makes of the answers."""

    reference: ReferenceModels
    seed: int

    @cached_property
    def message(self) -> LocalMessage:
        """What has to be sent to the sources."""
        reference = self.reference
        return LocalMessage(
            reference.family,
            reference.setting,
            reference.loss,
            reference.models,
            reference.average[0],
            reference.tested,
            reference.folds.n_folds,
            self.seed,
        )

    def judge(self, answer: LocalAnswer) -> LocalFindings:
        """Compare with the reference, whose rows judge the sources' own models."""
        reference = self.reference
        shares, own, size = reference.set_shares, reference.own, reference.set_sizes
        theirs = from_raw(
            answer.means[reference.tested], answer.squares, answer.cubes, answer.sizes
        )
        ours = Sample(*(values[:, None] for values in reference.held_out))
        tests = to_cauchy(two_sample_p_values(theirs, ours)).mean(axis=0)
        n_sources, k = len(answer.sizes), answer.n_folds
        foreign_mean = np.full((n_sources, len(shares)), np.nan)
        foreign_square = np.full((n_sources, len(shares)), np.nan)
        if k.any():
            X, y = reference.rows.X, reference.rows.y
            losses = reference.loss(reference.family.predict(answer.own_models, X), y)
            fitted = np.flatnonzero(k)
            first = np.concatenate([[0], np.cumsum(k)[:-1]])[fitted]
            averaged = np.add.reduceat(answer.masses[:, None] * losses, first, axis=0)
            foreign_mean[fitted] = averaged @ shares.T
            spread = averaged**2 @ shares.T - foreign_mean[fitted] ** 2
            foreign_square[fitted] = size * np.maximum(spread, 0.0)
            by_model = to_cauchy(two_sample_p_values(answer.own_samples, sample(losses, shares[0])))
            source_of_model = np.repeat(np.arange(n_sources), k)
            own_tests = np.bincount(source_of_model, by_model, minlength=n_sources)
            tests = np.where(k > 0, 0.5 * (tests + own_tests / np.maximum(k, 1)), tests)

        def error(theirs: FloatArray, ours: FloatArray) -> FloatArray:
            # One row has no variance of its own; the reference's stands in.
            ours = ours / np.maximum(size - 1.0, 1e-9)[:, None]
            theirs = np.where(np.isnan(theirs), ours, theirs)
            return np.asarray(np.sqrt(theirs / answer.sizes + ours / size[:, None]))

        return LocalFindings(
            a=reference.average @ answer.means - own.mean[:, None],
            b=foreign_mean.T - answer.own,
            error_a=error(answer.variance_under, own.square[:, None]),
            error_b=error(answer.variance_own, foreign_square.T),
            p_values=from_cauchy(tests),
        )
