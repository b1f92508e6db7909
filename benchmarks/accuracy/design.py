"""Which cells there are: a full grid, then one thing changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.accuracy.data import DATA_SETS, REFERENCE, DataSet, Draw, in_development
from benchmarks.accuracy.text import TEXT_SETS
from benchmarks.accuracy.text_corruption import corrupt_text
from sourcewise.corruption import corrupt_sources, feature_noise, shuffle_features, shuffle_labels
from sourcewise.corruption.contract import Corrupted, choose_rows

CORRUPTIONS = (
    "label_bias",
    "shuffle_labels",
    "flip_labels",
    "shuffle_features",
    "class_confusion",
    "feature_noise",
)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
VARIED_SHARE = 0.6  # of bad sources, where something else is changed
NONE = "none"


@dataclass(frozen=True)
class Cell:
    """One point of the design, on one data set.

    Attributes
    ----------
    data : str
    corruption : str
        "none" where no source is bad.
    bad : float
        Share of bad sources.
    corrupted : float
        Share of a bad source's rows that are corrupted.
    reference : int
        Trusted rows.
    uneven : bool
        Sources from 10 to 1,000 rows (or what the data set has) instead of equal ones.
    """

    data: str
    corruption: str
    bad: float
    corrupted: float = 1.0
    reference: int = 100
    uneven: bool = False

    @property
    def variation(self) -> str:
        """What is changed against the grid, in words."""
        if self.uneven:
            return "sizes 10 to 1,000"
        if self.corrupted != 1.0:
            return f"{self.corrupted:.0%} of rows"
        return "grid" if self.reference == 100 else f"{self.reference} trusted"

    def key(self) -> tuple[Any, ...]:
        """Values in the order of the fields."""
        return tuple(asdict(self).values())


def cells_of(data: DataSet) -> Iterator[Cell]:
    """All cells of one data set."""

    def grid(shares: tuple[float, ...], **changes: Any) -> Iterator[Cell]:
        for bad in shares:
            for corruption in CORRUPTIONS if bad else (NONE,):
                yield Cell(data.name, corruption, bad, **changes)

    yield from grid(SHARES)
    if not data.varied:
        return
    for corrupted in (0.5, 0.2):
        yield from grid((VARIED_SHARE,), corrupted=corrupted)
    for reference in (30, 300):
        yield from grid((0.0, VARIED_SHARE), reference=reference)
    yield from grid((0.0, VARIED_SHARE), uneven=True)


def is_development(data: DataSet, seed: int) -> bool:
    """Whether choices may be made on this data set and seed; all the rest confirms them."""
    return data.development and in_development(seed)


def corrupt(draw: Draw, cell: Cell, data: DataSet, seed: int) -> tuple[Draw, list[str]]:
    """Corrupt the cell's share of sources; also returns the bad ones' names."""
    n_sources = len(np.unique(draw.sources)) - 1
    n_bad = round(cell.bad * n_sources)
    if not n_bad:
        return draw, []
    if scipy.sparse.issparse(draw.X):
        X, y, bad = corrupt_text(draw, n_bad, cell.corruption, cell.corrupted, seed)
        return Draw(X, y, draw.sources, draw.X_test, draw.y_test), bad
    kind = regression_kinds(draw)[cell.corruption] if data.regression else cell.corruption
    done = corrupt_sources(
        draw.X,
        draw.y,
        draw.sources,
        n_bad,
        kind,
        cell.corrupted,
        protect=REFERENCE,
        random_state=seed,
    )
    return Draw(done.X, done.y, draw.sources, draw.X_test, draw.y_test), done.corrupted


# -- what the corruptions of classes come to for real targets -------------------------------------


def regression_kinds(draw: Draw) -> dict[str, str | Callable[..., Corrupted]]:
    """Corruptions of real targets, measured against the pool's own targets."""
    trusted = draw.y[draw.sources == REFERENCE]
    return {
        "label_bias": partial(_constant_target, value=float(np.quantile(trusted, 0.9))),
        "shuffle_labels": shuffle_labels,
        "flip_labels": partial(_mirror_targets, centre=float(trusted.mean())),
        "shuffle_features": shuffle_features,
        "class_confusion": partial(_confuse_lower_half, median=float(np.median(trusted))),
        "feature_noise": feature_noise,
    }


def _constant_target(
    X: Any, y: Any, *, p: float = 1.0, random_state: Any = None, value: float
) -> Corrupted:
    """Write down the same high value for every chosen row."""
    mask, _ = choose_rows(len(y), p, random_state)
    return Corrupted(np.array(X), np.where(mask, value, y), mask)


def _mirror_targets(
    X: Any, y: Any, *, p: float = 1.0, random_state: Any = None, centre: float
) -> Corrupted:
    """Have the sign wrong."""
    mask, _ = choose_rows(len(y), p, random_state)
    return Corrupted(np.array(X), np.where(mask, 2.0 * centre - y, y), mask)


def _confuse_lower_half(
    X: Any, y: Any, *, p: float = 1.0, random_state: Any = None, median: float
) -> Corrupted:
    """Mix up the targets below the median among themselves."""
    y = np.array(y)
    mask, rng = choose_rows(len(y), p, random_state)
    low = np.flatnonzero(mask & (y < median))
    y[low] = y[rng.permutation(low)]
    return Corrupted(np.array(X), y, mask)


def data_set(name: str) -> DataSet:
    """Return the data set of this name."""
    return next(data for data in (*DATA_SETS, *TEXT_SETS) if data.name == name)
