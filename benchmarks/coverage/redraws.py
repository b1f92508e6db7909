"""What a report says of one redraw, and what is so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.accuracy.data import REFERENCE, Draw
from benchmarks.coverage.data import TRUSTED, Case, World
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.audit.expected_errors import ENDS, SOURCEWISE, compare_errors, held_out_errors
from sourcewise.tables.training import TrainingTable

LEVEL = 0.05
SPOILT = 0.5  # share of random labels in every second source
# Rows added to fresh ones for the noise of a share (Agresti and Coull 1998), and of a difference of
# two (Agresti and Min 2005): no error in fifty rows is no proof that there is none.
SHARE, DIFFERENCE = (0.0, 0.0, 1.0, 1.0), (-1.0, 1.0)


def about_sources(case: Case, world: World, seed: int, trusted: int = TRUSTED) -> dict[str, Any]:
    """Measure sources with other rows; they are not weighed, which discrepancies do not depend on.

    Half of the labels of every second source are exchanged among each other, to see how often
    that is found.
    """
    draw = spoil(world.draw(seed, trusted), seed)
    model = make_model(case, seed, trade_off=0.0).fit(draw.X, draw.y, sources=draw.sources)
    others = slice(1, None)  # the reference comes first
    return {
        "seed": seed,
        "discrepancies": model.discrepancies_[others].tolist(),
        "standard_errors": model.discrepancy_result_.standard_errors[others].tolist(),
        "p_values": model.discrepancy_result_.p_values[others].tolist(),
        "detectable": model.reference_adequacy().detectable_discrepancy,
        "power": power_of(model, model.source_sizes_[others][1::2]),
    }


def about_errors(case: Case, world: World, seed: int, trusted: int = TRUSTED) -> dict[str, Any]:
    """Train on other rows, and set the audit's intervals beside the errors on fresh rows."""
    draw = spoil(world.draw(seed, trusted), seed)
    model = make_model(case, seed).fit(draw.X, draw.y, sources=draw.sources)
    fresh, noise = fresh_errors(case, model, draw)
    held_out = held_out_errors(
        as_table(case, draw), lambda: make_model(case, seed), draw.sources, seed
    )
    comparison = compare_errors(held_out, not case.regression)
    return {
        "seed": seed,
        "errors": {m.name: [m.low, m.error, m.high] for m in comparison.methods},
        "differences": {d.name: [d.low, d.error, d.high] for d in comparison.differences},
        "fresh": fresh,
        "noise": noise,
    }


PARTS = {"sources": about_sources, "errors": about_errors}


def power_of(model: Any, sizes: np.ndarray) -> list[float]:
    """Power that is said for sources of these sizes with that share of random labels."""
    each = {
        size: model._measured.label_test.power(SPOILT, size, LEVEL) for size in np.unique(sizes)
    }
    return [each[size] for size in sizes]


def spoil(draw: Draw, seed: int) -> Draw:
    """Exchange half of the labels of every second source among each other."""
    rng, y = np.random.default_rng([seed, 7]), draw.y.copy()
    for name in list(dict.fromkeys(draw.sources.tolist()))[2::2]:
        rows = np.flatnonzero(draw.sources == name)
        some = rng.permutation(rows)[: round(SPOILT * len(rows))]
        y[some] = y[rng.permutation(some)]
    return Draw(draw.X, y, draw.sources, draw.X_test, draw.y_test)


def make_model(case: Case, seed: int, **options: Any) -> Any:
    """Return the default."""
    kind = SourceWeightedRegressor if case.regression else SourceWeightedClassifier
    return kind(reference=REFERENCE, random_state=seed, **options)


def fresh_errors(case: Case, model: Any, draw: Draw) -> tuple[dict[str, float], dict[str, float]]:
    """Errors on fresh rows of the three ways to train, their differences, and the noise of both."""
    losses = {}
    for name in (*ENDS, SOURCEWISE):
        fitted = model.at_trade_off(ENDS[name]) if name in ENDS else model
        predicted = fitted.predict(draw.X_test)
        off = np.abs(predicted - draw.y_test) if case.regression else predicted != draw.y_test
        losses[name] = off.astype(float)
    differences = {f"less {name}": losses[SOURCEWISE] - losses[name] for name in ENDS}
    errors, changes = ((), ()) if case.regression else (SHARE, DIFFERENCE)
    noise = {name: noise_of(values, errors) for name, values in losses.items()}
    noise |= {name: noise_of(values, changes) for name, values in differences.items()}
    return {name: float(v.mean()) for name, v in (losses | differences).items()}, noise


def noise_of(values: np.ndarray, added: Sequence[float]) -> float:
    """Return the standard error of a mean over fresh rows, with some rows added."""
    values = np.concatenate([values, added])
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def as_table(case: Case, draw: Draw) -> TrainingTable:
    """Return the rows as an audit has them."""
    names, counts = np.unique(draw.sources, return_counts=True)
    order = [REFERENCE, *(name for name in names.tolist() if name != REFERENCE)]
    sizes = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return TrainingTable(
        draw.X.copy(),
        draw.y.copy(),
        order,
        np.array([sizes[name] for name in order]),
        None,  # type: ignore[arg-type]  # no preprocessor is asked for
        not case.regression,
        {},
    )
