"""The paper's discrepancy: fitted and judged on the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import FloatArray, ReferenceRows, SourceData
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
    PermutationQuestion,
    ask_here,
    in_own_span,
    moment_statistic,
    pool,
    separation_statistic,
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


@dataclass(frozen=True)
class PlugInAnswer:
    """Models of some sources that are worst on the source, and their losses there.

    Attributes
    ----------
    models : array of shape (n_sources, n_sets, n_targets, n_features)
    losses : LossMoments
        Of shape (n_sources, n_sets, n_targets).
    """

    models: FloatArray
    losses: LossMoments


@dataclass(frozen=True)
class PlugInMessage:
    """What a source is told: second moments of the reference, whole and without each fold.

    Attributes
    ----------
    moments : Moments
        Of ``n_sets`` sets of reference rows.
    ridge : float
    norm_bounds : array of shape (n_sets,)
        For regression.
    rows_beside : int
        Reference rows, which judge the models.
    """

    moments: Moments
    ridge: float
    norm_bounds: FloatArray
    rows_beside: int

    def answer(self, sources: SourceData, names: Sequence[Any]) -> PlugInAnswer:
        """Answer for some sources."""
        models, means, variances = [], [], []
        for i in range(sources.n_sources):
            rows = source_rows(sources, i)
            mine = self._models(moments_of(rows), sources.n_classes)
            losses = [
                LossMoments.of(
                    model_losses(rows.X, rows.targets, of_set, sources.n_classes), rows.shares
                )
                for of_set in mine
            ]
            models.append(mine)
            means.append([found.mean for found in losses])
            variances.append([found.variance for found in losses])
        return PlugInAnswer(np.stack(models), LossMoments(np.array(means), np.array(variances)))

    def _models(self, own: Moments, n_classes: int) -> FloatArray:
        """Models of every set, (n_sets, n_targets, n_features)."""
        if n_classes:
            return separating_models(own, self.moments, ridge=self.ridge)
        return extreme_models(own, self.moments, norm_bound=self.norm_bounds)


@dataclass(frozen=True)
class PlugInQuestion:
    """The paper's discrepancy: what is sent, and what the server makes of the answers.

    Attributes
    ----------
    reference : ReferenceRows
    set_shares : array of shape (n_sets, n_reference_rows)
        Shares of the reference's rows: all of them, then without each validation fold.
    ridge : float
    norm_bound : float, optional
    """

    reference: ReferenceRows
    set_shares: FloatArray
    ridge: float = DEFAULT.ridge
    norm_bound: float | None = None

    @cached_property
    def _sets(self) -> list[SourceRows]:
        rows = self.reference
        return [counted_rows(rows.X, rows.y, shares, rows.n_classes) for shares in self.set_shares]

    @cached_property
    def message(self) -> PlugInMessage:
        """What has to be sent to the sources."""
        moments = [moments_of(rows) for rows in self._sets]
        if self.norm_bound is not None or self.reference.n_classes:
            bounds = np.full(len(moments), self.norm_bound or np.nan)
        else:
            bounds = np.array([reference_norm(own, self.ridge) for own in moments])
        return PlugInMessage(concat_moments(moments), self.ridge, bounds, len(self.reference.y))

    def judge(self, answer: PlugInAnswer) -> SeparationFindings:
        """Compare with the models' losses on the reference."""
        n_sources, n_sets, n_targets, _ = answer.models.shape
        differences = np.empty((n_sets, n_targets, n_sources))
        errors = np.empty((n_sets, n_targets, n_sources))
        for s, rows in enumerate(self._sets):
            for i, models in enumerate(answer.models[:, s]):
                losses = model_losses(rows.X, rows.targets, models, self.reference.n_classes)
                own = LossMoments.of(losses, rows.shares)
                differences[s, :, i] = answer.losses.mean[i, s] - own.mean
                errors[s, :, i] = np.sqrt(answer.losses.variance[i, s] + own.variance)
        return SeparationFindings(differences, errors[0])


@dataclass(frozen=True)
class PlugInTest:
    """The permutation test that goes with the paper's discrepancy."""

    ridge: float = DEFAULT.ridge

    def compare(
        self, source: SourceRows, reference: SourceRows, n_classes: int, name: object
    ) -> Comparable:
        """Get ready to compare one source with the reference."""
        pooled = pool(source, reference)
        everything = [np.arange(len(pooled.in_source))]
        if n_classes == 0:
            return Comparable(pooled, everything, moment_statistic(pooled))
        statistic = separation_statistic(
            in_own_span(pooled),
            ridge=self.ridge,
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
    question = PlugInQuestion(reference, reference.shares[None], ridge, norm_bound)
    test = PermutationQuestion(reference, PlugInTest(ridge), n_permutations, seed)
    found, tested = ask_here(data, question, names), ask_here(data, test, names)
    return separation_discrepancies(found, tested.p_values, data.n_classes).with_reference(
        data.reference
    )
