"""What sites can be asked besides the discrepancies' own questions, and all questions by name.

A question is known by a short name, which is what a data owner allows or refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.agreement import AgreementAnswer, AgreementMessage
from sourcewise.core.discrepancy.combined import LookAnswer, LookMessage
from sourcewise.core.discrepancy.cross_fit import CrossFitAnswer, CrossFitMessage, FoldSums
from sourcewise.core.discrepancy.features import FeatureAnswer, FeatureMessage
from sourcewise.core.discrepancy.local import Sample
from sourcewise.core.discrepancy.local_exchange import LocalAnswer, LocalMessage
from sourcewise.core.discrepancy.moments import Moments, concat_moments, moments_of, source_rows
from sourcewise.core.discrepancy.plug_in import PlugInAnswer, PlugInMessage
from sourcewise.core.discrepancy.pull import PullAnswer, PullMessage
from sourcewise.core.discrepancy.separation import LossMoments, model_losses
from sourcewise.core.family import SharedRows
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import BoundedLoss
from sourcewise.core.quadratic_sources import Derivatives, derivatives
from sourcewise.core.ridge import RidgeFamily


@dataclass(frozen=True)
class Description:
    """How many rows a source has, and what its owner adds to answers.

    Attributes
    ----------
    rows, sizes : arrays of shape (n_sources,)
        Rows, and how many they are worth.
    noise : array of shape (n_sources,)
        Standard deviation of the noise on every number.
    """

    rows: FloatArray
    sizes: FloatArray
    noise: FloatArray


@dataclass(frozen=True)
class DescribeMessage:
    """Asks for the number of rows, after the rules have been applied to them."""

    rows_beside: ClassVar[int] = 0

    n_classes: int

    def answer(self, sources: SourceData, names: Sequence[Any]) -> Description:
        """Count."""
        rows = sources.row_counts.astype(np.float64)
        return Description(rows, sources.sizes, np.zeros(len(rows)))


@dataclass(frozen=True)
class DerivativesMessage:
    """Asks for gradients and curvature of the mean loss at some models.

    Attributes
    ----------
    points : array of shape (n_points, n_outputs, n_features)
    """

    rows_beside: ClassVar[int] = 0

    points: FloatArray

    def answer(self, sources: SourceData, names: Sequence[Any]) -> Derivatives:
        """Answer for some sources."""
        return derivatives(sources, self.points)


@dataclass(frozen=True)
class GradientsAnswer:
    """Gradients alone, as in :class:`sourcewise.core.quadratic_sources.Derivatives`."""

    gradients: FloatArray


@dataclass(frozen=True)
class GradientsMessage:
    """Asks for gradients of the mean loss at some models.

    Attributes
    ----------
    points : array of shape (n_points, n_outputs, n_features)
    """

    rows_beside: ClassVar[int] = 0

    points: FloatArray

    def answer(self, sources: SourceData, names: Sequence[Any]) -> GradientsAnswer:
        """Answer for some sources."""
        return GradientsAnswer(derivatives(sources, self.points, curvature=False).gradients)


@dataclass(frozen=True)
class MomentsMessage:
    """Asks for second moments of the features and the target: all that a regression needs."""

    rows_beside: ClassVar[int] = 0

    n_classes: int

    def answer(self, sources: SourceData, names: Sequence[Any]) -> Moments:
        """Answer for some sources."""
        parts = [moments_of(source_rows(sources, i)) for i in range(sources.n_sources)]
        return concat_moments(parts)


@dataclass(frozen=True)
class SquareGradients:
    """Gradients of the mean squared loss, (n_sources, n_models, n_targets, n_features)."""

    gradients: FloatArray


@dataclass(frozen=True)
class SquareGradientsMessage:
    r"""Asks for the gradient of the mean squared loss at hypotheses, for the plug-in discrepancy.

    .. math:: \nabla \tfrac12 \sum_j s_j (x_j^\top w - t_j)^2 = G_i w - b_i

    Attributes
    ----------
    models : array of shape (n_models, n_features)
    """

    rows_beside: ClassVar[int] = 0

    models: FloatArray

    def answer(self, sources: SourceData, names: Sequence[Any]) -> SquareGradients:
        """Answer for some sources, one gradient for each model and target."""
        found = []
        for i in range(sources.n_sources):
            rows = source_rows(sources, i)
            off = (rows.X @ self.models.T)[:, :, None] - rows.targets[:, None, :]
            found.append(np.einsum("n,nmt,nd->mtd", rows.shares, off, rows.X, optimize=True))
        return SquareGradients(np.stack(found))


@dataclass(frozen=True)
class LossesMessage:
    """Asks for the losses of the models that gradient queries have found.

    Attributes
    ----------
    models : array of shape (n_sets, n_targets, n_features)
    """

    rows_beside: ClassVar[int] = 0

    models: FloatArray

    def answer(self, sources: SourceData, names: Sequence[Any]) -> LossMoments:
        """Answer for some sources: (n_sources, n_sets, n_targets)."""
        means, variances = [], []
        for i in range(sources.n_sources):
            rows = source_rows(sources, i)
            losses = [
                LossMoments.of(
                    model_losses(rows.X, rows.targets, of_set, sources.n_classes), rows.shares
                )
                for of_set in self.models
            ]
            means.append([found.mean for found in losses])
            variances.append([found.variance for found in losses])
        return LossMoments(np.array(means), np.array(variances))


QUESTIONS: dict[str, Any] = {
    "describe": DescribeMessage,
    "look": LookMessage,
    "local": LocalMessage,
    "derivatives": DerivativesMessage,
    "gradients": GradientsMessage,
    "moments": MomentsMessage,
    "square-gradients": SquareGradientsMessage,
    "losses": LossesMessage,
    "pull": PullMessage,
    "plug-in": PlugInMessage,
    "cross-fit": CrossFitMessage,
}
# Of which the reference's rows are a part, or could be had from it.
WITH_REFERENCE_ROWS = ("pull",)

# All that a message may be made of.
TRAVELLERS: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        *QUESTIONS.values(),
        AgreementAnswer,
        AgreementMessage,
        BoundedLoss,
        CrossFitAnswer,
        Derivatives,
        Description,
        FeatureAnswer,
        FeatureMessage,
        FoldSums,
        GradientsAnswer,
        LocalAnswer,
        LogisticFamily,
        LookAnswer,
        LossMoments,
        Moments,
        PlugInAnswer,
        PullAnswer,
        RidgeFamily,
        Sample,
        SharedRows,
        SquareGradients,
    )
}


def name_of(message: Any) -> str:
    """Name of a question by its message."""
    for name, cls in QUESTIONS.items():
        if type(message) is cls:
            return name
    raise KeyError(type(message).__name__)
