"""The paper's discrepancy: fitted and judged on the same rows."""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.moments import Moments, source_moments, source_rows
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


def plug_in_discrepancies(
    data: SourceData,
    *,
    ridge: float = 1e-6,
    norm_bound: float | None = None,
    n_permutations: int = 199,
    seed: int = 0,
    source_seeds: IntArray | None = None,
    moments: Moments | None = None,
    tested: SourceData | None = None,
) -> Discrepancies:
    r"""Empirical discrepancy of every source (appendix B of the paper).

    .. math:: d_i = \sup_{h} |\hat\epsilon_i(h) - \hat\epsilon_T(h)|

    *Classes*, 0/1 loss: the supremum is replaced by the value at the square-loss minimiser of
    the label-flipped problem (`separating_models`); with more than two classes, by the largest
    value over the one-against-rest problems. It is computed as
    :math:`|\hat\epsilon_i - \hat\epsilon_T|`, which is the paper's
    :math:`|1 - \hat\epsilon_{\bar\imath} - \hat\epsilon_T|` wherever no margin is exactly zero.
    Where all are, as for a copy of the reference, the latter would say 1 and this says 0.

    *Regression*, squared loss: the supremum over linear models with :math:`\|w\| \le B`, exactly
    (`extreme_models`). Nothing is clipped: scale the target so that the loss stays below about 1
    if values are to be compared with those of a bounded loss.

    Judging the model on the rows it was fitted to biases the value upwards by about
    ``sqrt(n_features / m)``. The p-value is not affected: it compares with the same bias under
    permuted membership.

    Parameters
    ----------
    data : SourceData
        Bring your own constant column. Rows with a share of zero are ignored.
    ridge : float
        Added to every coordinate, the constant column's included. The losses of both sides are
        means, so it is not to be divided by a number of rows.
    norm_bound : float, optional
        ``B`` for regression. By default the norm of the reference's own ridge regression.
    n_permutations : int
        0 for no p-values. The smallest possible p-value is ``1 / (n_permutations + 1)``.
    seed : int
    source_seeds : int array of shape (n_sources,), optional
        Not negative; drawn upon, with `seed`, for the permutations of each source. By default the
        positions; pass seeds derived from names to make a source's p-value independent of which
        other sources there are.
    moments : Moments, optional
        Those of ``data``, if already known.
    tested : SourceData, optional
        The same rows with the features that the test is about, where ``data`` is in another basis
        already: the test for regression standardises every feature.

    Returns
    -------
    Discrepancies
        P-values are exact for rows of equal shares. Sample weights travel with their rows, and
        as they are normalised within each source the test is then approximate: of the right
        level with few features, conservative with as many features as rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.core.data import group_rows
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[400:] = 1 - y[400:]  # the third source has its labels flipped
    >>> data, _ = group_rows(X, y, np.repeat([0, 1, 2], 200), reference=0, n_classes=2)
    >>> result = plug_in_discrepancies(data)
    >>> (result.values > 0.5).tolist(), (result.p_values < 0.05).tolist()
    ([False, False, True], [False, False, True])
    """
    tested = data if tested is None else tested
    if moments is None:
        data = in_row_space(data)
        moments = source_moments(data)
    generators = source_generators(data, seed, source_seeds, purpose=0)
    one = slice(data.reference, data.reference + 1)
    of_reference = Moments(moments.gram[one], moments.cross[one], moments.square[one])
    if data.n_classes == 0:
        bound = reference_norm(of_reference, ridge) if norm_bound is None else norm_bound
        models = extreme_models(moments, of_reference, norm_bound=bound)
    else:
        models = separating_models(moments, of_reference, ridge=ridge)
    reference = source_rows(data, data.reference)

    def judge(i: int) -> tuple[FloatArray, FloatArray, float]:
        source = source_rows(data, i)
        differences, errors = compare_losses(
            model_losses(source.X, source.targets, models[i], data.n_classes),
            source.shares,
            model_losses(reference.X, reference.targets, models[i], data.n_classes),
            reference.shares,
        )
        if n_permutations == 0:
            return differences, errors, float("nan")
        pooled = pool(source, reference)
        everything = [np.arange(len(pooled.in_source))]
        if data.n_classes == 0:
            given = pool(source_rows(tested, i), source_rows(tested, data.reference))
            statistic = moment_statistic(given)
        else:
            statistic = separation_statistic(
                pooled, ridge=ridge, parts=everything, part_weights=np.ones(1), held_out=False
            )
        p_value = permutation_p_value(
            statistic, pooled.in_source, everything, n_permutations, generators[i]
        )
        return differences, errors, p_value

    return largest_differences(data, judge)
