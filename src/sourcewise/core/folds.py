"""Folds that depend on a source's own rows and name only."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import IntArray


def named_seed(seed: int, name: object) -> int:
    """Return a seed for one source: adding or reordering others does not change it."""
    return int(seed) * 4294967296 + zlib.crc32(str(name).encode())


def stratified_folds(
    labels: NDArray[np.generic] | None, n_rows: int, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """Deal rows to folds at random, every class spread evenly (``labels=None``: no classes)."""
    shuffled = rng.permutation(n_rows)
    order = shuffled if labels is None else shuffled[np.argsort(labels[shuffled], kind="stable")]
    folds = np.empty(n_rows, dtype=np.intp)
    folds[order] = np.arange(n_rows) % n_folds
    return folds
