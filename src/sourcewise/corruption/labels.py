"""Corruptions of the labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.corruption.contract import Corrupted, choose_rows


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
    X, y = np.array(X), np.array(y)
    mask, _ = choose_rows(len(y), p, random_state)
    y[mask] = np.unique(y)[-1] if label is None else label
    return Corrupted(X, y, mask)


def shuffle_labels(X: Any, y: Any, *, p: float = 1.0, random_state: Any = None) -> Corrupted:
    """Shuffle the labels of the chosen rows among themselves: right frequencies, no information.

    Examples
    --------
    >>> X, y, mask = shuffle_labels([[0]] * 6, [0, 0, 0, 1, 1, 1], random_state=0)
    >>> int(y.sum())
    3
    """
    X, y = np.array(X), np.array(y)
    mask, rng = choose_rows(len(y), p, random_state)
    y[mask] = rng.permutation(y[mask])
    return Corrupted(X, y, mask)


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
    X, y = np.array(X), np.array(y)
    known = np.unique(y if classes is None else classes)
    if len(known) < 2:
        raise ValueError("flip_labels needs at least two classes; pass classes=<all labels>.")
    mask, _ = choose_rows(len(y), p, random_state)
    position = np.searchsorted(known, y[mask])
    y[mask] = known[(position + 1) % len(known)]
    return Corrupted(X, y, mask)
