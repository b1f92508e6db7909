"""What the studies compute source by source is what the library says of whole pools."""

import numpy as np
from sklearn.linear_model import LogisticRegression

import sourcewise as sw
from sourcewise.experiments.per_source import LOCAL_C, ReferenceMoments, grams, local_models

N_SOURCES, ROWS, REFERENCE_ROWS = 4, 30, 40


def made_up(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(REFERENCE_ROWS + N_SOURCES * ROWS, 6))
    X[:, -1] = 1.0
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    y[-ROWS:] = 1 - y[-ROWS:]
    apart = X[REFERENCE_ROWS:].reshape(N_SOURCES, ROWS, -1), y[REFERENCE_ROWS:].reshape(-1, ROWS)
    return X[:REFERENCE_ROWS], y[:REFERENCE_ROWS], *apart


def test_discrepancies_are_the_plug_in_ones_with_and_without_a_fold():
    X, y, X_sources, y_sources = made_up()
    held_out = np.arange(REFERENCE_ROWS)[None, :] % 5 == np.arange(5)[:, None]
    found = ReferenceMoments.of(X, y, held_out).discrepancies(
        X_sources, y_sources, grams(X_sources)
    )
    kept = [np.ones(REFERENCE_ROWS, dtype=bool), *~held_out]
    assert found.shape == (N_SOURCES, len(kept))
    for v, rows in enumerate(kept):
        names = ["reference"] * rows.sum() + [
            f"s{i}" for i in range(N_SOURCES) for _ in range(ROWS)
        ]
        pool = sw.estimate_discrepancies(
            np.concatenate([X[rows], X_sources.reshape(-1, X.shape[1])]),
            np.concatenate([y[rows], y_sources.ravel()]),
            sources=np.array(names),
            reference="reference",
            method="plug-in",
        )
        np.testing.assert_allclose(found[:, v], pool.values[1:], atol=1e-10)
    assert found[-1].min() > found[:-1].max()


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
