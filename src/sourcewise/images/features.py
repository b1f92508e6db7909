"""Features of pictures, and what is wrong with pictures that have none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

WIDTHS_DIFFER = (
    "Pictures of different sizes become {found} features; bring them to one size with size=, or "
    "take a layer that averages over the picture."
)


class Features(NamedTuple):
    """Features of pictures.

    Attributes
    ----------
    values : float32 array of shape (n_pictures, n_features)
        NaN for a picture that could not be used.
    problems : dict
        Positions of those pictures, and a sentence that says what is wrong with each.

    Examples
    --------
    What an extractor returns for two pictures, of which it could use the first:

    >>> import numpy as np
    >>> from sourcewise.images import Features
    >>> values = np.array([[0.5, 1.0], [np.nan, np.nan]], dtype=np.float32)
    >>> found = Features(values, {1: "cat.jpg is empty."})
    >>> np.delete(found.values, list(found.problems), axis=0)
    array([[0.5, 1. ]], dtype=float32)
    """

    values: np.ndarray
    problems: dict[int, str]


def concat_features(parts: Iterable[Features]) -> Features:
    """Put parts below each other."""
    found = list(parts)
    widths = {each.values.shape[1] for each in found}
    check_widths(widths - {0})
    width = max(widths, default=0)
    # A part without any usable picture does not know how many features there are.
    values = [
        each.values
        if each.values.shape[1] or not width
        else np.full((len(each.values), width), np.nan, dtype=np.float32)
        for each in found
    ]
    starts = np.cumsum([0, *map(len, values)])
    problems = {
        int(start) + k: why
        for start, each in zip(starts, found, strict=False)
        for k, why in each.problems.items()
    }
    return Features(np.concatenate(values), problems)


def replace_rows(before: Features, rows: Sequence[int], new: Features) -> Features:
    """Put new features in the place of some rows."""
    check_widths({each.values.shape[1] for each in (before, new)} - {0})
    width = max(before.values.shape[1], new.values.shape[1])
    values = np.full((len(before.values), width), np.nan, dtype=np.float32)
    if before.values.shape[1]:
        values[:] = before.values
    values[rows] = new.values if new.values.shape[1] else np.nan
    problems = {k: why for k, why in before.problems.items() if k not in set(rows)}
    return Features(values, problems | {rows[k]: why for k, why in new.problems.items()})


def check_widths(widths: set[int]) -> None:
    """All pictures must have as many features."""
    if len(widths) > 1:
        raise ValueError(WIDTHS_DIFFER.format(found=" and ".join(map(str, sorted(widths)))))
