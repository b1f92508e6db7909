"""The paper's discrepancy: fitted and judged on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.moments import (
    Moments,
    SourceRows,
    concat_moments,
    counted_rows,
    moments_of,
    source_rows,
)
from sourcewise.core.discrepancy.permutation import (
    Comparable,
    ask_here,
    in_own_span,
    moment_statistic,
    permutation_question,
    pool,
    separation_statistic,
)
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


def plug_in_question(
    reference: ReferenceRows,
    set_shares: FloatArray,
    ridge: float = DEFAULT.ridge,
    norm_bound: float | None = None,
) -> Question:
    """Ask for the paper's discrepancy: second moments of the reference are sent.

    Parameters
    ----------
    reference : ReferenceRows
    set_shares : array of shape (n_sets, n_reference_rows)
        Shares of the reference's rows: all of them, then without each validation fold.
    ridge : float
    norm_bound : float, optional
        For regression; by default the norm of the reference's own ridge regression in each set.
    """
    n_classes = reference.n_classes
    sets = [counted_rows(reference.X, reference.y, shares, n_classes) for shares in set_shares]
    moments = [moments_of(rows) for rows in sets]
    if norm_bound is not None or n_classes:
        bounds = np.full(len(moments), norm_bound or np.nan)
    else:
        bounds = np.array([reference_norm(own, ridge) for own in moments])
    sent = {**vars(concat_moments(moments)), "ridge": ridge, "norm_bounds": bounds}
    known = {"sets": sets, "n_classes": n_classes}
    # The models are judged by as many rows as the reference has.
    return Question(Message(answer_plug_in, sent, len(reference.y)), judge_plug_in, known)


def answer_plug_in(
    sources: SourceData,
    names: Sequence[Any],
    *,
    gram: FloatArray,
    cross: FloatArray,
    square: FloatArray,
    ridge: float,
    norm_bounds: FloatArray,
) -> Arrays:
    """Answer with the models that are worst on each source in every set, and losses there.

    Models are (n_sets, n_targets, n_features, n_sources).
    """
    moments, found = Moments(gram, cross, square), []
    for i in range(sources.n_sources):
        own = moments_of(source_rows(sources, i))
        if sources.n_classes:
            found.append(separating_models(own, moments, ridge=ridge))
        else:
            found.append(extreme_models(own, moments, norm_bound=norm_bounds))
    models = np.stack(found, axis=-1)
    return {"models": models, **losses_of_models(sources, models)}


def losses_of_models(sources: SourceData, models: FloatArray) -> Arrays:
    """Tell what each source's own models lose on it, (n_sets, n_targets, n_sources)."""
    found = []
    for i in range(sources.n_sources):
        rows = source_rows(sources, i)
        found.append(
            [
                loss_moments(
                    model_losses(rows.X, rows.targets, of_set, sources.n_classes), rows.shares
                )
                for of_set in models[..., i]
            ]
        )
    means, variances = np.moveaxis(np.array(found), (2, 0), (0, -1))
    return {"losses": means, "loss_variances": variances}


def judge_plug_in(answer: Arrays, sets: Sequence[SourceRows], n_classes: int) -> Findings:
    """Compare with the models' losses on the reference."""
    own = [
        [
            loss_moments(model_losses(rows.X, rows.targets, models, n_classes), rows.shares)
            for models in np.moveaxis(answer["models"][s], -1, 0)
        ]
        for s, rows in enumerate(sets)
    ]
    return differences(answer, np.array(own))


def differences(answer: Arrays, own: FloatArray) -> Findings:
    """Compare losses with those on the reference, (n_sets, n_sources, 2, n_targets).

    Their standard errors are those in set 0.
    """
    means, variances = np.moveaxis(own, (2, 1), (0, -1))
    errors = np.sqrt(answer["loss_variances"][0] + variances[0])
    return {"differences": answer["losses"] - means, "difference_errors": errors}


def compare_plug_in(
    source: SourceRows, reference: SourceRows, n_classes: int, name: object, ridge: float
) -> Comparable:
    """Get ready to compare one source with the reference by the paper's discrepancy."""
    pooled = pool(source, reference)
    everything = [np.arange(len(pooled.in_source))]
    if n_classes == 0:
        return Comparable(pooled, everything, moment_statistic(pooled))
    statistic = separation_statistic(
        in_own_span(pooled),
        ridge=ridge,
        parts=everything,
        part_weights=np.ones(1),
        held_out=False,
    )
    return Comparable(pooled, everything, statistic)


def plug_in_discrepancies(
    data: SourceData,
    *,
    ridge: float = DEFAULT.ridge,
    norm_bound: float | None = None,
    n_permutations: int = 199,
    seed: int = 0,
    names: Sequence[Any] | None = None,
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
    names : sequence, one for each source, optional
        The permutations of a source depend on its name, by default its position: pass names to
        make a source's p-value independent of which other sources there are.

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
    reference = ReferenceRows.of(data)
    question = plug_in_question(reference, reference.shares[None], ridge, norm_bound)
    test = permutation_question(reference, compare_plug_in, {"ridge": ridge}, n_permutations, seed)
    found, tested = ask_here(data, question, names), ask_here(data, test, names)
    return separation_discrepancies({**found, **tested}, data.n_classes).with_reference(
        data.reference
    )
