from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import t as student
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.audit.expected_errors import (
    EVERYTHING,
    REFERENCE_ONLY,
    SOURCEWISE,
    Expected,
    HeldOut,
    compare_errors,
    held_out_errors,
)
from sourcewise.audit.run import learner_of
from sourcewise.core.mixture import DEFAULT_LEARNER
from sourcewise.tables.training import TrainingTable


def table(classification=True, n=(60, 150, 150), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(n), 4))
    z = X[:, 0] + 0.3 * rng.normal(size=len(X))
    z[n[0] + n[1] :] *= -1
    y = (z > 0).astype(int) if classification else z
    names = ["gold", "good", "bad"]
    return TrainingTable(X, y, names, np.array(n), None, classification, {})


def run(training, estimator=None):
    kind = SourceWeightedClassifier if training.classification else SourceWeightedRegressor
    names = np.array(training.names, dtype=object)[training.codes]
    options = {"reference": "gold", "trade_off": "theory", "random_state": 0}
    model = lambda: kind(estimator, **options)  # noqa: E731
    return held_out_errors(training, model, names, seed=0)


@pytest.mark.parametrize("classification", [True, False])
def test_ends_and_middle(classification):
    training = table(classification, n=(150, 150, 150))
    X, y = training.X.copy(), training.y.copy()
    found = run(training)
    assert np.array_equal(training.X, X)
    assert np.array_equal(training.y, y)
    result = compare_errors(found, classification)
    errors = {m.name: m.error for m in result.methods}
    assert errors[SOURCEWISE] < errors[EVERYTHING]
    assert result.rows == 150
    everything = next(d for d in result.differences if d.name == EVERYTHING)
    assert everything.high < 0
    assert everything.error == pytest.approx(errors[SOURCEWISE] - errors[EVERYTHING])


def test_reference_only_is_what_the_reference_alone_would_do():
    training = table()
    found = run(training)
    alone = table()
    alone.X[60:] = np.random.default_rng(5).normal(size=alone.X[60:].shape)
    alone.y[60:] = 1 - alone.y[60:]
    other = run(alone)
    assert np.array_equal(found.losses[REFERENCE_ONLY], other.losses[REFERENCE_ONLY])


@pytest.mark.parametrize("classification", [True, False])
def test_a_learner_of_ones_own_is_set_beside_its_other_ways(classification):
    training = table(classification)
    tree = (DecisionTreeClassifier if classification else DecisionTreeRegressor)(max_depth=4)
    found, default = run(training, tree), run(training)
    ends = [REFERENCE_ONLY, EVERYTHING, SOURCEWISE]
    assert list(found.losses) == [*ends, "source as a feature", DEFAULT_LEARNER]
    assert list(default.losses) == ends
    np.testing.assert_allclose(found.losses[DEFAULT_LEARNER], default.losses[SOURCEWISE])
    result = compare_errors(found, classification)
    assert [d.name for d in result.differences] == [
        *ends[:2],
        "source as a feature",
        DEFAULT_LEARNER,
    ]
    errors = {m.name: m.error for m in result.methods}
    assert max(errors["source as a feature"], errors[SOURCEWISE]) < errors[EVERYTHING]
    assert errors[SOURCEWISE] != errors[DEFAULT_LEARNER]


def test_learners_by_name():
    classes, numbers = table(), table(classification=False)
    assert learner_of("linear", classes) is None
    assert isinstance(learner_of("boosting", classes), HistGradientBoostingClassifier)
    assert isinstance(learner_of("forest", numbers), RandomForestRegressor)
    with pytest.raises(ValueError, match="^learner must be one of linear, boosting, forest; got"):
        learner_of("trees", classes)
    sparse = replace(classes, X=scipy.sparse.csr_array(classes.X))
    with pytest.raises(ValueError, match="^boosting takes no sparse rows"):
        learner_of("boosting", sparse)


def test_the_only_row_of_a_class_is_never_held_out():
    training = table()
    training.y[7] = 2
    found = run(training)
    assert np.flatnonzero(np.isnan(found.losses[SOURCEWISE])).tolist() == [7]
    assert compare_errors(found, True).rows == 59


def alike(losses):
    return HeldOut(dict.fromkeys((REFERENCE_ONLY, EVERYTHING, SOURCEWISE), losses), losses)


@pytest.mark.parametrize(
    ("error", "low", "high", "clear"),
    [(-0.2, -0.3, -0.1, False), (-0.2, -0.35, -0.11, True), (0.2, 0.11, 0.35, True)]
    + [(0.2, 0.1, 0.3, False), (0.0, -0.1, 0.1, False), (-0.1, -0.3, 0.1, False)],
)
def test_a_difference_is_clear_beyond_twice_its_interval(error, low, high, clear):
    assert Expected("a way", error, low, high).clear == clear


def test_wilson_by_hand():
    # Of 90 rows in five folds 40 count.
    losses = np.zeros(90)
    losses[:9] = 1.0
    result = compare_errors(alike(losses), True)
    # Wilson 1927, written out for a tenth of 40 rows.
    z, n, p = 1.959964, 40, 0.1
    root = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    ends = [(p + z**2 / (2 * n) + sign * root) / (1 + z**2 / n) for sign in (-1, 1)]
    assert [result.methods[0].low, result.methods[0].high] == pytest.approx(ends, abs=1e-9)
    assert result.differences[0].error == 0.0


def test_models_that_never_differed_on_sixty_rows_may_still_differ():
    difference = compare_errors(alike(np.zeros(60)), True).differences[0]
    assert difference.error == 0.0
    assert difference.low == pytest.approx(-difference.high)
    assert 0.02 < difference.high < 0.1


def test_intervals_are_those_of_the_corrected_resampled_t_test():
    # Nadeau and Bengio: the variance of the mean of k folds is multiplied by 1 / k + 1 / (k - 1).
    rng = np.random.default_rng(0)
    errors = rng.exponential(size=60)
    found = HeldOut(
        {REFERENCE_ONLY: errors, EVERYTHING: errors, SOURCEWISE: errors + rng.normal(size=60)},
        errors,
    )
    difference = compare_errors(found, False).differences[0]
    values = found.losses[SOURCEWISE] - errors
    fold_variance = values.var(ddof=1) / (60 / 5)
    half = student.ppf(0.975, 59) * np.sqrt((1 / 5 + 1 / 4) * fold_variance)
    ends = [values.mean() - half, values.mean() + half]
    assert [difference.low, difference.high] == pytest.approx(ends)
