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
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.local_exchange import RowLoss, row_blocks
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import JointFamily


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


def find_pulls(
    data: SourceData,
    asked: Sequence[int],
    folds: ReferenceFolds,
    family: JointFamily,
    alone: Any,
    row_loss: RowLoss,
    setting: float,
) -> Pulls:
    """Join the sources at positions ``asked`` with the reference, one at a time.

    ``alone`` are the reference's own models, which leave out ``folds.left_out``.

    No source weighs more than the reference does: rows of larger ones count less.
    """
    trusted = data.rows(data.reference)
    X, y, shares = data.X[trusted], data.y[trusted], data.row_shares[trusted]
    size = 1.0 / np.sum(shares**2)
    weights = folds.training_weights(shares)
    losses_alone = row_loss(family.predict(alone, X), y)

    set_shares = folds.set_shares(shares)
    set_sizes = 1.0 / np.sum(set_shares**2, axis=1)
    positions = np.asarray(asked, dtype=np.intp)
    say = np.minimum(data.sizes[positions], size)
    values = np.empty((len(set_shares), len(asked)))
    errors = np.empty_like(values)
    for block in row_blocks(data.row_counts[positions] + len(y)):
        some = positions[block]
        counts = data.row_counts[some]
        rows = data.rows_of(some)
        joint = family.fit_beside(
            (X, y),
            weights,
            alone,
            data.X[rows],
            data.y[rows],
            np.repeat(say[block], counts) * data.row_shares[rows],
            np.concatenate([[0], np.cumsum(counts)[:-1]]),
            counts,
            setting,
        )
        losses = row_loss(family.predict(joint, X), y).reshape(len(some), *losses_alone.shape)
        their_share = say[block, None] / (say[block, None] + weights.sum(axis=0))
        changes = folds.cross_fitted((losses - losses_alone) / their_share[:, :, None])
        changes = np.nan_to_num(changes)  # (n_sources, n_sets, n_reference_rows)
        means = np.einsum("isn,sn->is", changes, set_shares)
        squares = np.einsum("isn,sn->is", changes**2, set_shares)
        spread = np.maximum(squares - means**2, 0.0) / np.maximum(set_sizes - 1.0, 1e-9)
        values[:, block], errors[:, block] = means.T, np.sqrt(spread).T
    return Pulls(values, errors)
