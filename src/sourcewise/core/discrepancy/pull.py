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
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.family import JointFamily, SharedRows, SourceRuns
from sourcewise.core.grid_problem import GridProblem
from sourcewise.core.linear_grid import solve_grid
from sourcewise.core.logistic import MANY_FEATURES
from sourcewise.core.quadratic_sources import QuadraticSources
from sourcewise.core.source_curvature import row_moments
from sourcewise.core.source_weights import GivenWeights

JOINT_TOL = 1e-7  # far below the noise that the reference's rows judge them with
EXACT_TOL = 1e-14  # where losses are quadratic, and a step leads to the last digits


def pull_question(reference: ReferenceModels) -> Question:
    """Ask for the pull: the reference's rows are sent, to put a source's own beside them.

    They come under the weights of the fold models, which are sent as well, to start from.
    """
    rows = reference.rows
    sent = {
        "family": reference.family,
        "setting": reference.setting,
        "X": rows.X,
        "y": rows.y,
        "weights": reference.folds.training_weights(rows.shares),
        "models": reference.models,
        "size": rows.size,
    }
    known = {"reference": reference, "total": sent["weights"].sum(axis=0)}
    return Question(Message(answer_pull, sent, len(rows.y)), judge_pull, known)


def answer_pull(
    sources: SourceData,
    names: Sequence[Any],
    *,
    family: JointFamily,
    setting: float,
    X: FloatArray,
    y: Any,
    weights: FloatArray,
    models: Any,
    size: float,
) -> Arrays:
    """Join each source with the reference.

    No source weighs more than the reference does, which has the effective ``size``: rows of larger
    ones count less.
    """
    shared = SharedRows(X, y, weights, models)
    return join(sources, np.minimum(sources.sizes, size), family, shared, setting)


def join(
    sources: SourceData, sizes: FloatArray, family: Any, shared: SharedRows, setting: float
) -> Arrays:
    """Fit each source beside the shared rows, under each weighting of these.

    Joint models are (n_models, n_outputs, n_features, n_sources).
    """
    weights = sizes[sources.source_of_row] * sources.row_shares
    runs = SourceRuns(sources.X, sources.y, weights, sources.row_counts)
    models = family.fit_beside(shared, runs, setting)
    each = models.reshape(sources.n_sources, -1, *models.shape[1:])
    return {"joint_models": np.moveaxis(each, 0, -1), "sizes": sizes}


def quadratic_joint_models(
    reference: ReferenceModels, sources: QuadraticSources, penalty: FloatArray
) -> Arrays:
    """Join each source with the reference where its rows stay where they are, by derivatives.

    The reference's own rows are at hand; a source's mean loss is taken to second order around the
    reference's model (:mod:`sourcewise.core.quadratic_sources`). But for regression, what comes
    out is an approximation: a source whose rows would move the model far is moved by the curvature
    where it started. Still nobody has to be believed: what training will use is what the
    reference's rows judge here. The penalty is (n_features,).
    """
    rows = reference.rows
    weights = reference.folds.training_weights(rows.shares)
    sizes = np.minimum(sources.sizes, rows.size)
    start = np.asarray(reference.models, dtype=np.float64)
    models = np.empty((*start.shape, len(sizes)))
    d = start.shape[2]
    if sources.exact and d <= MANY_FEATURES:  # systems of equations, and small ones
        shared = [row_moments(rows.X, rows.y, column) for column in weights.T]
        grams, crosses = (np.stack(part) for part in zip(*shared, strict=True))
        grams = grams + np.diag(penalty / reference.setting)
        for i, size in enumerate(sizes):
            gram, cross = sources.known.hessians[i, 0], -sources.known.gradients[i, 0, :d]
            joint = np.linalg.solve(grams + size * gram, crosses[:, :, None] + size * cross)
            models[:, 0, :, i] = joint[:, :, 0]
        return {"joint_models": models, "sizes": sizes}
    tol = EXACT_TOL if sources.exact else JOINT_TOL
    for i, size in enumerate(sizes):
        problem = joint_problem(reference, sources.some([i]), weights, size, penalty)
        models[..., i] = solve_grid(problem, tol=tol, start=start)
    return {"joint_models": models, "sizes": sizes}


def joint_problem(
    reference: ReferenceModels,
    source: QuadraticSources,
    weights: FloatArray,
    size: float,
    penalty: FloatArray,
) -> GridProblem:
    """Fit one source, of so many rows, beside the reference's under weights (n_rows, n_models)."""
    n_models = weights.shape[1]
    return GridProblem(
        sources=source,
        reference=reference.rows,
        weights=GivenWeights(np.full((1, n_models), size)),
        reference_weights=np.ones(n_models),
        C=np.full(n_models, reference.setting),
        fold=np.arange(n_models),
        reference_shares=weights.T,
        penalty=penalty,
    )


def judge_pull(answer: Arrays, reference: ReferenceModels, total: FloatArray) -> Findings:
    """Judge the joint models on the reference's rows that they have not seen.

    Pulls and their standard errors, the models held fixed, are (n_sets, n_sources). ``total`` is
    the weight of the reference in each joint model.
    """
    X, y = reference.rows.X, reference.rows.y
    models = np.moveaxis(answer["joint_models"], -1, 0)
    models = models.reshape(-1, *models.shape[2:])
    losses = reference.loss(reference.family.predict(models, X), y)
    sizes = answer["sizes"][:, None]
    losses = losses.reshape(len(sizes), *reference.losses.shape)
    their_share = sizes / (sizes + total)
    changes = (losses - reference.losses) / their_share[:, :, None]
    # (n_sources, n_sets, n_reference_rows)
    changes = np.nan_to_num(reference.folds.cross_fitted(changes))
    means = np.einsum("isn,sn->si", changes, reference.set_shares)
    squares = np.einsum("isn,sn->si", changes**2, reference.set_shares)
    freedom = np.maximum(reference.set_sizes - 1.0, 1e-9)[:, None]
    errors = np.sqrt(np.maximum(squares - means**2, 0.0) / freedom)
    return {"pulls": means, "pull_errors": errors}
