"""Shared computation gives what the estimators give, fitted one by one."""

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier
from sourcewise.baselines import (
    AllData,
    ComponentMedian,
    GeometricMedian,
    ProbabilityMedian,
    ReferenceOnly,
    RobustLogistic,
    SourceNormalized,
)
from sourcewise.experiments.bench import TOL, Bench
from sourcewise.experiments.names import METHODS

PLAIN = {
    "paper": lambda seed: SourceWeightedClassifier(protocol="paper", random_state=seed),
    "default": lambda seed: SourceWeightedClassifier(random_state=seed),
    "reference only": lambda seed: ReferenceOnly(protocol="paper", random_state=seed),
    "all data": lambda seed: AllData(protocol="paper", random_state=seed),
    "geometric median": lambda seed: GeometricMedian(protocol="paper", random_state=seed),
    "component median": lambda seed: ComponentMedian(protocol="paper", random_state=seed),
    "probability median": lambda seed: ProbabilityMedian(protocol="paper", random_state=seed),
    "robust logistic": lambda seed: RobustLogistic(protocol="paper", random_state=seed),
    "source normalized": lambda seed: SourceNormalized(protocol="paper", random_state=seed),
}
N_SOURCES, ROWS, SEED = 9, 80, 11


def make_pool(seed):
    """Make a reference with nine sources, and test rows."""
    rng = np.random.default_rng(seed)
    d = 6
    X = rng.normal(size=((N_SOURCES + 1) * ROWS + 600, d)).astype(np.float32)
    X *= np.arange(1, d + 1, dtype=np.float32) ** -0.5
    score = X @ rng.normal(size=d) + 0.7 * rng.logistic(size=len(X)) + 0.5
    y = (score > 0).astype(np.intp)
    X = np.column_stack([X, np.ones(len(X), dtype=np.float32)])
    used = (N_SOURCES + 1) * ROWS
    sources = X[:used].reshape(-1, ROWS, d + 1), y[:used].reshape(-1, ROWS)
    return sources, (X[used:], y[used:])


@pytest.fixture(scope="module")
def pool():
    return make_pool(0)


def make(pool, tol, seed=SEED, methods=tuple(METHODS)):
    (X, y), (X_test, y_test) = pool
    bench = Bench(X[0], y[0], X_test, y_test, seed=seed, tol=tol, methods=methods)
    names = tuple(f"s{k}" for k in range(N_SOURCES))
    return bench, names, bench.facts(names, X[1:], y[1:])


def corrupted(pool, kind):
    (X, y), _ = pool
    X, y = X[1:].copy(), y[1:].copy()
    rng = np.random.default_rng(3)
    if kind == "features":
        X[:, :, :-1] = X[:, :, :-1][:, :, rng.permutation(X.shape[2] - 1)]
    elif kind == "bias":
        y[:] = 1
    else:
        y = rng.permuted(y, axis=1)
    return X, y


@pytest.mark.parametrize("kind", ["labels", "features", "bias"])
@pytest.mark.parametrize("n", [0, 3, 9])
def test_shared_runs_equal_plain_estimators(pool, kind, n):
    bench, names, clean = make(pool, tol=1e-9)
    X, y = corrupted(pool, kind)
    bad = bench.facts(names, X, y, like=None if kind == "features" else clean)
    outcomes, costs = bench.run(clean.take(range(n, N_SOURCES)).append(bad.take(range(n))))
    (own_X, own_y), (X_test, y_test) = pool
    order = [*range(n, N_SOURCES), *range(n)]
    all_X = np.concatenate(
        [own_X[:1], np.where(np.arange(9)[:, None, None] < n, X, own_X[1:])[order]]
    )
    all_y = np.concatenate([own_y[:1], np.where(np.arange(9)[:, None] < n, y, own_y[1:])[order]])
    told = np.repeat(["reference", *(names[k] for k in order)], ROWS)
    assert set(costs) == set(METHODS) == set(outcomes)
    for method, outcome in outcomes.items():
        # Our default brings a constant of its own.
        columns = slice(None, -1) if method == "default" else slice(None)
        model = PLAIN[method](SEED)
        model.fit(all_X.reshape(-1, 7)[:, columns], all_y.ravel(), sources=told)
        error = np.mean(model.predict(X_test[:, columns]) != y_test)
        assert outcome.error == pytest.approx(error, abs=1.01 / len(y_test)), method
        if method in ("paper", "default"):
            assert outcome.trade_off == model.trade_off_, method
        if hasattr(model, "C_"):
            assert pytest.approx(model.C_) == outcome.C, method


def changes_by_tolerance(pool, methods):
    """By how much errors at the studies' tolerance are off, (n_runs, n_methods)."""
    X, y = corrupted(pool, "labels")
    found = []
    for tol in (1e-9, TOL):
        bench, names, clean = make(pool, tol=tol, methods=methods)
        bad = bench.facts(names, X, y, like=clean)
        runs = [
            bench.run(clean.take(range(n, N_SOURCES)).append(bad.take(range(n))))[0]
            for n in (0, 4, 9)
        ]
        found.append([[run[m].error for m in methods] for run in runs])
    return np.abs(np.subtract(*found))


def test_the_tolerance_of_the_studies_changes_next_to_nothing(pool):
    assert changes_by_tolerance(pool, tuple(METHODS)).max() < 0.02


def test_the_tolerance_of_the_studies_changes_next_to_nothing_on_average():
    methods = ("paper", "all data", "source normalized", "default")
    changes = np.stack([changes_by_tolerance(make_pool(seed), methods) for seed in range(8)])
    assert changes.mean(axis=(0, 1)).max() < 0.001


def test_a_run_does_not_depend_on_what_was_run_before(pool):
    X, y = corrupted(pool, "bias")
    results = []
    for order in ([2, 5], [5, 2], [5]):
        bench, names, clean = make(pool, tol=1e-4)
        for n in order:
            bad = bench.facts(names, X, y, like=clean)
            outcome = bench.run(clean.take(range(n, N_SOURCES)).append(bad.take(range(n))))[0]
            if n == 5:
                results.append(outcome)
    np.testing.assert_equal(results[0], results[1])
    np.testing.assert_equal(results[0], results[2])


def test_methods_left_out_do_not_change_the_others(pool):
    (X, y), (X_test, y_test) = pool
    outcomes = []
    for methods in (METHODS, ("paper", "probability median"), ("default",)):
        bench = Bench(X[0], y[0], X_test, y_test, seed=SEED, methods=methods)
        facts = bench.facts(tuple(f"s{k}" for k in range(N_SOURCES)), X[1:], y[1:])
        outcomes.append(bench.run(facts)[0])
    for part in outcomes[1:]:
        for method, outcome in part.items():
            np.testing.assert_equal(outcome, outcomes[0][method])
