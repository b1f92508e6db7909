"""Three problems: handwritten digits, made-up numbers in groups, and rows like words of a text.

Each has what an attacker looks for: a column that is constant in any small sample, one that is
rarely anything but zero, and a subgroup of about a tenth of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_digits

N_TEST, ROWS, N_SOURCES = 500, 100, 10


@dataclass(frozen=True)
class Rows:
    """Rows, their labels (0 or 1), and which group each belongs to; group 0 is the subgroup."""

    X: Any
    y: np.ndarray
    group: np.ndarray

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.y)

    def take(self, chosen: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.X[chosen], self.y[chosen], self.group[chosen])


@dataclass(frozen=True)
class Draw:
    """Trusted rows, clean sources, test rows, and the columns an attacker may use."""

    trusted: Rows
    sources: list[Rows]
    test: Rows
    constant: int  # a column that is constant in the trusted rows
    rare: int  # the column that varies least often in them


@cache
def _digits() -> Rows:
    X, digit = load_digits(return_X_y=True)
    X = np.column_stack([X / 16.0, np.zeros(len(X))])
    return Rows(X, digit % 2, (digit != 3).astype(int))


def _made_up(seed: int) -> Rows:
    rng = np.random.default_rng([seed, 1])
    n, d, groups = 1800, 20, 10
    group = rng.integers(groups, size=n)
    centres = rng.normal(scale=1.5, size=(groups, d))
    X = centres[group] + rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) / np.sqrt(d) + 0.5 * rng.normal(size=n)
    rare = np.where(rng.random(n) < 0.04, rng.exponential(size=n), 0.0)
    X = np.column_stack([X, rare, np.zeros(n)])
    return Rows(X, (score > np.median(score)).astype(int), group)


def _words(seed: int) -> Rows:
    rng = np.random.default_rng([seed, 2])
    n, d, topics = 1800, 1000, 10
    common = rng.dirichlet(np.full(d, 0.1))
    group = rng.integers(topics, size=n)
    y = rng.integers(2, size=n)
    about = rng.dirichlet(np.full(d, 0.02), size=topics)
    says = rng.dirichlet(np.full(d, 0.05), size=2)
    chances = 0.6 * common + 0.25 * about[group] + 0.15 * says[y]
    counts = np.stack([rng.multinomial(40, p / p.sum()) for p in chances])
    X = np.log1p(counts) / np.linalg.norm(np.log1p(counts), axis=1, keepdims=True)
    X = scipy.sparse.csr_array(np.column_stack([X, np.zeros(n)]))
    return Rows(X, y, group)


PROBLEMS: dict[str, Callable[[int], Rows]] = {
    "digits": lambda seed: _digits(),
    "made up": _made_up,
    "words": _words,
}


def draw(problem: str, n_trusted: int, seed: int) -> Draw:
    """Deal the rows of a problem: trusted rows, ten clean sources, test rows."""
    rows = PROBLEMS[problem](seed)
    order = np.random.default_rng([seed, n_trusted]).permutation(len(rows))
    cuts = np.cumsum([n_trusted, N_TEST, *[ROWS] * N_SOURCES])
    trusted, test, *sources = [rows.take(part) for part in np.split(order[: cuts[-1]], cuts[:-1])]
    varied = np.asarray((trusted.X != 0).sum(axis=0)).ravel()
    often = np.where(varied > 0, varied, len(trusted) + 1)
    return Draw(trusted, sources, test, rows.X.shape[1] - 1, int(np.argmin(often)))
