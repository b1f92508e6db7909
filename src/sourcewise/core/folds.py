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


def independent_share(n_folds: int) -> float:
    r"""Say what part of the rows held out by ``n_folds`` models a mean over them counts as.

    The models vary too, and share most of their training rows. With :math:`k` folds a mean over
    :math:`n` rows counts as one over

    .. math:: n \Big/ \Big(1 + k \frac{n_\text{test}}{n_\text{training}}\Big)
              = n \, \frac{k - 1}{2 k - 1}

    of them, which is the corrected resampled t-test (Nadeau and Bengio, *Inference for the
    generalization error*, 2003): four ninths with five folds.
    """
    return (n_folds - 1) / (2 * n_folds - 1)
