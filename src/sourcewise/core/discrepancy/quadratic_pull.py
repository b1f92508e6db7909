r"""The pull of sources whose rows stay where they are, from derivatives of their losses.

The reference's own rows are at hand; a source's mean loss is taken to second order around the
reference's model (:mod:`sourcewise.core.quadratic_sources`). Joint models of the two are then as
easy to find as with all rows. What comes out is an approximation: a source whose rows would move
the model far is moved by the curvature where it started. But nobody has to be believed: what
training will use is what the reference's rows judge here.
"""

from __future__ import annotations

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.engine import Arrays
from sourcewise.core.grid_problem import GridProblem
from sourcewise.core.linear_grid import solve_grid
from sourcewise.core.quadratic_sources import QuadraticSources
from sourcewise.core.source_weights import GivenWeights

JOINT_TOL = 1e-7  # far below the noise that the reference's rows judge them with


def quadratic_joint_models(
    reference: ReferenceModels, sources: QuadraticSources, penalty: FloatArray
) -> Arrays:
    """Fit each source beside the reference under each of its fold weightings.

    Parameters
    ----------
    reference : ReferenceModels
    sources : QuadraticSources
        Around the reference's model under ``reference.setting``.
    penalty : array of shape (n_features,)
    """
    rows = reference.rows
    weights = reference.folds.training_weights(rows.shares)
    n_models = weights.shape[1]
    sizes = np.minimum(sources.sizes, rows.size)
    start = np.asarray(reference.models, dtype=np.float64)
    models = np.empty((*start.shape, len(sizes)))
    for i, size in enumerate(sizes):
        problem = GridProblem(
            sources=sources.some([i]),
            reference=rows,
            weights=GivenWeights(np.full((1, n_models), size)),
            reference_weights=np.ones(n_models),
            C=np.full(n_models, reference.setting),
            fold=np.arange(n_models),
            reference_shares=weights.T,
            penalty=penalty,
        )
        models[..., i] = solve_grid(problem, tol=JOINT_TOL, start=start)
    return {"joint_models": models, "sizes": sizes}
