"""Corruptions of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.corruption.contract import (
    Corrupted,
    check_class_labels,
    check_rows,
    choose_rows,
    like,
)


def label_bias(
    X: Any, y: Any, *, p: float = 1.0, label: Any = None, random_state: Any = None
) -> Corrupted:
    """Give the chosen rows one and the same label, as a careless annotator would.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    label : scalar, optional
        The label they get; the largest one by default (class 1 of two, as in the paper).
    random_state : int, RandomState or None

    Examples
    --------
    >>> X, y, mask = label_bias([[0], [1], [2]], [0, 1, 0])
    >>> y
    array([1, 1, 1])
    """
    given = X
    X, y = check_rows(X, y)
    mask, _ = choose_rows(len(y), p, random_state)
    if label is None and len(y):
        label = np.unique(y)[-1]
    if len(y):
        y = _with_room(y, label)
        y[mask] = label
    return Corrupted(like(given, X), y, mask)


def _with_room(y: np.ndarray, label: Any) -> np.ndarray:
    """Labels of a type that holds one more label without cutting it short."""
    if np.ndim(label) > 0:
        raise ValueError(f"label must be one label; got {label!r}.")
    new = np.array(label)
    if y.dtype == object:
        return y
    if y.dtype.kind in "US":
        return y.astype(np.result_type(y, new))
    if new.dtype.kind not in "biuf":
        raise ValueError(f"label {label!r} is no number, and the labels in y are.")
    fits = np.can_cast(new.dtype, y.dtype) or bool(new.astype(y.dtype) == new)
    return y if fits else y.astype(np.result_type(y, new))


def shuffle_labels(X: Any, y: Any, *, p: float = 1.0, random_state: Any = None) -> Corrupted:
    """Shuffle the labels of the chosen rows among themselves: right frequencies, no information.

    Examples
    --------
    >>> X, y, mask = shuffle_labels([[0]] * 6, [0, 0, 0, 1, 1, 1], random_state=0)
    >>> int(y.sum())
    3
    """
    given = X
    X, y = check_rows(X, y)
    mask, rng = choose_rows(len(y), p, random_state)
    y[mask] = rng.permutation(y[mask])
    return Corrupted(like(given, X), y, mask)


def flip_labels(
    X: Any, y: Any, *, p: float = 1.0, classes: Any = None, random_state: Any = None
) -> Corrupted:
    """Replace the label of every chosen row by another one.

    Two classes are swapped; with more, each class is replaced by the next one and the last by the
    first.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    classes : array, optional
        All labels there are; by default those of ``y``, which must then show at least two.
    random_state : int, RandomState or None

    Examples
    --------
    >>> flip_labels([[0], [1]], ["no", "yes"]).y.tolist()
    ['yes', 'no']
    """
    given = X
    X, y = check_rows(X, y)
    check_class_labels(y, "flip_labels")
    known = np.unique(y if classes is None else classes)
    if len(known) < 2:
        raise ValueError("flip_labels needs at least two classes; pass classes=<all labels>.")
    mask, _ = choose_rows(len(y), p, random_state)
    position = _positions(y[mask], known)
    y = y.astype(np.result_type(y, known))  # room for a longer label
    y[mask] = known[(position + 1) % len(known)]
    return Corrupted(like(given, X), y, mask)


def _positions(labels: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Position of each label among the known ones."""
    where = {label: k for k, label in enumerate(known.tolist())}
    unknown = [label for label in labels.tolist() if label not in where]
    if unknown:
        raise ValueError(f"The label {unknown[0]!r} is not among classes; list all labels there.")
    return np.array([where[label] for label in labels.tolist()], dtype=np.intp)


def class_confusion(
    X: Any,
    y: Any,
    *,
    p: float = 1.0,
    confusion: Any = None,
    classes: Any = None,
    random_state: Any = None,
) -> Corrupted:
    """Draw the label of every chosen row anew, given its true class: some classes are mixed up.

    Parameters
    ----------
    X, y : arrays of n rows
        One source.
    p : float
        Share of rows to corrupt.
    confusion : array of shape (n_classes, n_classes), optional
        Row k holds the probabilities of the labels that a row of class k gets. By default the two
        smallest classes of ``classes`` are confused: a row of one of them gets either label with
        probability one half, and the others are left alone.
    classes : array, optional
        All labels there are, in the order of ``confusion``; by default those of ``y``, sorted.
    random_state : int, RandomState or None

    Examples
    --------
    >>> always_cat = [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    >>> class_confusion([[0]] * 3, ["cat", "dog", "fox"], confusion=always_cat).y.tolist()
    ['cat', 'cat', 'fox']
    """
    given = X
    X, y = check_rows(X, y)
    check_class_labels(y, "class_confusion")
    known = np.unique(y) if classes is None else np.array(classes)
    table = _half_confused(len(known)) if confusion is None else np.asarray(confusion, dtype=float)
    if table.shape != (len(known), len(known)):
        raise ValueError(
            f"confusion must have one row and one column for each of the {len(known)} classes; "
            f"got shape {table.shape}."
        )
    if (table < 0).any() or not np.allclose(table.sum(axis=1), 1.0):
        raise ValueError("Each row of confusion must hold probabilities that sum to 1.")
    mask, rng = choose_rows(len(y), p, random_state)
    position = _positions(y[mask], known)
    cumulative = np.cumsum(table, axis=1)[position]
    drawn = (rng.uniform(size=len(position))[:, None] >= cumulative).sum(axis=1)
    y = y.astype(np.result_type(y, known))
    y[mask] = known[np.minimum(drawn, len(known) - 1)]
    return Corrupted(like(given, X), y, mask)


def _half_confused(n_classes: int) -> np.ndarray:
    if n_classes < 2:
        raise ValueError("class_confusion needs at least two classes; pass classes=<all labels>.")
    table = np.eye(n_classes)
    table[:2, :2] = 0.5
    return table
