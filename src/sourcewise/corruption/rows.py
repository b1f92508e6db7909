"""Corruptions of whole rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.corruption.contract import (
    Corrupted,
    check_number,
    check_rows,
    choose_rows,
    like,
)


def duplicate_rows(
    X: Any, y: Any, *, p: float = 1.0, n_distinct: int = 1, random_state: Any = None
) -> Corrupted:
    """Replace the chosen rows by copies of a few of them: many rows, little information.

    Parameters
    ----------
    X, y : arrays of n rows
        One source. Its number of rows stays the same.
    p : float
        Share of rows to corrupt.
    n_distinct : int
        How many of the chosen rows are left to be copied; they are among the rows touched.
    random_state : int, RandomState or None

    Examples
    --------
    >>> X, y, mask = duplicate_rows([[1], [2], [3]], [0, 1, 0], random_state=0)
    >>> len(set(X[:, 0].tolist()))
    1
    """
    check_number(n_distinct, "n_distinct", "must be a whole number, at least 1", least=1)
    if n_distinct != int(n_distinct):
        raise ValueError(f"n_distinct must be a whole number, at least 1; got {n_distinct!r}.")
    given = X
    X, y = check_rows(X, y)
    mask, rng = choose_rows(len(y), p, random_state)
    chosen = np.flatnonzero(mask)
    if len(chosen):
        kept = rng.permutation(chosen)[: int(n_distinct)]
        copied = kept[np.arange(len(chosen)) % len(kept)]
        X[chosen], y[chosen] = X[copied], y[copied]
    return Corrupted(like(given, X), y, mask)
