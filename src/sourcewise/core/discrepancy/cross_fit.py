"""The paper's discrepancy, judged on rows that the separating model has not seen."""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.moments import Moments, SourceRows, source_rows, weighted_moments
from sourcewise.core.discrepancy.permutation import (
    moment_statistic,
    permutation_p_value,
    pool,
    separation_statistic,
    source_generators,
)
from sourcewise.core.discrepancy.result import Discrepancies
from sourcewise.core.discrepancy.separation import (
    compare_losses,
    extreme_models,
    largest_differences,
    model_losses,
    reference_norm,
    separating_models,
)
from sourcewise.core.row_space import in_row_space


def cross_fit_discrepancies(
    data: SourceData,
    *,
    n_folds: int = 5,
    relative_ridge: float = 0.1,
    norm_bound: float | None = None,
    n_permutations: int = 199,
    seed: int = 0,
    source_seeds: IntArray | None = None,
    folds: IntArray | None = None,
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
    source_seeds : int array of shape (n_sources,), optional
        Not negative; drawn upon, with `seed`, for the folds and the permutations of each source.
        By default the positions; pass seeds derived from names to make a source's result
        independent of which other sources there are.
    folds : int array of shape (n_rows,), optional
        Fold of every row, 0 .. n_folds - 1, instead of random ones. The p-values are exact if
        the folds were chosen without looking at the rows.

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
    if folds is None:
        folds = assign_folds(data, n_folds, seed=seed, source_seeds=source_seeds)
    elif not np.isin(folds[data.row_shares > 0.0], np.arange(n_folds)).all():
        raise ValueError(f"Folds have to lie between 0 and {n_folds - 1}.")
    # The ridge is relative to the mean over the features that there are, not over coordinates.
    n_features = data.X.shape[1]
    given = data
    data = in_row_space(data)
    relative_ridge *= data.X.shape[1] / n_features
    generators = source_generators(data, seed, source_seeds, purpose=0)
    reference = source_rows(data, data.reference)
    reference_folds = folds[reference.positions]
    reference_sums = _fold_sums(reference, reference_folds, n_folds)
    own = _normalised(reference_sums, np.ones((1, n_folds)))
    bound = norm_bound
    if bound is None:
        bound = reference_norm(own, relative_ridge * _mean_diagonal(own.gram[0]))

    def judge(i: int) -> tuple[FloatArray, FloatArray, float]:
        source = source_rows(data, i)
        source_folds = folds[source.positions]
        fold_weights = _fold_weights(source_folds, reference_folds, n_folds)
        if not fold_weights.any():
            raise ValueError(f"Source {i} has no fold in common with the reference.")
        sums = _fold_sums(source, source_folds, n_folds)
        kept_in = 1.0 - np.eye(n_folds)
        source_fits = _normalised(sums, kept_in)
        reference_fits = _normalised(reference_sums, kept_in)
        whole = _normalised(sums, np.ones((1, n_folds)))
        if data.n_classes == 0:
            models = extreme_models(source_fits, reference_fits, norm_bound=bound)
        else:
            ridge = relative_ridge * _mean_diagonal(whole.gram[0] + own.gram[0]) / 2.0
            models = separating_models(source_fits, reference_fits, ridge=ridge)
        differences, errors = compare_losses(
            _held_out_losses(source, source_folds, models, data.n_classes),
            _weights_by_fold(source.shares, source_folds, fold_weights),
            _held_out_losses(reference, reference_folds, models, data.n_classes),
            _weights_by_fold(reference.shares, reference_folds, fold_weights),
        )
        if n_permutations == 0:
            return differences, errors, float("nan")
        pooled = pool(source, reference)
        fold_of_row = np.concatenate([source_folds, reference_folds])
        parts = [np.flatnonzero(fold_of_row == f) for f in range(n_folds)]
        if data.n_classes == 0:
            parts = [np.arange(len(fold_of_row))]
            statistic = moment_statistic(
                pool(source_rows(given, i), source_rows(given, data.reference))
            )
        else:
            # The ridge of the value would give away who is who; this one no permutation changes.
            mean_squares = pooled.weights @ pooled.X**2 / pooled.weights.sum()
            statistic = separation_statistic(
                pooled,
                ridge=relative_ridge * float(mean_squares.mean()),
                parts=parts,
                part_weights=fold_weights,
                held_out=True,
            )
        p_value = permutation_p_value(
            statistic, pooled.in_source, parts, n_permutations, generators[i]
        )
        return differences, errors, p_value

    return largest_differences(data, judge)


def assign_folds(
    data: SourceData, n_folds: int, *, seed: int = 0, source_seeds: IntArray | None = None
) -> IntArray:
    """Random folds of equal size within every source; -1 for rows with a share of zero.

    The folds of a source depend on its own number of rows and its own seed only. Low folds fill
    up first, so that two small sources have folds in common.
    """
    folds = np.full(len(data.y), -1, dtype=np.intp)
    for i, rng in enumerate(source_generators(data, seed, source_seeds, purpose=1)):
        rows = data.rows(i)
        used = rows.start + np.flatnonzero(data.row_shares[rows])
        folds[used] = rng.permutation(len(used)) % n_folds
    return folds


def _fold_sums(rows: SourceRows, folds: IntArray, n_folds: int) -> tuple[Moments, FloatArray]:
    """Share-weighted sums of every fold, and the fold's total share."""
    n_features, n_targets = rows.X.shape[1], rows.targets.shape[1]
    gram = np.zeros((n_folds, n_features, n_features))
    cross = np.zeros((n_folds, n_features, n_targets))
    square = np.zeros((n_folds, n_targets))
    for f in range(n_folds):
        here = folds == f
        X, targets, shares = rows.X[here], rows.targets[here], rows.shares[here]
        gram[f], cross[f] = weighted_moments(X, targets, shares)
        square[f] = shares @ targets**2
    return Moments(gram, cross, square), _fold_masses(rows.shares, folds, n_folds)


def _fold_masses(shares: FloatArray, folds: IntArray, n_folds: int) -> FloatArray:
    return np.asarray(np.bincount(folds, shares, n_folds), dtype=np.float64)


def _normalised(sums: tuple[Moments, FloatArray], selections: FloatArray) -> Moments:
    """Moments over the folds that each row of ``selections`` picks; zero where it has no rows."""
    moments, masses = sums
    mass = selections @ masses
    scaled = selections / np.where(mass > 0.0, mass, 1.0)[:, None]
    return Moments(
        np.einsum("sf,fij->sij", scaled, moments.gram),
        np.einsum("sf,fij->sij", scaled, moments.cross),
        scaled @ moments.square,
    )


def _mean_diagonal(gram: FloatArray) -> float:
    return float(np.trace(gram)) / len(gram)


def _fold_weights(source_folds: IntArray, reference_folds: IntArray, n_folds: int) -> FloatArray:
    """Average the folds with the least variance; a fold that misses a side counts nothing."""
    source = np.bincount(source_folds, minlength=n_folds)
    reference = np.bincount(reference_folds, minlength=n_folds)
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
