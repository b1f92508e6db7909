r"""Logistic regression for a whole grid of source weights, regularisations and left-out folds.

Column :math:`q` weighs source :math:`i` by :math:`a_{iq}` (zero for most sources in most columns)
and leaves out some reference rows. What makes the grid cheap:

- A source's rows share one weight, so its rows enter a gradient through
  :math:`a_{iq} X_i^\top (p - y)`: the product is taken with unweighted probabilities of exactly the
  columns in which the source counts, and :math:`X_i^\top y` is known beforehand.
- Rows are taken in blocks that stay in cache between the two products; no array of the size
  rows x columns ever exists.
- Curvature: :math:`H_q \approx \sum_i a_{iq} H_i + I / C`, with one :math:`H_i` per source and
  pilot solution. Columns of one regularisation whose weights are alike (folds of one trade-off)
  share one inverse, and start from the solution of one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.logistic import (
    centre_outputs,
    inverse_with_ridge,
    n_outputs,
    row_curvature,
    targets,
)
from sourcewise.core.quasi_newton import Gradient, inner, minimise_columns

BLOCK = 65536  # scores held at a time: half a megabyte stays in cache between two products
SMALL_SOURCE = 128  # sources below are processed together, their weights spread over the rows
MAX_PILOTS = 4
PILOT_TOL = 1e-6
CHEAP_ROWS = (
    20  # times the features: with so few rows, exact curvature costs no more than inverting
)
RENEW_DEAR = 15  # gradients after which other columns renew theirs: it costs dozens of gradients
RENEW_MULTINOMIAL = 10
ALIKE = 0.2  # columns whose weights differ by less in all share one inverse


@dataclass(frozen=True)
class GridProblem:
    """A grid of weightings.

    Attributes
    ----------
    data : SourceData
    weights : array of shape (n_sources, n_columns)
        ``a``: source weight times total weight.
    C : array of shape (n_columns,)
    fold : int array of shape (n_columns,)
        Row of ``reference_shares`` that a column uses.
    reference_shares : array of shape (n_folds, n_reference_rows)
        Row shares of the reference, zero where left out.
    penalty : array of shape (n_features,)
    """

    data: SourceData
    weights: FloatArray
    C: FloatArray
    fold: IntArray
    reference_shares: FloatArray
    penalty: FloatArray

    @property
    def ridge(self) -> FloatArray:
        """Penalty of each coefficient in each column, (n_features, n_columns)."""
        return np.asarray((self.penalty[:, None] / self.C).astype(self.data.X.dtype))


class SourceGradients:
    """Gradients of a grid's data term, gathered source by source."""

    def __init__(self, problem: GridProblem):
        data = problem.data
        self.problem = problem
        self.outputs = n_outputs(data.n_classes)
        self.groups = _groups(data)
        indicator = targets(data.y, data.n_classes, data.X.dtype)
        # How much probability the labels got bounds the objective from below.
        self.extra = np.hstack([indicator, np.ones((len(data.X), 1), data.X.dtype)])
        moments = [data.X[r].T @ (data.row_shares[r, None] * indicator[r]) for r in data.slices()]
        trusted = data.rows(data.reference)
        by_fold = [
            data.X[trusted].T @ (shares[:, None] * indicator[trusted])
            for shares in problem.reference_shares
        ]
        ones = [data.row_shares[r] @ indicator[r] for r in data.slices()]
        ones_by_fold = problem.reference_shares @ indicator[trusted]
        others = problem.weights.copy()
        others[data.reference] = 0.0
        own = problem.weights[data.reference]
        self.label_moments = np.tensordot(np.stack(moments), others, axes=(0, 0)).swapaxes(1, 2)
        self.label_moments += (own * np.stack(by_fold)[problem.fold].T).transpose(1, 2, 0)
        self.label_mass = others.T @ np.stack(ones) + own[:, None] * ones_by_fold[problem.fold]
        self.total = problem.weights.sum(axis=0)
        self.counts = np.stack([problem.weights[group].any(axis=0) for group in self.groups])

    def __call__(self, W: FloatArray, columns: IntArray) -> Gradient:
        """Gradient of the data term, and its value with ``1 - p`` in place of ``-log p``."""
        d, k = len(W), self.outputs
        G = np.zeros((d + k + 1, len(columns), k), dtype=W.dtype)
        counts = self.counts[:, columns]
        for position in np.flatnonzero(counts.any(axis=1)):
            group = self.groups[position]
            if counts[position].all():
                weights = self.problem.weights[group][:, columns]
                G += self._sum_over_rows(group, W, weights, columns)
            else:
                active = np.flatnonzero(counts[position])
                weights = self.problem.weights[group][:, columns[active]]
                G[:, active] += self._sum_over_rows(group, W[:, active], weights, columns[active])
        mass = self.label_mass[columns]
        hit = G[d : d + k].astype(np.float64)
        if k == 1:
            floor = G[-1, :, 0] - 2.0 * hit[0, :, 0] + mass[:, 0]
        else:
            floor = self.total[columns] - np.einsum("kpk->p", hit)
        return Gradient(G[:d] - self.label_moments[:, columns].astype(W.dtype), floor)

    def _sum_over_rows(
        self, group: slice, W: FloatArray, weights: FloatArray, columns: IntArray
    ) -> FloatArray:
        """Weighted sum of (x, labels, 1) times probability, over the rows of some sources."""
        data, k = self.problem.data, self.outputs
        d, n_columns = W.shape[:2]
        first, last = int(data.starts[group.start]), int(data.starts[group.stop])
        alone = group.stop == group.start + 1
        share = data.row_shares[first]
        # One weight for all rows is applied to their sum instead.
        common = (
            alone
            and group.start != data.reference
            and bool((data.row_shares[first:last] == share).all())
        )
        G = np.zeros((d + k + 1, n_columns * k), dtype=W.dtype)
        flat = np.ascontiguousarray(W).reshape(d, -1)
        step = max(32, BLOCK // (n_columns * k))
        for low in range(first, last, step):
            rows = slice(low, min(low + step, last))
            X = data.X[rows]
            P = (X @ flat).reshape(-1, n_columns, k)
            to_probabilities(P)
            if not common:
                P *= self._row_weights(rows, group, weights, columns)[:, :, None]
            flat_P = P.reshape(len(X), -1)
            G[:d] += X.T @ flat_P
            G[d:] += self.extra[rows].T @ flat_P
        G = G.reshape(-1, n_columns, k)
        if common:
            G *= (weights[0] * share).astype(W.dtype)[:, None]
        return G

    def _row_weights(
        self, rows: slice, group: slice, weights: FloatArray, columns: IntArray
    ) -> FloatArray:
        data = self.problem.data
        if group.start == data.reference:
            first = int(data.starts[group.start])
            shares = self.problem.reference_shares[:, rows.start - first : rows.stop - first]
            return np.asarray(shares.T[:, self.problem.fold[columns]] * weights)
        position = np.searchsorted(data.starts, np.arange(rows.start, rows.stop), "right") - 1
        return np.asarray(weights[position - group.start] * data.row_shares[rows, None])


def _groups(data: SourceData) -> list[slice]:
    """Large sources and the reference alone, runs of small sources together."""
    groups: list[slice] = []
    start, rows = 0, 0
    for i, count in enumerate(data.row_counts):
        alone = count >= SMALL_SOURCE or i == data.reference
        if alone or rows + count > 4 * SMALL_SOURCE:
            if rows:
                groups.append(slice(start, i))
            start, rows = i, 0
        if alone:
            groups.append(slice(i, i + 1))
            start = i + 1
        else:
            rows += int(count)
    if rows:
        groups.append(slice(start, data.n_sources))
    return groups


def to_probabilities(scores: FloatArray) -> None:
    """Replace scores of shape (n_rows, n_columns, n_outputs) by probabilities, in place.

    The exponential is taken in single precision, where it is several times faster, and corrected
    to first order for the rounding of its argument: probabilities are right to about 1e-7, sums,
    products and solutions stay in the precision of ``scores``.
    """
    if scores.shape[2] > 1:
        scores -= scores.max(axis=2, keepdims=True)
        scores[...] = fast_exp(scores)
        scores /= scores.sum(axis=2, keepdims=True)
        return
    np.negative(scores, out=scores)
    np.minimum(scores, 80.0, out=scores)
    scores[...] = fast_exp(scores)
    scores += 1.0
    np.reciprocal(scores, out=scores)


def fast_exp(x: FloatArray) -> FloatArray:
    """Exponential of x <= 80, to about 1e-7 relative."""
    narrow = x.astype(np.float32)
    result = np.exp(narrow)
    if x.dtype == np.float32:
        return result
    correction = x - narrow
    correction += 1.0
    correction *= result
    return np.asarray(correction)


def solve_grid(problem: GridProblem, *, tol: float, max_iter: int = 300) -> FloatArray:
    """Solve all columns; returns coefficients of shape (n_columns, n_outputs, n_features)."""
    gradients = SourceGradients(problem)
    leaders, leader_of, alike = _leaders(problem)
    curvature, pilots = _pilot_curvature(problem, gradients, leaders)
    steps = Preconditioner(problem, curvature)
    steps.prepare(pilots, leaders, None)
    solved = _minimise(problem, gradients, steps, pilots, leaders, tol, max_iter)
    W = solved[:, leader_of]
    followers = np.setdiff1d(np.arange(len(problem.C)), leaders)
    if len(followers):
        start = W[:, followers]
        share = np.where(alike[followers], leaders[leader_of[followers]], -1)
        steps.prepare(start, followers, share)
        W[:, followers] = _minimise(problem, gradients, steps, start, followers, tol, max_iter)
    return W.transpose(1, 2, 0)


def _minimise(
    problem: GridProblem,
    gradients: SourceGradients,
    steps: Preconditioner,
    start: FloatArray,
    chosen: IntArray,
    tol: float,
    max_iter: int,
) -> FloatArray:
    ridge = problem.ridge

    def evaluate(W: FloatArray, columns: IntArray) -> Gradient:
        data_term = gradients(W, chosen[columns])
        shrink = ridge[:, chosen[columns], None] * W
        return Gradient(data_term.value + shrink, data_term.floor + 0.5 * inner(shrink, W))

    solution, _ = minimise_columns(
        start,
        evaluate,
        lambda vectors, columns: steps(vectors, chosen[columns]),
        tol=tol,
        max_iter=max_iter,
        refresh=lambda W, columns: steps.renew(W, chosen[columns]),
        refresh_every=1,
    )
    return solution


def _leaders(problem: GridProblem) -> tuple[IntArray, IntArray, NDArray[np.bool_]]:
    """Columns that others start from: those of the first fold; the others' nearest by weights.

    Returns the leaders, for every column the position of its leader among them, and whether the
    two are alike enough to share an inverse.
    """
    leaders = np.flatnonzero(problem.fold == problem.fold.min())
    leader_of = np.empty(len(problem.C), dtype=np.intp)
    gaps = np.empty(len(problem.C))
    relative = problem.weights / problem.weights.sum(axis=0)
    for C in np.unique(problem.C):
        theirs = np.flatnonzero(problem.C[leaders] == C)
        for q in np.flatnonzero(problem.C == C):
            gap = np.abs(relative[:, leaders[theirs]] - relative[:, [q]]).sum(axis=0)
            leader_of[q], gaps[q] = theirs[np.argmin(gap)], gap.min()
    leader_of[leaders] = np.arange(len(leaders))
    return leaders, leader_of, gaps < ALIKE


def _pilot_curvature(
    problem: GridProblem, gradients: SourceGradients, leaders: IntArray
) -> tuple[SourceCurvature, FloatArray]:
    """Curvature of every source at a few pilot solutions, and a start for every leader.

    The pilots weigh sources as the leader with most rows does, at a few of the regularisations.
    They start from zero, with the curvature there.
    """
    settings = np.unique(problem.C)
    few = settings[np.unique(np.linspace(0, len(settings) - 1, MAX_PILOTS).round().astype(int))]
    rows = problem.data.row_counts @ (problem.weights[:, leaders] > 0)
    broad = problem.weights[:, leaders[np.argmax(rows)]]
    same = leaders[(problem.weights[:, leaders] == broad[:, None]).all(axis=0)]
    pilots = np.array([same[np.argmin(np.abs(np.log(problem.C[same] / C)))] for C in few])
    shape = (problem.data.X.shape[1], len(pilots), gradients.outputs)
    W = np.zeros(shape, dtype=problem.data.X.dtype)
    steps = Preconditioner(problem, SourceCurvature.at(problem.data, W[:, :1], np.array([np.nan])))
    steps.prepare(W, pilots, None)
    found = _minimise(problem, gradients, steps, W, pilots, PILOT_TOL, 50)
    curvature = SourceCurvature.at(problem.data, found, problem.C[pilots])
    return curvature, found[:, [curvature.nearest(C) for C in problem.C[leaders]]]


@dataclass(frozen=True)
class SourceCurvature:
    """Curvature of each source's mean loss at some pilot solutions.

    Attributes
    ----------
    value : float32 array of shape (n_pilots, n_sources, n_features ** 2)
        Mean over the outputs. Single precision is plenty for a preconditioner and halves the
        largest array there is.
    by_output : array of shape (n_pilots, n_sources, n_outputs)
        Mean second derivative of the loss in each output: a rare class has little curvature.
    C : array of shape (n_pilots,)
        Regularisation of each pilot.
    """

    value: FloatArray
    by_output: FloatArray
    C: FloatArray

    @classmethod
    def at(cls, data: SourceData, W: FloatArray, C: FloatArray) -> SourceCurvature:
        """Curvature at points of shape (n_features, n_pilots, n_outputs)."""
        d, n_pilots, k = W.shape
        value = np.empty((n_pilots, data.n_sources, d * d), dtype=np.float32)
        by_output = np.empty((n_pilots, data.n_sources, k))
        flat = W.reshape(d, -1)
        for i, rows in enumerate(data.slices()):
            X = data.X[rows]
            V = row_curvature((X @ flat).reshape(-1, n_pilots, k))
            V *= data.row_shares[rows, None, None].astype(X.dtype)
            by_output[:, i] = V.sum(axis=0)
            V = V.mean(axis=2)
            for p in range(n_pilots):
                value[p, i] = (X.T @ (X * V[:, [p]])).ravel()
        return cls(value, by_output, C)

    def nearest(self, C: float) -> int:
        """Pilot whose regularisation is nearest."""
        if len(self.C) == 1:
            return 0
        return int(np.argmin(np.abs(np.log(self.C / C))))

    def of_column(self, weights: FloatArray, C: float) -> FloatArray:
        """Weighted sum over sources, one matrix for each output."""
        d = int(np.sqrt(self.value.shape[2]))
        used, pilot = np.flatnonzero(weights), self.nearest(C)
        shared = weights[used].astype(np.float32) @ self.value[pilot][used]
        by_output = weights[used] @ self.by_output[pilot][used]
        factors = by_output / max(float(by_output.mean()), np.finfo(np.float64).tiny)
        return np.asarray(factors[:, None, None] * shared.reshape(d, d).astype(np.float64))


class Preconditioner:
    """Inverse Hessians: shared by columns of like weights, or a column's own."""

    def __init__(self, problem: GridProblem, curvature: SourceCurvature):
        self.problem = problem
        self.curvature = curvature
        self.group = np.full(len(problem.C), -1, dtype=np.intp)
        self.inverses: list[FloatArray] = []
        self.calls = 0

    def prepare(self, W: FloatArray, columns: IntArray, shared_with: IntArray | None) -> None:
        """Provide an inverse for each column, those of other columns where they are given (>= 0).

        Columns of few rows get the exact curvature at their starting points right away.
        """
        for k, q in enumerate(columns):
            if shared_with is not None and shared_with[k] >= 0:
                self.group[q] = self.group[shared_with[k]]
            else:
                H = self.curvature.of_column(self.problem.weights[:, q], self.problem.C[q])
                self._own(q, H)
        cheap = self._cheap(columns)
        self._renew(W[:, cheap], columns[cheap])

    def _own(self, column: int, curvature: FloatArray) -> None:
        self.group[column] = len(self.inverses)
        ridge = self.problem.ridge[:, column]
        self.inverses.append(np.stack([inverse_with_ridge(H, ridge) for H in curvature]))

    def _cheap(self, columns: IntArray) -> NDArray[np.bool_]:
        data = self.problem.data
        rows = data.row_counts @ (self.problem.weights[:, columns] > 0)
        return np.asarray(rows <= CHEAP_ROWS * data.X.shape[1])

    def __call__(self, vectors: FloatArray, columns: IntArray) -> FloatArray:
        """Apply the columns' inverses to vectors of shape (n_features, n_columns, n_outputs)."""
        result = np.empty_like(vectors)
        group = self.group[columns]
        order = np.argsort(group, kind="stable")
        bounds = np.flatnonzero(np.diff(group[order])) + 1
        for members in np.split(order, bounds):
            block = vectors[:, members].transpose(2, 0, 1)
            result[:, members] = (self.inverses[group[members[0]]] @ block).transpose(1, 2, 0)
        return centre_outputs(result)

    def renew(self, W: FloatArray, columns: IntArray) -> NDArray[np.bool_]:
        """Give running columns the exact curvature at their own points; returns which ones got it.

        For columns of many rows that costs dozens of gradients: they wait longer.
        """
        self.calls += 1
        # One output's curvature is exact, and Newton's own steps are best. For several it is only
        # block-diagonal: the memory must have time to learn what it leaves out.
        often = W.shape[2] == 1 or self.calls % RENEW_MULTINOMIAL == 0
        chosen = self._cheap(columns) & often
        if self.calls % RENEW_DEAR == 0:
            chosen[:] = True
        self._renew(W[:, chosen], columns[chosen])
        return chosen

    def _renew(self, W: FloatArray, columns: IntArray) -> None:
        data, problem = self.problem.data, self.problem
        for k, q in enumerate(columns):
            outputs = W.shape[2]
            H = np.zeros((outputs, data.X.shape[1], data.X.shape[1]))
            for i in np.flatnonzero(problem.weights[:, q]).tolist():
                X = data.X[data.rows(i)]
                shares = data.row_shares[data.rows(i)]
                if i == data.reference:
                    shares = problem.reference_shares[problem.fold[q]]
                V = row_curvature(X @ W[:, k]) * (problem.weights[i, q] * shares)[:, None]
                for output in range(outputs):
                    H[output] += X.T @ (X * V[:, [output]])
            self._own(q, H)
