"""What a bench finds out about sources is what the library says of whole pools."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise.core.discrepancy.methods import DISCREPANCIES
from sourcewise.experiments.bench import LOCAL_C, Bench
from sourcewise.experiments.facts import Facts

N_SOURCES, ROWS, REFERENCE_ROWS = 4, 30, 40
NAMES = tuple(f"s{i}" for i in range(N_SOURCES))


def made_up(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(REFERENCE_ROWS + N_SOURCES * ROWS, 6)).astype(np.float32)
    X[:, -1] = 1.0
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    y[-ROWS:] = 1 - y[-ROWS:]
    apart = X[REFERENCE_ROWS:].reshape(N_SOURCES, ROWS, -1), y[REFERENCE_ROWS:].reshape(-1, ROWS)
    return X[:REFERENCE_ROWS], y[:REFERENCE_ROWS], *apart


def bench_of(X, y, *methods):
    return Bench(X, y, X[:10], y[:10], seed=0, methods=methods)


def local_models(X, y):
    own_X, own_y, _, _ = made_up()
    facts = bench_of(own_X, own_y, "geometric median").facts(NAMES, X, y)
    return facts.findings["medians"]["models"].T


def test_discrepancies_are_the_plug_in_ones_with_and_without_a_fold():
    X, y, X_sources, y_sources = made_up()
    bench = bench_of(X, y, "paper")
    findings = bench.facts(NAMES, X_sources, y_sources).findings["paper"]
    measured = DISCREPANCIES["plug-in"].conclude(bench.surveys["paper"], findings)
    found = np.stack([measured.result.values, *measured.without_fold])
    kept = [np.ones(REFERENCE_ROWS, dtype=bool), *~bench.alone["given"].folds.held_out]
    assert found.shape == (len(kept), N_SOURCES) == (6, 4)
    for values, rows in zip(found, kept, strict=True):
        pool = sw.estimate_discrepancies(
            np.concatenate([X[rows], X_sources.reshape(-1, X.shape[1])]),
            np.concatenate([y[rows], y_sources.ravel()]),
            sources=np.repeat(["reference", *NAMES], [rows.sum(), *[ROWS] * N_SOURCES]),
            reference="reference",
            method="plug-in",
        )
        np.testing.assert_allclose(values, pool.values[1:], atol=1e-10)
    assert found[:, -1].min() > found[:, :-1].max()


def test_local_models_are_scikit_learns():
    _, _, X, y = made_up()
    for model, rows, labels in zip(local_models(X, y), X, y, strict=True):
        theirs = LogisticRegression(C=LOCAL_C, fit_intercept=False, tol=1e-10, max_iter=10_000)
        theirs.fit(rows, labels)
        np.testing.assert_allclose(model, theirs.coef_[0], rtol=1e-3, atol=1e-3)


def test_a_source_of_one_class_says_so_whatever_the_features():
    _, _, X, y = made_up()
    models = local_models(X, np.stack([np.zeros_like(y[0]), np.ones_like(y[0]), *y[2:]]))
    np.testing.assert_allclose(X[0] @ models[0], -1.0)
    np.testing.assert_allclose(X[1] @ models[1], 1.0)


def test_what_is_taken_and_put_together_is_what_was_asked_for():
    _, _, X, y = made_up()
    facts = Facts(NAMES, y, {"given": X}, {})
    ours, theirs = facts.take([3, 0]).append(facts.take([1])), facts.take([3, 0, 1])
    assert ours.names == theirs.names == ("s3", "s0", "s1")
    np.testing.assert_array_equal(ours.X["given"], theirs.X["given"])
    np.testing.assert_array_equal(ours.y, y[[3, 0, 1]])


def test_findings_about_a_source_do_not_depend_on_the_sources_beside_it():
    X, y, X_sources, y_sources = made_up()
    bench = bench_of(X, y, "paper", "default", "component median")
    together = bench.facts(NAMES, X_sources, y_sources)
    apart = [
        bench.facts(NAMES[k : k + 1], X_sources[k : k + 1], y_sources[k : k + 1]) for k in (2, 0)
    ]
    ours, theirs = together.take([2, 0]), apart[0].append(apart[1])
    assert ours.names == theirs.names == ("s2", "s0")
    for method in ("paper", "default"):
        name = "plug-in" if method == "paper" else "combined"
        found = [
            DISCREPANCIES[name].conclude(bench.surveys[method], facts.findings[method])
            for facts in (ours, theirs)
        ]
        np.testing.assert_allclose(found[0].without_fold, found[1].without_fold, atol=1e-6)
        np.testing.assert_allclose(found[0].result.values, found[1].result.values, atol=1e-6)
    medians = [facts.findings["medians"]["models"] for facts in (ours, theirs)]
    np.testing.assert_allclose(*medians, atol=1e-6)
