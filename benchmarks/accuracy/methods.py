"""Fit every method to one draw and judge it on the test rows."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.metrics import roc_auc_score

from benchmarks.accuracy.data import REFERENCE, DataSet, Draw
from benchmarks.accuracy.variants import OPTIONS, VARIANTS, changed
from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, baselines
from sourcewise.baselines import comparison, fit_together
from sourcewise.baselines.comparison import DEFAULT

PAPER, ORACLE = "paper", "oracle"
REFERENCE_ONLY, ALL_DATA = "reference only", "all data"
BASELINES = {name: kind for name, kind in comparison.METHODS.items() if name != DEFAULT}
METHODS = (DEFAULT, *VARIANTS, PAPER, *BASELINES, ORACLE)


class Refusal(NamedTuple):
    """What a method says that does not take these rows."""

    said: str


def run_methods(
    data: DataSet, draw: Draw, bad: list[str], seed: int, *, one_by_one: bool
) -> Iterator[dict[str, Any]]:
    """Fit and judge all methods; one result each.

    Baselines are fitted together, which shares what they have in common, and solvers stop a little
    earlier than the library's own, unless ``one_by_one``: then each one's processor time is told.
    """
    with nullcontext() if one_by_one else changed({}):
        yield from _judged(_fitted(data, draw, bad, seed, one_by_one), data, draw, bad)


def run_default(data: DataSet, draw: Draw, bad: list[str], seed: int) -> Iterator[dict[str, Any]]:
    """Fit and judge the default by itself."""
    model = _estimator(data, seed)
    with changed({}):
        seconds = _timed_fit(model, draw)
    yield from _judged(iter([(DEFAULT, model, seconds)]), data, draw, bad)


def run_simple_choices(
    data: DataSet, draw: Draw, bad: list[str], seed: int
) -> Iterator[dict[str, Any]]:
    """Fit and judge the default, the paper's method, the oracle, and what needs no method."""
    simple = (REFERENCE_ONLY, ALL_DATA)
    with changed({}):
        yield from _judged(_fitted(data, draw, bad, seed, False, simple), data, draw, bad)


def run_variants(
    data: DataSet,
    draw: Draw,
    bad: list[str],
    seed: int,
    *,
    variants: dict[str, dict[str, Any]] = VARIANTS,
) -> Iterator[dict[str, Any]]:
    """Fit and judge the default, variants of it, and what they are to be compared with."""

    def fitted() -> Iterator[tuple[str, Any, float]]:
        for name, changes in {DEFAULT: {}, **variants}.items():
            options = {key: changes[key] for key in OPTIONS if key in changes}
            model = _estimator(data, seed, **options)
            with changed(changes):
                yield name, model, _timed_fit(model, draw)
        yield from _fixed_weights(data, draw, bad, seed)

    yield from _judged(fitted(), data, draw, bad)


def _judged(
    fitted: Iterator[tuple[str, Any, float]], data: DataSet, draw: Draw, bad: list[str]
) -> Iterator[dict[str, Any]]:
    for name, model, seconds in fitted:
        if isinstance(model, Refusal):
            yield {"method": name, "error": np.nan, "refused": model.said}
            continue
        yield {
            "method": name,
            "error": error_of(model, draw, data.regression),
            "auc": _auc(model, draw, bad),
            "cpu_seconds": seconds,
            "trade_off": getattr(model, "trade_off_", np.nan),
            "C": getattr(model, "C_", np.nan),
            **_evidence(model if name == DEFAULT else None, bad),
        }


def _fitted(
    data: DataSet,
    draw: Draw,
    bad: list[str],
    seed: int,
    one_by_one: bool,
    wanted: Collection[str] = tuple(BASELINES),
) -> Iterator[tuple[str, Any, float]]:
    if scipy.sparse.issparse(draw.X):
        yield from _fitted_to_sparse(data, draw, bad, seed, wanted)
        return
    for name, protocol in ((DEFAULT, None), (PAPER, "paper")):
        model = _estimator(data, seed, protocol=protocol)
        seconds = _timed_fit(model, draw)
        yield name, model, seconds if one_by_one else np.nan
    if data.regression:
        for name, model, seconds in _fixed_weights(data, draw, bad, seed):
            yield name, model, seconds if one_by_one else np.nan
        return
    models = _baselines(draw, bad, seed, wanted)
    if one_by_one:
        for name, model in models.items():
            yield name, model, _timed_fit(model, draw)
        return
    fit_together(models, draw.X, draw.y, sources=draw.sources)
    for name, model in models.items():
        yield name, model, np.nan


def _baselines(draw: Draw, bad: list[str], seed: int, wanted: Collection[str]) -> dict[str, Any]:
    """Baselines by name, and the oracle."""
    common = {"reference": REFERENCE, "random_state": seed}
    clean_names = sorted(set(draw.sources.tolist()) - {*bad, REFERENCE})
    models = {name: BASELINES[name](**common) for name in wanted}
    return {**models, ORACLE: baselines.Oracle(clean=clean_names, **common)}


def _fitted_to_sparse(
    data: DataSet, draw: Draw, bad: list[str], seed: int, wanted: Collection[str]
) -> Iterator[tuple[str, Any, float]]:
    """Fit one by one, because one that refuses sparse rows must not stop the others."""
    models = {
        DEFAULT: _estimator(data, seed),
        PAPER: _estimator(data, seed, protocol="paper"),
        **_baselines(draw, bad, seed, wanted),
    }
    for name, model in models.items():
        try:
            seconds = _timed_fit(model, draw)
        except (TypeError, ValueError) as error:
            yield name, Refusal(str(error)), np.nan
        else:
            yield name, model, seconds


def _estimator(data: DataSet, seed: int, **options: Any) -> Any:
    kind = SourceWeightedRegressor if data.regression else SourceWeightedClassifier
    return kind(reference=REFERENCE, random_state=seed, **options)


def _fixed_weights(
    data: DataSet, draw: Draw, bad: list[str], seed: int
) -> Iterator[tuple[str, Any, float]]:
    """Fit those baselines that are the estimator's own at a given trade-off."""
    everything, clean = np.ones(len(draw.y), dtype=bool), ~np.isin(draw.sources, bad)
    for name, trade_off, rows in (
        (REFERENCE_ONLY, 0.0, everything),
        (ALL_DATA, np.inf, everything),
        (ORACLE, np.inf, clean),
    ):
        # Their weights ask for no discrepancies.
        model = _estimator(data, seed, trade_off=trade_off, discrepancy="local")
        with changed({}):
            seconds = _timed_fit(model, draw, rows)
        yield name, model, seconds


def _timed_fit(model: Any, draw: Draw, rows: Any = slice(None)) -> float:
    start = time.process_time()
    model.fit(draw.X[rows], draw.y[rows], sources=draw.sources[rows])
    return time.process_time() - start


def error_of(model: Any, draw: Draw, regression: bool) -> float:
    """Error rate, or the root mean squared error in standard deviations of the test targets."""
    predicted = model.predict(draw.X_test)
    if regression:
        return float(np.sqrt(np.mean((predicted - draw.y_test) ** 2)) / draw.y_test.std())
    return float(np.mean(predicted != draw.y_test))


def _auc(model: Any, draw: Draw, bad: list[str]) -> float:
    """How well a row's weight tells clean from bad sources; NaN if there are not both."""
    weights = getattr(model, "source_weights_", None)
    if weights is None:
        return np.nan
    names = model.sources_.tolist()
    untrusted = [i for i, name in enumerate(names) if name != REFERENCE]
    clean = np.array([names[i] not in bad for i in untrusted])
    if clean.all() or not clean.any() or len(names) < len(np.unique(draw.sources)):
        return np.nan
    rows = np.array([np.sum(draw.sources == name) for name in names])
    return float(roc_auc_score(clean, (weights / rows)[untrusted]))


def _evidence(model: Any, bad: list[str]) -> dict[str, float]:
    """Share of clean sources with a p-value below 0.05; the reference's weight."""
    if model is None:
        return {"clean_below_005": np.nan, "reference_weight": np.nan}
    p_values = model.discrepancy_result_.p_values
    names = model.sources_.tolist()
    clean = [i for i, name in enumerate(names) if name != REFERENCE and name not in bad]
    return {
        "clean_below_005": float(np.mean(p_values[clean] < 0.05)) if clean else np.nan,
        "reference_weight": float(model.source_weights_[model.reference_index_]),
    }
