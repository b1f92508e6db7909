"""Weighted problems of a pool, as a grid that is solved in as few coordinates as they need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.family import Visit, WeightedProblems
from sourcewise.core.grid_problem import GridProblem
from sourcewise.core.grid_steps import leading_directions
from sourcewise.core.linear_grid import solve_grid, walk_grid
from sourcewise.core.row_space import RowSpace


class WeightedGrid:
    """Pairs of weighted problems and regularisations.

    Parameters
    ----------
    problems : WeightedProblems
    penalty : callable
        Penalty of each of so many coefficients, relative to ``1 / C``.
    which : int array of shape (n_columns,)
        Problem of each column.
    C : array of shape (n_columns,)
    """

    def __init__(
        self,
        problems: WeightedProblems,
        penalty: Callable[[int], FloatArray],
        which: IntArray,
        C: FloatArray,
    ):
        self.which, self.C = which, C
        directions = leading_directions(problems.sources, problems.reference)
        problems, self.space = problems.in_row_space()
        self.basis = _in_coordinates(directions, self.space)
        self.problem = GridProblem(
            sources=problems.sources,
            reference=problems.reference,
            weights=problems.weights.in_columns(which).scaled(problems.totals[which]),
            reference_weights=problems.reference_weights[which] * problems.totals[which],
            C=C,
            fold=problems.fold[which] + 1,
            reference_shares=problems.reference_shares,
            penalty=penalty(problems.reference.X.shape[1]),
        )
        self.n_problems = len(problems)

    def solve(
        self,
        tol: float,
        start: FloatArray | None = None,
        on_stop: Callable[[int], None] | None = None,
    ) -> FloatArray:
        """Solve all columns, (n_columns, n_outputs, n_features), as `solve_grid` does."""
        near = None if start is None else self.space.into(start)
        found = solve_grid(self.problem, tol=tol, basis=self.basis, start=near, on_stop=on_stop)
        return self.space.back(found)

    def walk(self, visit: Visit, tol: float, on_stop: Callable[[int], None] | None = None) -> None:
        """Solve one regularisation after the other, and show models to the visitor."""

        def show(columns: IntArray, W: FloatArray) -> NDArray[np.bool_]:
            models = self.space.back(W.transpose(1, 2, 0))
            wanted = visit(float(self.C[columns[0]]), self.which[columns], models)
            return np.asarray(wanted[self.which])

        walk_grid(self.problem, show, tol=tol, basis=self.basis, on_stop=on_stop)


def _in_coordinates(directions: FloatArray | None, space: RowSpace) -> FloatArray | None:
    """Give directions that rows span in the coordinates of the rows."""
    if directions is None or space.basis is None:
        return directions
    if directions.shape[1] >= space.X.shape[-1] - 1:
        return None  # so few coordinates need no others
    as_models = np.column_stack([directions.T, np.zeros(directions.shape[1])])
    return np.asarray(space.into(as_models)[:, :-1].T)
