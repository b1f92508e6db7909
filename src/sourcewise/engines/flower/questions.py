"""What sites can be asked besides the discrepancies' own questions, and all questions by name.

A question is known by a short name, which is what a data owner allows or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.findings import concat_findings
from sourcewise.core.discrepancy.methods import ANSWERED_BY
from sourcewise.core.discrepancy.moments import Moments, concat_moments, moments_of, source_rows
from sourcewise.core.discrepancy.plug_in import losses_of_models
from sourcewise.core.engine import Arrays, Message
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import BoundedLoss
from sourcewise.core.quadratic_sources import Derivatives, derivatives
from sourcewise.core.ridge import RidgeFamily


def describe(sources: SourceData, names: Sequence[Any]) -> Arrays:
    """Count rows, after the rules have been applied to them, and what they are worth.

    The site adds to the answer the standard deviation of the noise on every number of others.
    """
    rows = sources.row_counts.astype(np.float64)
    return {"rows": rows, "sizes": sources.sizes, "noise": np.zeros(len(rows))}


def answer_derivatives(sources: SourceData, names: Sequence[Any], *, points: FloatArray) -> Arrays:
    """Tell gradients and curvature of the mean loss at models (n_points, n_outputs, n_features).

    See `Derivatives`, but that sources are last here.
    """
    found = derivatives(sources, points)
    return {name: np.moveaxis(array, 0, -1) for name, array in vars(found).items()}


def answer_gradients(sources: SourceData, names: Sequence[Any], *, points: FloatArray) -> Arrays:
    """Tell the gradients alone."""
    gradients = derivatives(sources, points, curvature=False).gradients
    return {"gradients": np.moveaxis(gradients, 0, -1)}


def answer_moments(sources: SourceData, names: Sequence[Any]) -> Arrays:
    """Tell second moments of the features and the target: all that a regression needs."""
    each = [moments_of(source_rows(sources, i)) for i in range(sources.n_sources)]
    return {name: np.moveaxis(array, 0, -1) for name, array in vars(concat_moments(each)).items()}


def answer_square_gradients(
    sources: SourceData, names: Sequence[Any], *, models: FloatArray
) -> Arrays:
    r"""Tell gradients of the mean squared loss at models (n_models, n_features).

    .. math:: \nabla \tfrac12 \sum_j s_j (x_j^\top w - t_j)^2 = G_i w - b_i

    One for each model and target, (n_models, n_targets, n_features, n_sources), for the plug-in
    discrepancy.
    """
    found = []
    for i in range(sources.n_sources):
        rows = source_rows(sources, i)
        off = (rows.X @ models.T)[:, :, None] - rows.targets[:, None, :]
        found.append(np.einsum("n,nmt,nd->mtd", rows.shares, off, rows.X, optimize=True))
    return {"gradients": np.stack(found, axis=-1)}


def answer_losses(sources: SourceData, names: Sequence[Any], *, models: FloatArray) -> Arrays:
    """Tell the losses of the models (n_sets, n_targets, n_features) that gradients have found."""
    same = np.repeat(models[..., None], sources.n_sources, axis=-1)
    return losses_of_models(sources, same)


NO_NAME = "Sites know no question that {function} answers; enter it in ANSWERED_BY (methods.py)."

QUESTIONS: dict[str, Callable[..., Arrays]] = {
    "describe": describe,
    "derivatives": answer_derivatives,
    "gradients": answer_gradients,
    "moments": answer_moments,
    "square-gradients": answer_square_gradients,
    "losses": answer_losses,
    **ANSWERED_BY,
}

# All that a message may hold besides arrays, numbers and texts.
LEARNERS: dict[str, Any] = {cls.__name__: cls for cls in (BoundedLoss, LogisticFamily, RidgeFamily)}


def name_of(message: Message) -> str:
    """Name of a question by its message."""
    for name, answered_by in QUESTIONS.items():
        if answered_by is message.answered_by:
            return name
    raise ValueError(NO_NAME.format(function=message.answered_by.__name__))


def ask_derivatives(points: FloatArray) -> Message:
    """Ask for gradients and curvature."""
    return Message(answer_derivatives, {"points": points})


def derivatives_in(answers: Sequence[Arrays]) -> Derivatives:
    """Read the answers of several sites."""
    return Derivatives(**_sources_first(answers))


def moments_in(answers: Sequence[Arrays]) -> Moments:
    """Read the answers of several sites."""
    return Moments(**_sources_first(answers))


def _sources_first(answers: Sequence[Arrays]) -> Arrays:
    together = concat_findings(answers).items()
    return {name: np.ascontiguousarray(np.moveaxis(array, -1, 0)) for name, array in together}
