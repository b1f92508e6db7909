"""How features are scaled: as asked for, or as the reference's rows speak for."""

from __future__ import annotations

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, estimate_discrepancies
from sourcewise.validation import BAD_SCALING


def rare_words(rng, n_rows):
    """Rare columns, of one deviation over all rows; among few rows they vary by luck alone."""
    y = (rng.random(4000) < 0.5).astype(int)
    often = np.where(np.arange(40) % 2 == y[:, None], 0.35, 0.08)
    X = (rng.random((4000, 40)) < often) * rng.lognormal(sigma=1.2, size=(4000, 40))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X[:n_rows], y[:n_rows], X[2000:], y[2000:]


def components(rng, n_rows):
    """Principal components: the first few decide, the many small ones are noise."""
    X = rng.normal(size=(n_rows + 2000, 80)) * np.arange(1, 81) ** -1.0
    y = (X[:, :4] @ [3.0, -4.0, 5.0, 6.0] + 0.3 * rng.logistic(size=len(X)) > 0).astype(int)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def errors_of(draw, n_seeds=6, n_rows=30):
    found = {"auto": [], "standard": [], "keep": []}
    for seed in range(n_seeds):
        X, y, X_test, y_test = draw(np.random.default_rng(seed), n_rows)
        for scaling, errors in found.items():
            model = SourceWeightedClassifier(
                reference="gold", trade_off=0.0, scaling=scaling, random_state=seed
            ).fit(X, y, sources=["gold"] * n_rows)
            errors.append(np.mean(model.predict(X_test) != y_test))
            assert scaling in ("auto", model.scaling_)
    return {scaling: np.mean(errors) for scaling, errors in found.items()}


@pytest.mark.parametrize("draw", [rare_words, components])
def test_the_reference_tells_which_scaling_is_better(draw):
    errors = errors_of(draw)
    best, worst = sorted((errors["standard"], errors["keep"]))
    assert worst > best + 0.01  # there is something to tell
    assert errors["auto"] < best + 0.4 * (worst - best)


def test_columns_in_different_units_are_standardised_without_asking():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.lognormal(10.0, size=80), rng.normal(size=(80, 3))])
    y = X[:, 1] + 0.1 * rng.normal(size=80)
    model = SourceWeightedRegressor(reference="gold", random_state=0)
    assert model.fit(X, y, sources=["gold"] * 80).scaling_ == "standard"
    kept = model.set_params(scaling="keep").fit(X, y, sources=["gold"] * 80)
    assert kept.scaling_ == "keep"


def test_the_report_names_the_scaling(class_pool):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", scaling="standard", random_state=0)
    report = model.fit(X, y, sources=sources).report()
    assert report.to_dict()["scaling"] == "standard"
    assert "standardised" in str(report)
    assert "which came to" in report.to_html()
    paper = SourceWeightedClassifier(reference="gold", protocol="paper", random_state=0)
    assert paper.fit(X, y, sources=sources).report().scaling is None


def test_discrepancies_by_themselves_take_the_scaling_that_is_asked_for(class_pool):
    X, y, sources = class_pool()
    X = X * np.arange(1.0, 1.0 + X.shape[1])
    asked = {"reference": "gold", "random_state": 0}
    found = {
        scaling: estimate_discrepancies(X, y, sources=sources, scaling=scaling, **asked).values
        for scaling in ("standard", "keep")
    }
    assert not np.allclose(found["standard"], found["keep"])
    for scaling, values in found.items():
        model = SourceWeightedClassifier(scaling=scaling, **asked).fit(X, y, sources=sources)
        np.testing.assert_array_equal(values, model.discrepancies_)


@pytest.mark.parametrize("scaling", ["full", None, ["keep"]])
def test_another_scaling_is_refused(class_pool, scaling):
    X, y, sources = class_pool()
    model = SourceWeightedClassifier(reference="gold", scaling=scaling)
    with pytest.raises(ValueError) as refusal:
        model.fit(X, y, sources=sources)
    assert str(refusal.value) == BAD_SCALING.format(value=scaling)


def test_it_is_said_what_whole_numbers_are_taken_for(class_pool):
    X, _, sources = class_pool()
    counts = np.arange(len(X)) % 4
    with pytest.warns(UserWarning, match="4 different ones, and are taken for classes"):
        found = estimate_discrepancies(X, counts, sources=sources, reference="gold")
    assert found.task == "classification"
    for task in ("classification", "regression"):
        found = estimate_discrepancies(X, counts, sources=sources, reference="gold", task=task)
        assert found.task == task
