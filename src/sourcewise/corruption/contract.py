"""What every corruption takes and returns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state


class Corrupted(NamedTuple):
    """Copies of the rows of one source after corruption.

    Attributes
    ----------
    X, y : arrays
        Copies; the input is never changed.
    mask : bool array of shape (n_rows,)
        Rows that were chosen for corruption.
    """

    X: Any
    y: np.ndarray
    mask: np.ndarray


def choose_rows(
    n_rows: int, p: float, random_state: Any
) -> tuple[np.ndarray, np.random.RandomState]:
    """Choose ``round(p * n_rows)`` rows at random; also return the generator for what follows."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p is the share of rows to corrupt, between 0 and 1; got {p!r}.")
    rng = check_random_state(random_state)
    mask = np.zeros(n_rows, dtype=bool)
    mask[rng.permutation(n_rows)[: round(p * n_rows)]] = True
    return mask, rng
