"""What ``benchmarks.training`` measures: pools, fits, units, and what is to be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.shapes import (
    DECAY,
    SHAPES,
    Pool,
    class_pool,
    cpu_seconds,
    crowd_pool,
    make_pool,
    regression_pool,
    ridge_unit,
    text_pool,
    uneven_pool,
    unit,
    weighted_pool,
)
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor

DENSE, SPARSE = 3.0, 4.0  # most memory, in sizes of the input


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes
    ----------
    name : str
    pool : callable
        Makes the data.
    unit : str
        What costs are told in: one of `UNITS`.
    bar, goal : float
        What must be and what should be reached, in that unit; NaN where nothing was set.
    options : dict
        Of the estimator.
    regression, adding : bool
        Whether targets are real numbers; whether the last source is added to a fitted model, which
        alone is timed.
    memory : float
        Most memory, in sizes of the input.
    megabytes : float
        Most memory of the whole process.
    """

    name: str
    pool: Callable[[], Pool]
    unit: str = "U"
    bar: float = np.nan
    goal: float = np.nan
    options: dict[str, Any] = field(default_factory=dict)
    regression: bool = False
    adding: bool = False
    memory: float = DENSE
    megabytes: float = np.inf

    def model(self) -> Any:
        """Return the estimator, not fitted yet."""
        kind = SourceWeightedRegressor if self.regression else SourceWeightedClassifier
        return kind(reference=0, random_state=0, **self.options)

    def work(self, pool: Pool) -> Callable[[], Any]:
        """Return what is to be timed; what comes before it is done here."""
        if not self.adding:
            return partial(fit, self.model(), pool)
        last = pool.sources == pool.sources[-1]
        model = fit(self.model(), part(pool, ~last))
        return partial(model.add_source, pool.X[last], pool.y[last], int(pool.sources[-1]))


def fit(model: Any, pool: Pool) -> Any:
    """Fit the model to all rows of a pool."""
    weights = {} if pool.weights is None else {"sample_weight": pool.weights}
    return model.fit(pool.X, pool.y, sources=pool.sources, **weights)


def part(pool: Pool, rows: np.ndarray) -> Pool:
    """Return some rows of a pool."""
    return Pool(*(None if array is None else array[rows] for array in pool))


def whole_fit(pool: Pool) -> float:
    """CPU seconds of our own fit of all sources from scratch."""
    return cpu_seconds(lambda: fit(SourceWeightedClassifier(reference=0, random_state=0), pool))


# CPU seconds that costs are divided by.
UNITS: dict[str, Callable[[Pool], float]] = {
    "U": lambda pool: unit(*pool),
    "RidgeCV": lambda pool: ridge_unit(*pool),
    "fits": whole_fit,
    "CPU s": lambda pool: 1.0,
}


def _two_classes(*shape: int, decay: float = DECAY) -> Callable[[], Pool]:
    return lambda: Pool(*make_pool(*shape, decay=decay))


ANIMALS = SHAPES["animals 60 x 500 x 101"]
PAPER = {"protocol": "paper"}

CASES = (
    Case("animals 60 x 500 x 101, default", _two_classes(*ANIMALS), bar=0.5, goal=0.25),
    Case(
        "animals 60 x 500 x 101, paper", _two_classes(*ANIMALS), bar=0.35, goal=0.15, options=PAPER
    ),
    *(
        Case(f"{name}, {what}", _two_classes(*SHAPES[name]), bar=bar, goal=goal, options=options)
        for name, bar, goal in (
            ("products 11 x 100 x 26", 4.0, 1.0),
            ("products 957 x 100 x 26", 2.0, 0.3),
        )
        for what, options in (("default", {}), ("paper", PAPER))
    ),
    *(
        Case(f"wide 20 x 200 x {d}", _two_classes(20, 200, d, 7, decay=0.0), bar=bar, goal=1.0)
        for d, bar in ((50, 3.0), (200, 6.0), (1000, 4.0), (5000, 3.0))
    ),
    *(
        Case(
            f"{n} classes 20 x 1000 x 20",
            partial(class_pool, 20, 1000, 20, n, 7),
            bar=bar,
            goal=1.5,
        )
        for n, bar in ((10, 3.0), (50, 3.5))
    ),
    Case(
        "sparse 6000 x 20000, 100 words a row, 20 sources",
        partial(text_pool, 20, 300, 20_000, 100, 7),
        unit="CPU s",
        bar=10.0,
        goal=3.0,
        memory=SPARSE,
        megabytes=1000.0,
    ),
    # Large enough for its memory to be that of the rows.
    Case(
        "sparse 20000 x 20000, 100 words a row, 20 sources",
        partial(text_pool, 20, 1000, 20_000, 100, 7),
        unit="CPU s",
        memory=SPARSE,
    ),
    Case(
        "few rows 5 x 200 x 2000",
        _two_classes(5, 200, 2000, 2, decay=0.0),
        unit="CPU s",
        bar=3.0,
        goal=1.0,
    ),
    Case(
        "crowd 59 x 130 x 512, 8 classes",
        partial(crowd_pool, 59, 130, 512, 8),
        unit="CPU s",
        bar=12.0,
        goal=4.0,
    ),
    Case(
        "regression 60 x 500 x 101",
        partial(regression_pool, *ANIMALS),
        unit="RidgeCV",
        regression=True,
    ),
    Case(
        "regression 20 x 200 x 1000",
        partial(regression_pool, 20, 200, 1000, 7),
        unit="RidgeCV",
        regression=True,
    ),
    Case("unequal sizes 60 x (20 to 2000) x 101", partial(uneven_pool, 60, 20, 2000, 101, 20)),
    Case("sample weights 60 x 500 x 101", partial(weighted_pool, *ANIMALS)),
    Case("add_source 60 x 500 x 101", _two_classes(*ANIMALS), unit="fits", adding=True),
    Case(
        "add_source 20 x 200 x 1000",
        _two_classes(20, 200, 1000, 7, decay=0.0),
        unit="fits",
        adding=True,
    ),
)
