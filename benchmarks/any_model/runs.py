"""Runs: which there are, and what is measured in one."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from threadpoolctl import threadpool_limits

from benchmarks.accuracy.data import REFERENCE, Draw
from benchmarks.accuracy.design import CORRUPTIONS, NONE, Cell, corrupt
from benchmarks.accuracy.methods import error_of
from benchmarks.any_model.data import CONFIRMATION, DEVELOPMENT, ROWS, data_set
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.estimators.fitting import fit_told, fit_weighted, told_columns

LEARNERS = ("boosting", "forest")
SHARES = (0.4, 0.8, 1.0)
TRUSTED = (60, 200)
FIRST_SEED = {"development": 0, "confirmation": 10}
OURS = "sourcewise"
ALONE, ALL, TOLD, LINES = "reference only", "all data", "source as a feature", "linear default"
SINGLE = (ALONE, ALL, TOLD, LINES)  # what anybody could fix beforehand


@dataclass(frozen=True)
class Run:
    """One draw of one cell, for one learner."""

    cell: Cell
    seed: int
    learner: str

    @property
    def key(self) -> dict[str, Any]:
        """What tells it from others."""
        return {**asdict(self.cell), "seed": self.seed, "learner": self.learner}


def plan(half: str, n_seeds: int) -> list[Run]:
    """All runs of one half, shuffled, so that the first ones are spread over all cells."""
    sets = DEVELOPMENT if half == "development" else CONFIRMATION
    runs = [
        Run(
            Cell(data.name, corruption, share, reference=trusted),
            first_seed(half, corruption) + k,
            learner,
        )
        for data in sets
        for share, corruption in cells()
        # Clean sources have one cell, and are drawn as often as each share of bad ones.
        for k in range(n_seeds * (1 if share else len(CORRUPTIONS)))
        for trusted in TRUSTED
        for learner in LEARNERS
    ]
    return [runs[k] for k in np.random.default_rng(0).permutation(len(runs))]


def first_seed(half: str, corruption: str) -> int:
    """Seed of a corruption's first draw: one unlucky draw must not be in all of them."""
    return FIRST_SEED[half] + (0 if corruption == NONE else CORRUPTIONS.index(corruption))


def cells() -> Iterator[tuple[float, str]]:
    """Share of bad sources and what is wrong with them."""
    yield 0.0, NONE
    yield from ((share, corruption) for share in SHARES for corruption in CORRUPTIONS)


def learner_of(name: str, regression: bool, trees: int) -> Any:
    """Make a learner of so many trees, or rounds of boosting."""
    if name == "forest":
        kind = RandomForestRegressor if regression else RandomForestClassifier
        return kind(n_estimators=trees, random_state=0)
    boosting = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return boosting(max_iter=trees, random_state=0)


def measure(run: Run, folder: Path, trees: int) -> dict[str, Any]:
    """Errors on test rows of the reference's distribution, and processor time in single fits."""
    data = data_set(run.cell.data)
    draw = data.draw(folder, run.seed, run.cell.reference, False)
    draw = _at_most(draw, ROWS)
    if not data.regression:
        draw = of_known_classes(draw)
    draw, _ = corrupt(draw, run.cell, data, run.seed)
    learner = learner_of(run.learner, data.regression, trees)
    kind = SourceWeightedRegressor if data.regression else SourceWeightedClassifier
    options = {"reference": REFERENCE, "random_state": run.seed}
    fits = {
        OURS: kind(learner, **options),
        LINES: kind(**options),
        ALONE: _Plain(learner, ALONE),
        ALL: _Plain(learner, ALL),
        TOLD: _Plain(learner, TOLD),
    }
    errors, seconds = {}, {}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, model in fits.items():
            begin = time.process_time()
            model.fit(draw.X, draw.y, sources=draw.sources)
            seconds[name] = time.process_time() - begin
            errors[name] = error_of(model, draw, data.regression)
    shares = {m.name: round(m.share, 3) for m in fits[OURS].estimator_.members}
    return {
        **run.key,
        "trees": trees,
        "regression": data.regression,
        "errors": errors,
        "shares": shares,
        "cost": (seconds[OURS] - seconds[LINES]) / seconds[ALL],
    }


class _Plain:
    """One fit of the learner: on the reference, on all rows, or told the sources."""

    def __init__(self, learner: Any, how: str):
        self.learner, self.how = learner, how

    def fit(self, X: Any, y: Any, sources: Any) -> None:
        if self.how == TOLD:
            codes = np.unique(sources, return_inverse=True)[1]
            position = int(codes[sources == REFERENCE][0])
            told = told_columns(codes, codes.max() + 1, position)
            self.model = fit_told(self.learner, X, y, None, told, 0)
            return
        used = (sources == REFERENCE) | (self.how == ALL)
        self.model = fit_weighted(clone(self.learner), X[used], y[used], None, 0)

    def predict(self, X: Any) -> Any:
        return self.model.predict(X)


def of_known_classes(draw: Draw) -> Draw:
    """Leave out rows of classes that the reference happens not to show: no model can know them."""
    known = np.unique(draw.y[draw.sources == REFERENCE])
    kept, tested = np.isin(draw.y, known), np.isin(draw.y_test, known)
    return Draw(
        draw.X[kept], draw.y[kept], draw.sources[kept], draw.X_test[tested], draw.y_test[tested]
    )


def _at_most(draw: Draw, rows: int) -> Draw:
    """Leave at most so many rows in every untrusted source."""
    kept = np.concatenate(
        [
            np.flatnonzero(draw.sources == name)[: None if name == REFERENCE else rows]
            for name in dict.fromkeys(draw.sources.tolist())
        ]
    )
    return replace(draw, X=draw.X[kept], y=draw.y[kept], sources=draw.sources[kept])
