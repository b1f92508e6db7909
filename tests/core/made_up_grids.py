"""Grids of weighted problems whose weights are known as a table."""

import numpy as np

from sourcewise.core.data import ReferenceRows
from sourcewise.core.grid_problem import GridProblem
from sourcewise.core.source_weights import GivenWeights
from sourcewise.engines.memory import MemorySources


def untrusted_rows_of(table, data):
    """Weights of the untrusted sources, from those of all."""
    if data.reference < 0:
        return GivenWeights(table)
    return GivenWeights(np.delete(table, data.reference, axis=0))


def grid_problem(data, table, **others):
    """Make a grid from a table of weights (n_sources, n_columns), the reference among them."""
    return GridProblem(
        sources=MemorySources(data, [int(i) for i in data.untrusted]),
        reference=ReferenceRows.of(data),
        weights=untrusted_rows_of(table, data),
        reference_weights=table[data.reference],
        **others,
    )


def row_weights(problem):
    """Weights of all rows in every column."""
    data = problem.sources.data
    of_sources = problem.weights.of(slice(None))
    table = np.insert(of_sources, data.reference, problem.reference_weights, axis=0)
    R = np.repeat(table, data.row_counts, axis=0) * data.row_shares[:, None]
    rows = data.rows(data.reference)
    R[rows] = problem.reference_shares[problem.fold].T * problem.reference_weights
    return R
