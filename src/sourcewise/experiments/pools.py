"""Pools of one reference and sources of equal size, and the fits that many of them share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import ReferenceRows, SourceData
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.linear import LogisticFamily
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.pool import Pool

FOLDS = 5


def reference_pool(X: np.ndarray, y: np.ndarray, choices: Choices, seed: int) -> Pool:
    """Pool of the reference alone."""
    data = lay_out(X[None], y[None])
    reference = ReferenceRows.of(data)
    sources = MemorySources(data, [])
    return Pool(
        sources=sources,
        reference=reference,
        position=0,
        names=["reference"],
        features=None,
        numbers=(sources, reference),
        seed=seed,
        choices=choices,
        discrepancy="plug-in" if choices.as_given else "combined",
        family=LogisticFamily(
            2,
            choices.regularisations,
            penalise_constant=choices.as_given,
            tol=choices.tol,
            grid_tol=choices.grid_tol,
            final_tol=choices.final_tol,
        ),
        folds=ReferenceFolds.draw(y, len(y), FOLDS, choices.n_repeats, seed),
        scale=1.0,
    )


def with_sources(alone: Pool, names: Sequence[str], X: np.ndarray, y: np.ndarray) -> Pool:
    """Put sources of equal size, (n, m, d) and (n, m), beside the reference."""
    own, (n, m, d) = alone.reference, X.shape
    counts = np.array([len(own.y), *[m] * n], dtype=np.intp)
    data = SourceData(
        np.concatenate([own.X, X.reshape(n * m, d)]),
        np.concatenate([own.y, y.ravel()]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        0,
        np.repeat(1.0 / counts, counts),
        2,
    )
    return replace(alone, sources=MemorySources(data, names), names=["reference", *names])


def lay_out(X: np.ndarray, y: np.ndarray) -> SourceData:
    """Lay out sources of equal size, (n, m, d) and (n, m); the first passes for the reference."""
    n, m, d = X.shape
    starts = m * np.arange(n + 1, dtype=np.intp)
    return SourceData(X.reshape(n * m, d), y.ravel(), starts, 0, np.full(n * m, 1.0 / m), 2)
