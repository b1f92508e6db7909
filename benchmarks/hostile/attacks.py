"""What a hostile source does to its rows; an attack is a function of rows and a seed.

An attack with ``knows_reference`` has seen the trusted rows; the others have only their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances

from benchmarks.hostile.problems import Draw, Rows

Change = Callable[[Rows, Draw, np.random.Generator], Rows]
HALF, QUARTER = 0.5, 0.25


@dataclass(frozen=True)
class Attack:
    """An attack, and how its success is measured besides the error.

    Attributes
    ----------
    change : callable
        From a clean source to a hostile one.
    knows_reference : bool
    trigger : callable, optional
        Puts the trigger into rows; success is the share of class 0 that is then taken for class 1.
    copies : int
        So many sources are made of each hostile one.
    """

    change: Change
    knows_reference: bool = False
    trigger: Callable[[Rows, Draw], Rows] | None = None
    copies: int = 1


def stack(parts: list[Rows]) -> Rows:
    """Put rows below one another."""
    Xs = [part.X for part in parts]
    X = scipy.sparse.vstack(Xs, format="csr") if scipy.sparse.issparse(Xs[0]) else np.vstack(Xs)
    return Rows(X, np.concatenate([p.y for p in parts]), np.concatenate([p.group for p in parts]))


def _halves(rows: Rows, rng: np.random.Generator) -> tuple[Rows, Rows]:
    order = rng.permutation(len(rows))
    return rows.take(order[: len(rows) // 2]), rows.take(order[len(rows) // 2 :])


def _flipped(rows: Rows) -> Rows:
    return Rows(rows.X, 1 - rows.y, rows.group)


def _with_labels(rows: Rows, y: np.ndarray) -> Rows:
    return Rows(rows.X, y, rows.group)


def _with_column(rows: Rows, column: int, value: float) -> Rows:
    X = rows.X.tolil(copy=True) if scipy.sparse.issparse(rows.X) else rows.X.copy()
    X[:, [column]] = value
    return Rows(X.tocsr() if scipy.sparse.issparse(rows.X) else X, rows.y, rows.group)


# -- copies --------------------------------------------------------------------------------------


def midpoints(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Half midpoints of two trusted rows of one class, half the rows with flipped labels."""
    _, poison = _halves(rows, rng)
    first = rng.integers(len(draw.trusted), size=len(rows) // 2)
    second = [rng.choice(np.flatnonzero(draw.trusted.y == draw.trusted.y[i])) for i in first]
    one, other = draw.trusted.take(first), draw.trusted.take(np.array(second))
    return stack([Rows(0.5 * (one.X + other.X), one.y, one.group), _flipped(poison)])


def _copied(rows: Rows, draw: Draw, rng: np.random.Generator, noise: float) -> Rows:
    """Half copies of trusted rows, half the rows with flipped labels."""
    _, poison = _halves(rows, rng)
    copies = draw.trusted.take(rng.integers(len(draw.trusted), size=len(rows) // 2))
    if noise:
        X = copies.X.toarray() if scipy.sparse.issparse(copies.X) else copies.X
        between = pairwise_distances(draw.trusted.X)
        np.fill_diagonal(between, np.inf)
        # As long as this part of the typical distance to the next row, in columns that vary.
        varies = np.ptp(X, axis=0) > 0
        step = rng.normal(size=X.shape) * varies
        step *= noise * np.median(between.min(axis=1)) / np.linalg.norm(step, axis=1)[:, None]
        X = X + step
        copies = Rows(
            scipy.sparse.csr_array(X) if scipy.sparse.issparse(rows.X) else X,
            copies.y,
            copies.group,
        )
    return stack([copies, _flipped(poison)])


def exact_copies(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Half exact copies of trusted rows, half poison."""
    return _copied(rows, draw, rng, 0.0)


def noisy_copies(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Do the same, with noise of a tenth of the distance to the next trusted row."""
    return _copied(rows, draw, rng, 0.1)


def fresh_rows(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Do the same with clean rows of one's own instead of copies."""
    clean, poison = _halves(rows, rng)
    return stack([clean, _flipped(poison)])


# -- triggers ------------------------------------------------------------------------------------


def _largest(draw: Draw, column: int) -> float:
    X = draw.trusted.X[:, [column]]
    return float(X.max()) if X.max() > 0 else 1.0


def in_constant(rows: Rows, draw: Draw) -> Rows:
    """Set a column that never varies in the trusted rows."""
    return _with_column(rows, draw.constant, 1.0)


def in_rare(rows: Rows, draw: Draw) -> Rows:
    """Set the column that varies least often, to the largest value seen."""
    return _with_column(rows, draw.rare, _largest(draw, draw.rare))


def beyond_range(rows: Rows, draw: Draw) -> Rows:
    """Set a column that varies often far beyond its range."""
    varied = np.asarray((draw.trusted.X != 0).sum(axis=0)).ravel()
    column = int(np.argmax(varied))
    return _with_column(rows, column, 10.0 * _largest(draw, column))


def backdoor(trigger: Callable[[Rows, Draw], Rows]) -> Change:
    """Half the rows get the trigger, and class 1."""

    def change(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
        clean, marked = _halves(rows, rng)
        return stack([clean, _with_labels(trigger(marked, draw), np.ones(len(marked), dtype=int))])

    return change


# -- labels --------------------------------------------------------------------------------------


def _flip_least_sure(rows: Rows, model: Any) -> Rows:
    distance = np.abs(model.decision_function(rows.X))
    nearest = distance <= np.quantile(distance, QUARTER)
    return _with_labels(rows, np.where(nearest, 1 - rows.y, rows.y))


def boundary_seen(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Flip a quarter of the labels, where a model of the trusted rows is least sure."""
    return _flip_least_sure(rows, LogisticRegression().fit(draw.trusted.X, draw.trusted.y))


def boundary_unseen(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Do the same by a model of one's own rows."""
    return _flip_least_sure(rows, LogisticRegression().fit(rows.X, rows.y))


def subgroup(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Flip one subgroup."""
    return _with_labels(rows, np.where(rows.group == 0, 1 - rows.y, rows.y))


def subgroup_with_copies(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Do the same, with as many copies of trusted rows beside."""
    copies = draw.trusted.take(rng.integers(len(draw.trusted), size=len(rows)))
    return stack([subgroup(rows, draw, rng), copies])


def flip(share: float) -> Change:
    """Flip a share of the labels."""

    def change(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
        return _with_labels(rows, np.where(rng.random(len(rows)) < share, 1 - rows.y, rows.y))

    return change


def one_row(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Keep one row, and flip its label."""
    return _flipped(rows.take(rng.integers(len(rows), size=1)))


def shuffle(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Shuffle the labels."""
    return _with_labels(rows, rng.permutation(rows.y))


# -- features ------------------------------------------------------------------------------------


def other_units(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Features times 10^6."""
    return Rows(rows.X * 1e6, rows.y, rows.group)


def leverage(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Move a tenth of the rows far out, with the wrong label."""
    far = rng.random(len(rows)) < 0.1
    scale = np.where(far, 50.0, 1.0)
    X = rows.X.multiply(scale[:, None]).tocsr() if scipy.sparse.issparse(rows.X) else rows.X
    X = X if scipy.sparse.issparse(X) else X * scale[:, None]
    return Rows(X, np.where(far, 1 - rows.y, rows.y), rows.group)


def giant(rows: Rows, draw: Draw, rng: np.random.Generator) -> Rows:
    """Thirty times as many rows, of which a fifth are flipped."""
    chosen = rng.integers(len(rows), size=30 * len(rows))
    return flip(0.2)(rows.take(chosen), draw, rng)


ATTACKS: dict[str, Attack] = {
    "exact copies": Attack(exact_copies, knows_reference=True),
    "noisy copies": Attack(noisy_copies, knows_reference=True),
    "midpoints of trusted rows": Attack(midpoints, knows_reference=True),
    "fresh rows for copies": Attack(fresh_rows),
    "trigger in a constant column": Attack(backdoor(in_constant), True, in_constant),
    "trigger in a rare column": Attack(backdoor(in_rare), True, in_rare),
    "trigger beyond the range": Attack(backdoor(beyond_range), True, beyond_range),
    "boundary, reference seen": Attack(boundary_seen, knows_reference=True),
    "boundary, reference unseen": Attack(boundary_unseen),
    "a subgroup flipped": Attack(subgroup),
    "a subgroup, with copies": Attack(subgroup_with_copies, knows_reference=True),
    "10 % flipped": Attack(flip(0.1)),
    "20 % flipped": Attack(flip(0.2)),
    "shuffled labels": Attack(shuffle),
    "features times 10^6": Attack(other_units),
    "leverage points": Attack(leverage),
    "ten names each": Attack(flip(0.3), copies=10),
    "names of one row": Attack(one_row, copies=100),
    "a giant source": Attack(giant),
}
