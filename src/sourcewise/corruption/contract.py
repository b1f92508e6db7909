"""What every corruption takes and returns, and what it refuses."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from sourcewise.validation import LENGTHS_DIFFER


class Corrupted(NamedTuple):
    """Copies of the rows of one source after corruption.

    Attributes
    ----------
    X : array or frame
        A copy, a frame of the same columns where one was given; the input is never changed.
    y : array
        A copy.
    mask : bool array of shape (n_rows,)
        Rows that were chosen for corruption.

    Examples
    --------
    >>> from sourcewise.corruption import flip_labels
    >>> X, y, mask = flip_labels([[1], [2], [3], [4]], [0, 1, 0, 1], p=0.5, random_state=0)
    >>> int(mask.sum()), y[mask].tolist() != [0, 1, 0, 1]
    (2, True)
    """

    X: Any
    y: np.ndarray
    mask: np.ndarray


def check_rows(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Copy rows and labels into arrays; there must be one label for each row."""
    if scipy.sparse.issparse(X):
        raise ValueError("X is a sparse matrix, which corruptions do not take; pass X.toarray().")
    X, y = np.array(X), np.array(y)
    if y.ndim != 1:
        raise ValueError(f"y must hold one label a row; got an array of shape {y.shape}.")
    if X.ndim == 0 or len(X) != len(y):
        rows = 0 if X.ndim == 0 else len(X)
        raise ValueError(LENGTHS_DIFFER.format(rows=rows, what="y", length=len(y)))
    return X, y


def check_class_labels(y: np.ndarray, corruption: str) -> None:
    """Refuse targets of regression where classes are exchanged."""
    if len(y) and type_of_target(y).startswith("continuous"):
        raise ValueError(f"{corruption} exchanges classes, and y holds real numbers.")


def check_number(value: Any, name: str, what: str, *, least: float, most: float = np.inf) -> None:
    """Check a parameter that is one number within bounds."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not number or not least <= value <= most:
        raise ValueError(f"{name} {what}; got {value!r}.")


def like(given: Any, X: np.ndarray) -> Any:
    """Put rows back into a frame of the columns and index that they came with."""
    if not hasattr(given, "columns") or X.ndim != 2:
        return X
    if type(given).__module__.partition(".")[0] == "polars":
        return type(given)(X, schema=list(given.columns), orient="row")
    frame = type(given)(X, index=given.index, columns=given.columns)
    for position, (old, new) in enumerate(zip(given.dtypes, frame.dtypes, strict=True)):
        # An array has one type for all columns: each gets its own back, where its values fit.
        if old != new:
            column = frame.iloc[:, position]
            try:
                if column.astype(old).astype(column.dtype).equals(column):
                    frame.isetitem(position, column.astype(old))
            except (TypeError, ValueError):
                continue
    return frame


def choose_rows(
    n_rows: int, p: float, random_state: Any
) -> tuple[np.ndarray, np.random.RandomState]:
    """Choose ``round(p * n_rows)`` rows at random; also return the generator for what follows."""
    check_number(p, "p", "is the share of rows to corrupt, between 0 and 1", least=0.0, most=1.0)
    rng = check_random_state(random_state)
    mask = np.zeros(n_rows, dtype=bool)
    mask[rng.permutation(n_rows)[: round(p * n_rows)]] = True
    return mask, rng
