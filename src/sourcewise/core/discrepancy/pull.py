r"""What becomes of the reference's loss when a source pulls at its model.

Let :math:`h_T` be the reference's own model and :math:`h_{T+i}` one of the reference and source
:math:`i` together, of whose rows the source's make up the share :math:`\varphi_i`. The *pull* is

.. math:: g_i = \frac{\hat\epsilon_T(h_{T+i}) - \hat\epsilon_T(h_T)}{\varphi_i},

both judged on the same reference rows, which neither has seen. It is negative for a source that
helps. Because :math:`h_{T+i}` minimises the joint loss, it is a lower estimate of
:math:`\delta_i(h_T) - \delta_i(h_{T+i})` with :math:`\delta_i = \epsilon_i - \epsilon_T`: of what
the proof of the bound needs to be small, and of twice the discrepancy.

Differences on the same rows have little noise, so that a pull shows what a source's loss under a
weak model of few trusted rows hides. What one source's pull is depends on no other source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.family import JointFamily, SharedRows, SourceRuns


@dataclass(frozen=True)
class Pulls:
    """Pulls of some sources, on the whole reference and without each validation fold.

    Attributes
    ----------
    values : array of shape (n_sets, n_sources)
    errors : array of shape (n_sets, n_sources)
        Their standard errors, the models held fixed.
    """

    values: FloatArray
    errors: FloatArray

    @property
    def upper(self) -> FloatArray:
        """What the pulls may well be: a standard error more."""
        return self.values + self.errors


@dataclass(frozen=True)
class PullAnswer:
    """Joint models of some sources.

    Attributes
    ----------
    models : batch of models
        In (source, fold model of the reference) order.
    sizes : array of shape (n_sources,)
        Rows that each source counted as.
    """

    models: Any
    sizes: FloatArray


@dataclass(frozen=True)
class PullMessage:
    """What a source is told for its pull: the reference's rows, to put its own beside them.

    Attributes
    ----------
    family : JointFamily
    setting : float
    shared : SharedRows
        The reference under the weights of its fold models.
    size : float
        Effective rows of the reference. No source weighs more than it does: rows of larger ones
        count less.
    """

    family: JointFamily
    setting: float
    shared: SharedRows
    size: float

    @property
    def rows_beside(self) -> int:
        """Rows of the reference, which stand beside those of every source."""
        return len(self.shared.y)

    def answer(self, sources: SourceData, names: Sequence[Any]) -> PullAnswer:
        """Join each source with the reference."""
        sizes = np.minimum(sources.sizes, self.size)
        weights = sizes[sources.source_of_row] * sources.row_shares
        runs = SourceRuns(sources.X, sources.y, weights, sources.row_counts)
        return PullAnswer(self.family.fit_beside(self.shared, runs, self.setting), sizes)


@dataclass(frozen=True)
class PullQuestion:
    """The pull: what is sent, and what the server makes of the answers."""

    reference: ReferenceModels

    @cached_property
    def message(self) -> PullMessage:
        """What has to be sent to the sources."""
        reference, rows = self.reference, self.reference.rows
        weights = reference.folds.training_weights(rows.shares)
        shared = SharedRows(rows.X, rows.y, weights, reference.models)
        family: Any = reference.family
        return PullMessage(family, reference.setting, shared, rows.size)

    def judge(self, answer: PullAnswer) -> Pulls:
        """Judge the joint models on the reference's rows that they have not seen."""
        reference = self.reference
        X, y = reference.rows.X, reference.rows.y
        losses = reference.loss(reference.family.predict(answer.models, X), y)
        losses = losses.reshape(len(answer.sizes), *reference.losses.shape)
        sizes = answer.sizes[:, None]
        their_share = sizes / (sizes + self.message.shared.weights.sum(axis=0))
        changes = (losses - reference.losses) / their_share[:, :, None]
        # (n_sources, n_sets, n_reference_rows)
        changes = np.nan_to_num(reference.folds.cross_fitted(changes))
        means = np.einsum("isn,sn->si", changes, reference.set_shares)
        squares = np.einsum("isn,sn->si", changes**2, reference.set_shares)
        freedom = np.maximum(reference.set_sizes - 1.0, 1e-9)[:, None]
        return Pulls(means, np.sqrt(np.maximum(squares - means**2, 0.0) / freedom))
