"""The final model is what `fit_average` says: an average, one pair fitted at a time."""

from __future__ import annotations

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor, solve_weights


@pytest.mark.parametrize("kind", ["two classes", "three classes", "regression"])
def test_coefficients_are_the_average_of_every_pairs(class_pool, kind):
    X, y, sources = class_pool({"gold": 40, "good": 60, "fine": 50, "bad": 60})
    estimator = SourceWeightedClassifier
    if kind == "three classes":
        y = np.where(X[:, 1] > 0.8, 2, y)
    elif kind == "regression":
        estimator, y = SourceWeightedRegressor, X[:, 0] + np.sin(np.arange(len(X)))
    model = estimator(reference="gold", random_state=0).fit(X, y, sources=sources)
    selection = model.selection_
    assert np.count_nonzero(selection.mixture) > 2  # 40 rows cannot tell the pairs apart
    pool = model._kept_pool(model._training)
    data, average = pool.data, 0.0
    for trade_off, shares in zip(selection.trade_offs, selection.mixture, strict=True):
        alpha = solve_weights(model.discrepancies_, data.sizes, trade_off)
        total = 1.0 / np.sum(alpha**2 / data.sizes)
        row_weights = total * np.repeat(alpha, data.row_counts) * data.row_shares
        for C, share in zip(selection.settings, shares, strict=True):
            if share > 0:
                fitted = pool.family.fit(data.X, data.y, row_weights[:, None], np.array([C]))
                average = average + share * fitted[0]
    coef, intercept = pool.features.unmap(average)
    coef, intercept = model._task.in_units(coef, intercept)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-4, atol=1e-3)
