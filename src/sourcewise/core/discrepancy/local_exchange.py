"""What the reference and the sources tell each other for the ``local`` discrepancy.

The reference sends out fold models; a source answers with its losses under them (a few numbers),
with fold models of its own and their cross-fitted loss. Nothing a source answers depends on
another source, so sources can be asked in any order, anywhere, and new ones added later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.local import (
    Sample,
    TwoSided,
    from_cauchy,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.folds import stratified_folds

BLOCK_ROWS = 4096  # rows whose losses under all reference models are held at a time

RowLoss = Callable[[FloatArray, Any], FloatArray]


@dataclass(frozen=True)
class ReferenceEvidence:
    """The reference's fold models and their losses on the reference's own held-out rows.

    Set 0 uses the whole reference; set ``1 + v`` leaves out validation fold ``v``.

    Attributes
    ----------
    models : batch of fold models, as the family returns them
    average : array of shape (n_sets, n_models)
        How each set averages the models' losses on other rows.
    losses : array of shape (n_sets, n_reference_rows)
        Cross-fitted losses, NaN on rows that the set leaves out.
    shares : array of shape (n_sets, n_reference_rows)
        Row shares of each set.
    tested : int array of shape (n_tests,)
        Models that leave out one fold only, for the p-values.
    held_out : Sample of arrays of shape (n_tests,)
        Loss of each such model on its held-out fold.
    """

    models: Any
    average: FloatArray
    losses: FloatArray
    shares: FloatArray
    tested: IntArray
    held_out: Sample


@dataclass(frozen=True)
class SourceEvidence:
    """What some sources have told; the first axis of every array runs over them.

    Attributes
    ----------
    under_reference : array of shape (n_sources, n_sets)
        Mean loss under the reference's models.
    own : array of shape (n_sources,)
        Cross-fitted mean loss under the source's own models, NaN if it has one row.
    variance_under, variance_own : arrays of shape (n_sources,)
        Of a row's loss under the reference's models (set 0) and under its own; NaN if one row.
    sizes : array of shape (n_sources,)
        Effective number of rows.
    on_reference : array of shape (n_sources, n_reference_rows)
        Loss of the source's own models on each reference row, NaN if it has one row.
    p_values : array of shape (n_sources,)
        Against "same distribution as the reference".
    """

    under_reference: FloatArray
    own: FloatArray
    variance_under: FloatArray
    variance_own: FloatArray
    sizes: FloatArray
    on_reference: FloatArray
    p_values: FloatArray

    def append(self, other: SourceEvidence) -> SourceEvidence:
        """Evidence of these sources and then the others."""
        return SourceEvidence(
            *(
                np.concatenate([getattr(self, f.name), getattr(other, f.name)])
                for f in fields(SourceEvidence)
            )
        )


def reference_evidence(
    X: FloatArray,
    y: Any,
    shares: FloatArray,
    folds: ReferenceFolds,
    family: Family,
    row_loss: RowLoss,
    setting: float,
) -> ReferenceEvidence:
    """Fit the reference's fold models, all pairs of folds included, and judge them."""
    left_out = folds.left_out
    models = fit_fold_models(X, y, shares, folds, family, setting)
    all_losses = row_loss(family.predict(models, X), y)

    losses = folds.cross_fitted(all_losses)
    tested = np.concatenate([folds.models_of(r) for r in range(len(folds.folds))])
    held_out = _sample(all_losses[tested], np.where(left_out[tested], shares, 0.0))
    return ReferenceEvidence(
        models, folds.average(shares), losses, folds.set_shares(shares), tested, held_out
    )


def fit_fold_models(
    X: FloatArray, y: Any, shares: FloatArray, folds: ReferenceFolds, family: Family, setting: float
) -> Any:
    """Models of the reference that leave out ``folds.left_out``."""
    weights = folds.training_weights(shares)
    return family.fit(X, y, weights, np.full(weights.shape[1], setting))


def _sample(losses: FloatArray, shares: FloatArray) -> Sample:
    """Moments along the last axis; the size is the effective one."""
    shares = shares / shares.sum(axis=-1, keepdims=True)
    size = 1.0 / np.sum(shares**2, axis=-1)
    mean = np.sum(losses * shares, axis=-1)
    off = losses - mean[..., None]
    square = size * np.sum(shares * off**2, axis=-1)
    return Sample(mean, square, size * np.sum(shares * off**3, axis=-1), size)


def _from_raw(mean: FloatArray, second: FloatArray, third: FloatArray, size: FloatArray) -> Sample:
    """Moments of losses from the means of their powers."""
    square = np.maximum(second - mean**2, 0.0)
    return Sample(mean, size * square, size * (third - 3.0 * mean * second + 2.0 * mean**3), size)


def source_evidence(
    data: SourceData,
    asked: Sequence[int],
    seeds: Sequence[int],
    reference: ReferenceEvidence,
    trusted: tuple[FloatArray, Any],
    n_folds: int,
    family: Family,
    row_loss: RowLoss,
    setting: float,
) -> SourceEvidence:
    """Ask the sources at positions ``asked``; ``seeds`` draw their folds."""
    parts = []
    for block in row_blocks(data.row_counts[np.asarray(asked, dtype=np.intp)]):
        parts.append(
            _ask(
                data,
                asked[block],
                seeds[block],
                reference,
                trusted,
                n_folds,
                family,
                row_loss,
                setting,
            )
        )
    joined = parts[0]
    for part in parts[1:]:
        joined = joined.append(part)
    return joined


def row_blocks(row_counts: IntArray) -> list[slice]:
    """Split sources into runs of at most `BLOCK_ROWS` rows, or one source."""
    blocks, start, rows = [], 0, 0
    for i, count in enumerate(row_counts):
        if rows and rows + count > BLOCK_ROWS:
            blocks.append(slice(start, i))
            start, rows = i, 0
        rows += int(count)
    return [*blocks, slice(start, len(row_counts))]


def _ask(
    data: SourceData,
    asked: Sequence[int],
    seeds: Sequence[int],
    reference: ReferenceEvidence,
    trusted: tuple[FloatArray, Any],
    n_folds: int,
    family: Family,
    row_loss: RowLoss,
    setting: float,
) -> SourceEvidence:
    """Ask some sources at once: every sum below runs over the rows of each of them."""
    counts = data.row_counts[np.asarray(asked, dtype=np.intp)]
    rows = data.rows_of(asked)
    X, y, shares = data.X[rows], data.y[rows], data.row_shares[rows]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    owner = np.repeat(np.arange(len(asked)), counts)
    sizes = 1.0 / np.add.reduceat(shares**2, starts)

    def per_source(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(values * shares, starts, axis=-1))

    losses = row_loss(family.predict(reference.models, X), y)
    means = per_source(losses)
    tested = losses[reference.tested]
    theirs = _from_raw(means[reference.tested], per_source(tested**2), per_source(tested**3), sizes)
    ours = Sample(*(values[:, None] for values in reference.held_out))
    from_reference = to_cauchy(two_sample_p_values(theirs, ours)).mean(axis=0)
    _, variance_under = _mean_and_variance(reference.average[0] @ losses, per_source, sizes)

    # The sources' own models, each judged on the fold it has not seen and on the reference.
    k = np.where(counts > 1, np.minimum(n_folds, counts), 0)
    fold = np.concatenate(
        [
            stratified_folds(
                y[first : first + n] if data.n_classes else None,
                n,
                max(int(folds), 1),
                np.random.default_rng(seed),
            )
            for first, n, folds, seed in zip(starts, counts, k, seeds, strict=True)
        ]
    )
    model_of_row = np.concatenate([[0], np.cumsum(k)[:-1]])[owner] + fold
    n_models = int(k.sum())
    judged = np.flatnonzero(counts[owner] > 1)
    own = np.full(len(rows), np.nan)
    on_reference = np.full((len(asked), len(trusted[1])), np.nan)
    combined = from_reference
    if n_models:
        models = family.fit_folds(
            X, y, sizes[owner] * shares, starts, counts, fold, k.astype(np.intp), setting
        )
        own[judged] = row_loss(
            family.predict_each(models, model_of_row[judged], X[judged])[None], y[judged]
        )[0]
        foreign = row_loss(family.predict(models, trusted[0]), trusted[1])
        mass = np.bincount(model_of_row[judged], shares[judged], minlength=n_models)
        source_of_model = np.repeat(np.arange(len(asked)), k)
        fitted = np.flatnonzero(k)
        first_model = np.concatenate([[0], np.cumsum(k)[:-1]])[fitted]
        on_reference[fitted] = np.add.reduceat(mass[:, None] * foreign, first_model, axis=0)
        tests = to_cauchy(
            two_sample_p_values(
                _sample_by(model_of_row[judged], own[judged], shares[judged], n_models),
                _sample(foreign, reference.shares[0]),
            )
        )
        own_tests = np.bincount(source_of_model, tests, minlength=len(asked)) / np.maximum(k, 1)
        combined = np.where(k > 0, 0.5 * (from_reference + own_tests), from_reference)
    mean_own, variance_own = _mean_and_variance(own, per_source, sizes)
    return SourceEvidence(
        under_reference=(reference.average @ means).T,
        own=mean_own,
        variance_under=np.where(counts > 1, variance_under, np.nan),
        variance_own=variance_own,
        sizes=sizes,
        on_reference=on_reference,
        p_values=from_cauchy(combined),
    )


def _mean_and_variance(
    losses: FloatArray, per_source: Callable[[FloatArray], FloatArray], sizes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    mean = per_source(losses)
    spread = np.maximum(per_source(losses**2) - mean**2, 0.0)
    return mean, spread * sizes / np.maximum(sizes - 1.0, 1e-9)


def _sample_by(group: IntArray, losses: FloatArray, shares: FloatArray, n_groups: int) -> Sample:
    """Moments of the rows of each group."""
    mass = np.bincount(group, shares, minlength=n_groups)
    size = mass**2 / np.bincount(group, shares**2, minlength=n_groups)

    def mean_of(values: FloatArray) -> FloatArray:
        return np.bincount(group, shares * values, minlength=n_groups) / mass

    return _from_raw(mean_of(losses), mean_of(losses**2), mean_of(losses**3), size)


def compare(reference: ReferenceEvidence, sources: SourceEvidence, chosen_set: int = 0) -> TwoSided:
    """Differences of every source from the reference, on one set of reference rows."""
    shares = reference.shares[chosen_set]
    kept = shares > 0
    own = _sample(reference.losses[chosen_set, kept], shares[kept])
    foreign = _sample(sources.on_reference[:, kept], shares[kept])
    size = own.size

    def error(theirs: FloatArray, ours: FloatArray) -> FloatArray:
        # One row has no variance of its own; the reference's stands in.
        ours = ours / np.maximum(size - 1.0, 1e-9)
        theirs = np.where(np.isnan(theirs), ours, theirs)
        return np.asarray(np.sqrt(theirs / sources.sizes + ours / size))

    return TwoSided(
        reference_loss=float(own.mean),
        reference_error=float(np.sqrt(own.square / np.maximum(size - 1.0, 1e-9) / size)),
        a=sources.under_reference[:, chosen_set] - own.mean,
        b=foreign.mean - sources.own,
        error_a=error(sources.variance_under, own.square),
        error_b=error(sources.variance_own, foreign.square),
    )
