"""The paper's discrepancy, judged on rows that the separating model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.moments import (
    Moments,
    SourceRows,
    counted_rows,
    source_rows,
    weighted_moments,
)
from sourcewise.core.discrepancy.permutation import (
    Comparable,
    PermutationQuestion,
    ask_here,
    in_own_span,
    moment_statistic,
    names_of,
    pool,
    separation_statistic,
    source_generator,
)
from sourcewise.core.discrepancy.result import Discrepancies
from sourcewise.core.discrepancy.separation import (
    LossMoments,
    SeparationFindings,
    extreme_models,
    model_losses,
    reference_norm,
    separating_models,
    separation_discrepancies,
)
from sourcewise.core.sparse_rows import whole_norms


class FoldSums(NamedTuple):
    """Share-weighted sums of every fold of one side.

    Attributes
    ----------
    moments : Moments
        Of ``n_folds`` folds.
    masses : array of shape (n_folds,)
        Total share of each fold.
    counts : int array of shape (n_folds,)
        Rows of each fold.
    """

    moments: Moments
    masses: FloatArray
    counts: IntArray


@dataclass(frozen=True)
class CrossFitAnswer:
    """Models of some sources that leave out a fold each, and their losses on the source.

    Attributes
    ----------
    models : array of shape (n_sources, n_sets, n_folds, n_targets, n_features)
    fold_weights : array of shape (n_sources, n_sets, n_folds)
    losses : LossMoments
        Of shape (n_sources, n_sets, n_targets).
    """

    models: FloatArray
    fold_weights: FloatArray
    losses: LossMoments


@dataclass(frozen=True)
class CrossFitMessage:
    """What a source is told: the reference's sums over its folds, whole and without each fold.

    Attributes
    ----------
    sums : tuple of FoldSums
        Of every set of reference rows.
    norm_bounds : array of shape (n_sets,)
        For regression.
    relative_ridge : float
    n_features : int
        Features that the ridge is relative to; in a row space there are fewer coordinates.
    seed : int
    rows_beside : int
        Reference rows, which judge the models.
    """

    sums: tuple[FoldSums, ...]
    norm_bounds: FloatArray
    relative_ridge: float
    n_features: int
    seed: int
    rows_beside: int

    def answer(self, sources: SourceData, names: Sequence[Any]) -> CrossFitAnswer:
        """Answer for some sources."""
        parts = [
            self._of_source(source_rows(sources, i), name, sources.n_classes)
            for i, name in enumerate(names)
        ]
        models, fold_weights, means, variances = (
            np.array(part) for part in zip(*parts, strict=True)
        )
        return CrossFitAnswer(models, fold_weights, LossMoments(means, variances))

    def _of_source(
        self, rows: SourceRows, name: object, n_classes: int
    ) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray], list[FloatArray]]:
        n_folds = len(self.sums[0].counts)
        folds = random_folds(len(rows.shares), n_folds, self.seed, name)
        own = _fold_sums(rows, folds, n_folds)
        kept_in = 1.0 - np.eye(n_folds)
        source_fits, whole = _normalised(own, kept_in), _normalised(own, np.ones((1, n_folds)))
        all_models, all_weights, means, variances = [], [], [], []
        for sums, bound in zip(self.sums, self.norm_bounds, strict=True):
            fold_weights = _fold_weights(own.counts, sums.counts)
            reference_fits = _normalised(sums, kept_in)
            if n_classes == 0:
                models = extreme_models(source_fits, reference_fits, norm_bound=bound)
            else:
                both = whole.gram[0] + _normalised(sums, np.ones((1, n_folds))).gram[0]
                ridge = self.relative_ridge * float(np.trace(both)) / self.n_features / 2.0
                models = separating_models(source_fits, reference_fits, ridge=ridge)
            losses = LossMoments.of(
                _held_out_losses(rows, folds, models, n_classes),
                _weights_by_fold(rows.shares, folds, fold_weights),
            )
            all_models.append(models)
            all_weights.append(fold_weights)
            means.append(losses.mean)
            variances.append(losses.variance)
        return all_models, all_weights, means, variances


@dataclass(frozen=True)
class CrossFitQuestion:
    """The cross-fitted discrepancy: what is sent, and what the server makes of the answers.

    Attributes
    ----------
    reference : ReferenceRows
    set_shares : array of shape (n_sets, n_reference_rows)
        Shares of the reference's rows: all of them, then without each validation fold.
    n_folds : int
    seed : int
    name : object
        Of the reference: draws its folds.
    n_features : int
    relative_ridge : float
    norm_bound : float, optional
    """

    reference: ReferenceRows
    set_shares: FloatArray
    n_folds: int
    seed: int
    name: object
    n_features: int
    relative_ridge: float = DEFAULT.relative_ridge
    norm_bound: float | None = None

    @cached_property
    def _sets(self) -> list[tuple[SourceRows, IntArray]]:
        rows = self.reference
        sets = [counted_rows(rows.X, rows.y, shares, rows.n_classes) for shares in self.set_shares]
        return [
            (some, random_folds(len(some.shares), self.n_folds, self.seed, self.name))
            for some in sets
        ]

    @cached_property
    def message(self) -> CrossFitMessage:
        """What has to be sent to the sources."""
        sums = tuple(_fold_sums(rows, folds, self.n_folds) for rows, folds in self._sets)
        bounds = np.full(len(sums), np.nan if self.norm_bound is None else self.norm_bound)
        if self.norm_bound is None and not self.reference.n_classes:
            wholes = [_normalised(of_set, np.ones((1, self.n_folds))) for of_set in sums]
            bounds = np.array([self._norm(whole) for whole in wholes])
        return CrossFitMessage(
            sums, bounds, self.relative_ridge, self.n_features, self.seed, len(self.reference.y)
        )

    def _norm(self, whole: Moments) -> float:
        ridge = self.relative_ridge * float(np.trace(whole.gram[0])) / self.n_features
        return reference_norm(whole, ridge)

    def judge(self, answer: CrossFitAnswer) -> SeparationFindings:
        """Compare with the models' losses on the reference's folds that they have not seen."""
        n_sources, n_sets, _, n_targets, _ = answer.models.shape
        differences = np.empty((n_sets, n_targets, n_sources))
        errors = np.empty((n_sets, n_targets, n_sources))
        for s, (rows, folds) in enumerate(self._sets):
            for i in range(n_sources):
                own = LossMoments.of(
                    _held_out_losses(rows, folds, answer.models[i, s], self.reference.n_classes),
                    _weights_by_fold(rows.shares, folds, answer.fold_weights[i, s]),
                )
                differences[s, :, i] = answer.losses.mean[i, s] - own.mean
                errors[s, :, i] = np.sqrt(answer.losses.variance[i, s] + own.variance)
        return SeparationFindings(differences, errors[0])


@dataclass(frozen=True)
class CrossFitTest:
    """The permutation test that goes with the cross-fitted discrepancy.

    Membership is permuted within folds. ``reference`` is the reference's name.
    """

    n_folds: int
    seed: int
    reference: object
    relative_ridge: float = DEFAULT.relative_ridge

    def compare(
        self, source: SourceRows, reference: SourceRows, n_classes: int, name: object
    ) -> Comparable:
        """Get ready to compare one source with the reference."""
        pooled = pool(source, reference)
        if n_classes == 0:
            return Comparable(pooled, [np.arange(len(pooled.in_source))], moment_statistic(pooled))
        folds = [
            random_folds(len(side.shares), self.n_folds, self.seed, of)
            for side, of in ((source, name), (reference, self.reference))
        ]
        fold_of_row = np.concatenate(folds)
        parts = [np.flatnonzero(fold_of_row == f) for f in range(self.n_folds)]
        counts = [np.bincount(fold, minlength=self.n_folds) for fold in folds]
        # The ridge of the value would give away who is who; this one no permutation changes.
        mean_square = float(pooled.weights @ whole_norms(pooled.X) / pooled.weights.sum())
        statistic = separation_statistic(
            in_own_span(pooled),
            ridge=self.relative_ridge * mean_square / pooled.X.shape[1],
            parts=parts,
            part_weights=_fold_weights(*counts),
            held_out=True,
        )
        return Comparable(pooled, parts, statistic)


def cross_fit_discrepancies(
    data: SourceData,
    *,
    n_folds: int = 5,
    relative_ridge: float = DEFAULT.relative_ridge,
    norm_bound: float | None = None,
    n_permutations: int = 199,
    seed: int = 0,
    names: Sequence[Any] | None = None,
) -> Discrepancies:
    r"""Discrepancy of every source at models fitted on other rows of both sides.

    For each fold :math:`f` the models of `plug_in_discrepancies` are fitted without the fold's
    rows of either side, :math:`h_f`, and

    .. math:: d_i = \Big| \sum_f \omega_f
              \big(\hat\epsilon_{i,f}(h_f) - \hat\epsilon_{T,f}(h_f)\big) \Big| , \qquad
              \omega_f \propto \frac{m_{i,f} \, m_{T,f}}{m_{i,f} + m_{T,f}} ,

    the largest over classes (over the two ends of the interval for regression). With equal folds
    this is the plain average. Both sides of a difference are judged by the same model, which has
    seen neither, so the signed average has mean zero when the distributions agree; what is left
    of :math:`d_i` then is noise of the size of the standard error.

    A fold that holds no row of one side is left out of the average. Sources with fewer rows than
    folds thus need nothing special; a source of one row is judged by a model fitted on the
    reference alone, as its row can only be held out.

    Parameters
    ----------
    data : SourceData
        Bring your own constant column. Rows with a share of zero are ignored.
    n_folds : int
        At least 2.
    relative_ridge : float
        The ridge is this times the mean diagonal of :math:`(G_i + G_T) / 2`. The paper's 1e-6
        interpolates as soon as there are more features than rows, and on unseen rows such a model
        separates little even where the distributions differ. Being relative, the choice does
        not depend on the unit of the features.
    norm_bound : float, optional
        Bound on the models' norm for regression. By default the norm of the reference's own
        regression under the relative ridge.
    n_permutations : int
        0 for no p-values. The smallest possible p-value is ``1 / (n_permutations + 1)``.
    seed : int
    names : sequence, one for each source, optional
        Folds and permutations of a source depend on its name, by default its position: pass names
        to make a source's result independent of which other sources there are.

    Returns
    -------
    Discrepancies
        P-values come from the same statistic as the value, but signed: the model is fitted to be
        worse on the source, and only that it is so on unseen rows is evidence of a difference.
        Membership is permuted within folds. For regression the test is the one of
        `plug_in_discrepancies`.

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.core.data import group_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[400:] = 1 - y[400:]  # the third source has its labels flipped
    >>> data, _ = group_rows(X, y, np.repeat([0, 1, 2], 200), reference=0, n_classes=2)
    >>> result = cross_fit_discrepancies(data)
    >>> (result.values > 0.5).tolist(), (result.p_values < 0.05).tolist()
    ([False, False, True], [False, False, True])
    """
    if n_folds < 2:
        raise ValueError(f"Cross-fitting needs at least 2 folds; n_folds is {n_folds}.")
    reference = ReferenceRows.of(data)
    name = names_of(data, names)[data.reference]
    question = CrossFitQuestion(
        reference,
        reference.shares[None],
        n_folds,
        seed,
        name,
        data.X.shape[1],
        relative_ridge,
        norm_bound,
    )
    test = PermutationQuestion(
        reference, CrossFitTest(n_folds, seed, name, relative_ridge), n_permutations, seed
    )
    found, tested = ask_here(data, question, names), ask_here(data, test, names)
    return separation_discrepancies(found, tested.p_values, data.n_classes).with_reference(
        data.reference
    )


def random_folds(n_rows: int, n_folds: int, seed: int, name: object) -> IntArray:
    """Random folds of equal size, which depend on the number of rows and the name only.

    Low folds fill up first, so that two small sources have folds in common.
    """
    return np.asarray(source_generator(1, seed, name).permutation(n_rows) % n_folds)


def _fold_sums(rows: SourceRows, folds: IntArray, n_folds: int) -> FoldSums:
    """Share-weighted sums of every fold."""
    n_features, n_targets = rows.X.shape[1], rows.targets.shape[1]
    gram = np.zeros((n_folds, n_features, n_features))
    cross = np.zeros((n_folds, n_features, n_targets))
    square = np.zeros((n_folds, n_targets))
    for f in range(n_folds):
        here = folds == f
        X, targets, shares = rows.X[here], rows.targets[here], rows.shares[here]
        gram[f], cross[f] = weighted_moments(X, targets, shares)
        square[f] = shares @ targets**2
    masses = _fold_masses(rows.shares, folds, n_folds)
    return FoldSums(Moments(gram, cross, square), masses, np.bincount(folds, minlength=n_folds))


def _fold_masses(shares: FloatArray, folds: IntArray, n_folds: int) -> FloatArray:
    return np.asarray(np.bincount(folds, shares, n_folds), dtype=np.float64)


def _normalised(sums: FoldSums, selections: FloatArray) -> Moments:
    """Moments over the folds that each row of ``selections`` picks; zero where it has no rows."""
    moments, masses, _ = sums
    mass = selections @ masses
    scaled = selections / np.where(mass > 0.0, mass, 1.0)[:, None]
    return Moments(
        np.einsum("sf,fij->sij", scaled, moments.gram),
        np.einsum("sf,fij->sij", scaled, moments.cross),
        scaled @ moments.square,
    )


def _fold_weights(source: IntArray, reference: IntArray) -> FloatArray:
    """Average folds of so many rows with the least variance; one that misses a side is left out."""
    precision = source * reference / np.maximum(source + reference, 1)
    return np.asarray(precision / max(precision.sum(), 1e-300))


def _weights_by_fold(shares: FloatArray, folds: IntArray, fold_weights: FloatArray) -> FloatArray:
    """Row weights that sum to the weight of the fold in each fold."""
    masses = _fold_masses(shares, folds, len(fold_weights))
    return np.asarray(shares * fold_weights[folds] / masses[folds])


def _held_out_losses(
    rows: SourceRows, folds: IntArray, models: FloatArray, n_classes: int
) -> FloatArray:
    """Loss of every row under the models that were fitted without it."""
    losses = np.empty((len(folds), models.shape[1]))
    for f in range(len(models)):
        here = folds == f
        losses[here] = model_losses(rows.X[here], rows.targets[here], models[f], n_classes)
    return losses
