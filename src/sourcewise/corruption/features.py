"""Corruptions of the features, and of whole rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sourcewise.corruption.contract import (
    Corrupted,
    check_number,
    check_rows,
    choose_rows,
    like,
)


def shuffle_features(
    X: Any, y: Any, *, p: float = 1.0, permutation: Any = None, random_state: Any = None
) -> Corrupted:
    """Put the features of the chosen rows in another order, as a table with misplaced columns.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    permutation : int array of shape (n_features,), optional
        New column f is old column ``permutation[f]``; drawn by default. In the paper all corrupted
        sources share one, which :func:`corrupt_sources` draws.
    random_state : int, RandomState or None

    Examples
    --------
    >>> shuffle_features([[1, 2, 3]], [0], permutation=[2, 0, 1]).X
    array([[3, 1, 2]])
    """
    given = X
    X, y = _table(X, y)
    mask, rng = choose_rows(len(y), p, random_state)
    order = draw_permutation(X.shape[1], rng) if permutation is None else np.asarray(permutation)
    if order.ndim != 1 or sorted(order.tolist()) != list(range(X.shape[1])):
        raise ValueError(
            f"permutation must hold each of the column numbers 0 to {X.shape[1] - 1} once."
        )
    X[mask] = X[mask][:, order]
    return Corrupted(like(given, X), y, mask)


def draw_permutation(n_features: int, random_state: Any) -> np.ndarray:
    """Draw a random order of the columns."""
    return np.asarray(check_random_state(random_state).permutation(n_features))


def feature_noise(
    X: Any, y: Any, *, p: float = 1.0, scale: float = 1.0, random_state: Any = None
) -> Corrupted:
    """Add Gaussian noise to the chosen rows, as a bad sensor would.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    scale : float
        Standard deviation of the noise, in standard deviations of each feature in this source.
        Features that do not vary get none.
    random_state : int, RandomState or None

    Examples
    --------
    >>> noisy = feature_noise([[0.0, 1.0], [2.0, 1.0]], [0, 1], random_state=0)
    >>> (noisy.X != [[0.0, 1.0], [2.0, 1.0]]).tolist()
    [[True, False], [True, False]]
    """
    check_number(scale, "scale", "must be a number that is not negative", least=0.0)
    given = X
    X, y = _floats(X, y)
    mask, rng = choose_rows(len(y), p, random_state)
    noise = rng.standard_normal((int(mask.sum()), X.shape[1]))
    if mask.any():
        X[mask] += (scale * X.std(axis=0) * noise).astype(X.dtype)
    return Corrupted(like(given, X), y, mask)


def feature_scale(
    X: Any, y: Any, *, p: float = 1.0, factor: float = 10.0, random_state: Any = None
) -> Corrupted:
    """Multiply the features of the chosen rows, as if recorded in another unit.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    factor : float or array of shape (n_features,)
    random_state : int, RandomState or None

    Examples
    --------
    >>> feature_scale([[1.0, 2.0]], [0], factor=100).X
    array([[100., 200.]])
    """
    given = X
    X, y = _floats(X, y)
    mask, _ = choose_rows(len(y), p, random_state)
    factors = np.asarray(factor)
    if factors.dtype.kind not in "iuf" or factors.shape not in ((), (X.shape[1],)):
        raise ValueError(
            f"factor must be one number, or one for each of {X.shape[1]} columns; got {factor!r}."
        )
    X[mask] = X[mask] * factors
    return Corrupted(like(given, X), y, mask)


def _table(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    X, y = check_rows(X, y)
    if X.ndim != 2:
        raise ValueError(f"X must be a table of rows and columns; got {X.ndim} dimensions.")
    return X, y


def _floats(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    names = getattr(X, "columns", None)
    X, y = _table(X, y)
    if X.dtype.kind == "f":
        return X, y
    for position, column in enumerate(X.T):
        try:
            column.astype(np.float64)
        except (TypeError, ValueError) as error:
            name = position if names is None else names[position]
            raise ValueError(f"Column {name!r} of X does not hold numbers.") from error
    return X.astype(np.float64), y


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
