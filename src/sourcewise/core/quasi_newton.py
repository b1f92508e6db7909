r"""Limited-memory quasi-Newton steps for many convex problems side by side.

Every column is a problem of its own: its own point, memory and step. What is shared is the cost of
evaluating gradients, which the caller does for all running columns at once. A column that has
converged leaves the batch. The curvature it starts from (`precondition`) is the caller's; with a
good one most columns need a handful of gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray

MEMORY = 5  # pairs of steps and gradient changes that a column remembers
OVERSHOOT = 0.5  # a step is shortened when the slope at its end exceeds this share of the first


class Gradient(NamedTuple):
    """Gradient of some columns, and a number that their objective is known to exceed."""

    value: FloatArray
    floor: FloatArray


Evaluate = Callable[[FloatArray, IntArray], Gradient]
Precondition = Callable[[FloatArray, IntArray], FloatArray]
Refresh = Callable[[FloatArray, IntArray], NDArray[np.bool_]]


def minimise_columns(
    start: FloatArray,
    evaluate: Evaluate,
    precondition: Precondition,
    *,
    tol: float,
    max_iter: int,
    refresh: Refresh | None = None,
    refresh_every: int = 8,
    on_stop: Callable[[int], None] | None = None,
    narrow: bool = False,
) -> tuple[FloatArray, int]:
    """Minimise smooth convex functions, one for each column.

    Parameters
    ----------
    start : array of shape (n_features, n_columns, n_outputs)
    evaluate : callable
        ``evaluate(points, columns)`` returns a `Gradient` for the columns asked for.
    precondition : callable
        ``precondition(vectors, columns)`` applies an approximate inverse Hessian.
    tol : float
        A column stops when its predicted decrease is below ``tol`` times its objective.
    max_iter : int
        Gradients after which every column stops.
    refresh : callable, optional
        ``refresh(points, columns)``, called every ``refresh_every`` gradients, may renew the
        preconditioner of columns that are still running; it returns which ones it did.
    refresh_every : int
    on_stop : callable, optional
        Told how many columns have just stopped.
    narrow : bool
        Remember and take directions in single precision, which takes half the memory: points and
        gradients, which say where the solution is, keep theirs.

    Returns
    -------
    solution : array like ``start``
    n_iter : int
        Gradients until the slowest column stopped.
    """
    solution = start.copy()
    columns = np.arange(start.shape[1])
    W = start
    g = evaluate(W, columns)
    pairs: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    remembered = np.dtype(np.float32) if narrow else W.dtype
    iteration = 0
    while True:
        direction = _two_loop(g.value.astype(remembered), pairs, precondition, columns)
        direction = np.negative(direction, dtype=W.dtype)
        slope = inner(g.value, direction)
        done = -0.5 * slope <= tol * g.floor
        # The last step is known already and costs nothing more.
        solution[:, columns[done]] = W[:, done] + direction[:, done]
        if iteration >= max_iter:
            solution[:, columns[~done]] = W[:, ~done]
            done[:] = True
        if done.any():
            if on_stop is not None:
                on_stop(int(done.sum()))
            keep = ~done
            if not keep.any():
                return solution, iteration
            columns, slope = columns[keep], slope[keep]
            W, direction = W[:, keep], direction[:, keep]
            g = Gradient(g.value[:, keep], g.floor[keep])
            pairs = [(s[:, keep], v[:, keep], rho[keep]) for s, v, rho in pairs]
        iteration += 1
        move, new = _step(W, direction, slope, columns, evaluate)
        W = W + move
        change = new.value - g.value
        g = new
        curved = inner(move, change)
        # A pair with no curvature left (rounding near the solution) teaches nothing.
        safe = curved > 1e-12 * np.sqrt(inner(move, move) * inner(change, change))
        rho = np.where(safe, 1.0 / np.where(safe, curved, 1.0), 0.0)
        newest = move.astype(remembered, copy=False), change.astype(remembered, copy=False)
        pairs = [*pairs[-(MEMORY - 1) :], (*newest, rho.astype(remembered))]
        if refresh is not None and iteration % refresh_every == 0:
            pairs = _forget(pairs, refresh(W, columns))


def inner(A: FloatArray, B: FloatArray) -> FloatArray:
    """Inner product of each column of two arrays of shape (n_features, n_columns, n_outputs)."""
    return np.asarray(np.einsum("dpk,dpk->p", A, B, dtype=np.float64))


def _forget(
    pairs: list[tuple[FloatArray, FloatArray, FloatArray]], renewed: NDArray[np.bool_]
) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
    """Drop what columns remember relative to a curvature they have lost."""
    return [(s, v, np.where(renewed, 0.0, rho).astype(rho.dtype)) for s, v, rho in pairs]


def _step(
    W: FloatArray, direction: FloatArray, slope: FloatArray, columns: IntArray, evaluate: Evaluate
) -> tuple[FloatArray, Gradient]:
    """Take the full step, shortened where it overshoots.

    On a convex line the slope alone tells whether a step went too far, so the objective, whose
    logarithms cost more than the products, is never needed.
    """
    move = direction
    new = evaluate(W + move, columns)
    end = inner(new.value, direction)
    length = np.ones(len(columns))
    for _ in range(20):
        far = np.flatnonzero(end > OVERSHOOT * -slope)
        if len(far) == 0:
            break
        # Where the slope would vanish if it were linear in the step.
        length[far] *= np.clip(slope[far] / (slope[far] - end[far]), 0.1, 0.9)
        move = move.copy() if move is direction else move
        move[:, far] = length[far].astype(W.dtype)[None, :, None] * direction[:, far]
        again = evaluate(W[:, far] + move[:, far], columns[far])
        new.value[:, far] = again.value
        new.floor[far] = again.floor
        end[far] = inner(again.value, direction[:, far])
    return move, new


def _two_loop(
    gradient: FloatArray,
    pairs: list[tuple[FloatArray, FloatArray, FloatArray]],
    precondition: Precondition,
    columns: IntArray,
) -> FloatArray:
    """Apply what is remembered to a gradient, which is used up."""
    q = gradient
    scratch = np.empty_like(q)  # large arrays are dear to allocate
    coefficients = []
    for s, v, rho in reversed(pairs):
        a = (rho * inner(s, q)).astype(q.dtype)
        q -= np.multiply(a[None, :, None], v, out=scratch)
        coefficients.append(a)
    r = precondition(q, columns)
    if pairs:
        # The last pair tells how far the preconditioner's scale is off.
        _, v, rho = pairs[-1]
        size = inner(v, precondition(v, columns)) * rho
        r *= np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 1.0).astype(q.dtype)[:, None]
    for (s, v, rho), a in zip(pairs, reversed(coefficients), strict=True):
        b = (rho * inner(v, r)).astype(q.dtype)
        r += np.multiply((a - b)[None, :, None], s, out=scratch)
    return r
