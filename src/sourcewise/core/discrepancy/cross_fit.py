"""The paper's discrepancy, judged on rows that the separating model has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, IntArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.moments import (
    Moments,
    SourceRows,
    counted_rows,
    source_rows,
    weighted_moments,
)
from sourcewise.core.discrepancy.permutation import (
    Comparable,
    ask_here,
    in_own_span,
    moment_statistic,
    names_of,
    permutation_question,
    pool,
    separation_statistic,
    source_generator,
)
from sourcewise.core.discrepancy.plug_in import differences
from sourcewise.core.discrepancy.result import Discrepancies
from sourcewise.core.discrepancy.separation import (
    extreme_models,
    loss_moments,
    model_losses,
    reference_norm,
    separating_models,
    separation_discrepancies,
)
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.sparse_rows import whole_norms


class FoldSums(NamedTuple):
    """Share-weighted sums of every fold of one side."""

    moments: Moments  # of ``n_folds`` folds
    masses: FloatArray  # (n_folds,); total share of each fold
    counts: IntArray  # (n_folds,); rows of each fold

    @classmethod
    def of(cls, rows: SourceRows, folds: IntArray, n_folds: int) -> FoldSums:
        """Sum up every fold."""
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
        return cls(Moments(gram, cross, square), masses, np.bincount(folds, minlength=n_folds))

    def normalised(self, selections: FloatArray) -> Moments:
        """Moments over the folds that each row of ``selections`` picks; zero without rows."""
        mass = selections @ self.masses
        scaled = selections / np.where(mass > 0.0, mass, 1.0)[:, None]
        return Moments(
            np.einsum("sf,fij->sij", scaled, self.moments.gram),
            np.einsum("sf,fij->sij", scaled, self.moments.cross),
            scaled @ self.moments.square,
        )

    @property
    def whole(self) -> Moments:
        """Moments over all folds."""
        return self.normalised(np.ones((1, len(self.masses))))


def cross_fit_question(
    reference: ReferenceRows,
    set_shares: FloatArray,
    n_folds: int,
    seed: int,
    name: object,
    n_features: int,
    relative_ridge: float = DEFAULT.relative_ridge,
    norm_bound: float | None = None,
) -> Question:
    """Ask for the cross-fitted discrepancy: sums over the reference's folds are sent.

    Parameters
    ----------
    reference : ReferenceRows
    set_shares : array of shape (n_sets, n_reference_rows)
        Shares of the reference's rows: all of them, then without each validation fold.
    n_folds : int
    seed : int
    name : object
        Of the reference: draws its folds.
    n_features : int
        Features that the ridge is relative to; in a row space there are fewer coordinates.
    relative_ridge : float
    norm_bound : float, optional
        For regression; by default the norm of the reference's own regression in each set.
    """
    X, y, n_classes = reference.X, reference.y, reference.n_classes
    sets = [counted_rows(X, y, shares, n_classes) for shares in set_shares]
    folds = [random_folds(len(rows.shares), n_folds, seed, name) for rows in sets]
    sums = [FoldSums.of(rows, of_set, n_folds) for rows, of_set in zip(sets, folds, strict=True)]
    bounds = np.full(len(sums), np.nan if norm_bound is None else norm_bound)
    if norm_bound is None and not n_classes:
        wholes = [of_set.whole for of_set in sums]
        traces = [float(np.trace(whole.gram[0])) for whole in wholes]
        ridges = [relative_ridge * trace / n_features for trace in traces]
        bounds = np.array(list(map(reference_norm, wholes, ridges)))
    sent = {
        "gram": np.stack([of_set.moments.gram for of_set in sums]),
        "cross": np.stack([of_set.moments.cross for of_set in sums]),
        "square": np.stack([of_set.moments.square for of_set in sums]),
        "masses": np.stack([of_set.masses for of_set in sums]),
        "counts": np.stack([of_set.counts for of_set in sums]),
        "norm_bounds": bounds,
        "relative_ridge": relative_ridge,
        "n_features": n_features,
        "seed": seed,
    }
    known = {"sets": list(zip(sets, folds, strict=True)), "n_classes": n_classes}
    return Question(Message(answer_cross_fit, sent, len(y)), judge_cross_fit, known)


def answer_cross_fit(
    sources: SourceData,
    names: Sequence[Any],
    *,
    gram: FloatArray,
    cross: FloatArray,
    square: FloatArray,
    masses: FloatArray,
    counts: IntArray,
    norm_bounds: FloatArray,
    relative_ridge: float,
    n_features: int,
    seed: int,
) -> Arrays:
    """Answer with models of each source that leave out a fold each, and their losses on it.

    Of every set: models (n_sets, n_folds, n_targets, n_features, n_sources), what the folds count
    (n_sets, n_folds, n_sources), and losses (n_sets, n_targets, n_sources).
    """
    n_sets, n_folds = masses.shape
    sums = [
        FoldSums(Moments(gram[s], cross[s], square[s]), masses[s], counts[s]) for s in range(n_sets)
    ]
    kept_in = 1.0 - np.eye(n_folds)
    models, weights, losses = [], [], []
    for i, name in enumerate(names):
        rows = source_rows(sources, i)
        folds = random_folds(len(rows.shares), n_folds, seed, name)
        own = FoldSums.of(rows, folds, n_folds)
        source_fits = own.normalised(kept_in)
        for of_set, bound in zip(sums, norm_bounds, strict=True):
            fold_weights = _fold_weights(own.counts, of_set.counts)
            reference_fits = of_set.normalised(kept_in)
            if sources.n_classes == 0:
                fitted = extreme_models(source_fits, reference_fits, norm_bound=bound)
            else:
                both = own.whole.gram[0] + of_set.whole.gram[0]
                ridge = relative_ridge * float(np.trace(both)) / n_features / 2.0
                fitted = separating_models(source_fits, reference_fits, ridge=ridge)
            models.append(fitted)
            weights.append(fold_weights)
            losses.append(_held_out(rows, folds, fitted, fold_weights, sources.n_classes))

    def by_source(of_all: list[Any]) -> FloatArray:
        found = np.array(of_all)
        return np.moveaxis(found.reshape(-1, n_sets, *found.shape[1:]), 0, -1)

    means, variances = np.moveaxis(by_source(losses), 1, 0)
    return {
        "models": by_source(models),
        "fold_weights": by_source(weights),
        "losses": means,
        "loss_variances": variances,
    }


def judge_cross_fit(
    answer: Arrays, sets: Sequence[tuple[SourceRows, IntArray]], n_classes: int
) -> Findings:
    """Compare with the models' losses on the reference's folds that they have not seen."""
    models, weights = answer["models"], answer["fold_weights"]
    own = [
        [
            _held_out(rows, folds, models[s, ..., i], weights[s, :, i], n_classes)
            for i in range(models.shape[-1])
        ]
        for s, (rows, folds) in enumerate(sets)
    ]
    return differences(answer, np.array(own))


def compare_cross_fit(
    source: SourceRows,
    reference: SourceRows,
    n_classes: int,
    name: object,
    n_folds: int,
    seed: int,
    reference_name: object,
    relative_ridge: float,
) -> Comparable:
    """Get ready to compare one source with the reference; membership is permuted within folds."""
    pooled = pool(source, reference)
    if n_classes == 0:
        return Comparable(pooled, [np.arange(len(pooled.in_source))], moment_statistic(pooled))
    folds = [
        random_folds(len(side.shares), n_folds, seed, of)
        for side, of in ((source, name), (reference, reference_name))
    ]
    fold_of_row = np.concatenate(folds)
    parts = [np.flatnonzero(fold_of_row == f) for f in range(n_folds)]
    counts = [np.bincount(fold, minlength=n_folds) for fold in folds]
    # The ridge of the value would give away who is who; this one no permutation changes.
    mean_square = float(pooled.weights @ whole_norms(pooled.X) / pooled.weights.sum())
    statistic = separation_statistic(
        in_own_span(pooled),
        ridge=relative_ridge * mean_square / pooled.X.shape[1],
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
    question = cross_fit_question(
        reference,
        reference.shares[None],
        n_folds,
        seed,
        name,
        data.X.shape[1],
        relative_ridge,
        norm_bound,
    )
    options = {
        "n_folds": n_folds,
        "seed": seed,
        "reference_name": name,
        "relative_ridge": relative_ridge,
    }
    test = permutation_question(reference, compare_cross_fit, options, n_permutations, seed)
    found, tested = ask_here(data, question, names), ask_here(data, test, names)
    return separation_discrepancies({**found, **tested}, data.n_classes).with_reference(
        data.reference
    )


def random_folds(n_rows: int, n_folds: int, seed: int, name: object) -> IntArray:
    """Random folds of equal size, which depend on the number of rows and the name only.

    Low folds fill up first, so that two small sources have folds in common.
    """
    return np.asarray(source_generator(1, seed, name).permutation(n_rows) % n_folds)


def _fold_masses(shares: FloatArray, folds: IntArray, n_folds: int) -> FloatArray:
    return np.asarray(np.bincount(folds, shares, n_folds), dtype=np.float64)


def _fold_weights(source: IntArray, reference: IntArray) -> FloatArray:
    """Average folds of so many rows with the least variance; one that misses a side is left out."""
    precision = source * reference / np.maximum(source + reference, 1)
    return np.asarray(precision / max(precision.sum(), 1e-300))


def _held_out(
    rows: SourceRows, folds: IntArray, models: FloatArray, fold_weights: FloatArray, n_classes: int
) -> tuple[FloatArray, FloatArray]:
    """Losses of rows under the models fitted without them; each fold counts its weight."""
    losses = np.empty((len(folds), models.shape[1]))
    for f in range(len(models)):
        here = folds == f
        losses[here] = model_losses(rows.X[here], rows.targets[here], models[f], n_classes)
    masses = _fold_masses(rows.shares, folds, len(fold_weights))
    return loss_moments(losses, rows.shares * fold_weights[folds] / masses[folds])
