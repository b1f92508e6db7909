from __future__ import annotations

import numpy as np
import pytest

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.audit.expected_errors import (
    EVERYTHING,
    REFERENCE_ONLY,
    SOURCEWISE,
    HeldOut,
    compare_errors,
    held_out_errors,
)
from sourcewise.tables.training import TrainingTable


def table(classification=True, n=(60, 150, 150), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(n), 4))
    z = X[:, 0] + 0.3 * rng.normal(size=len(X))
    z[n[0] + n[1] :] *= -1
    y = (z > 0).astype(int) if classification else z
    names = ["gold", "good", "bad"]
    return TrainingTable(X, y, names, np.array(n), None, classification, {})


def run(training, **how):
    kind = SourceWeightedClassifier if training.classification else SourceWeightedRegressor
    names = np.array(training.names, dtype=object)[training.codes]
    model = lambda: kind(reference="gold", trade_off="theory", random_state=0)  # noqa: E731
    return held_out_errors(training, model, names, seed=0)


@pytest.mark.parametrize("classification", [True, False])
def test_ends_and_middle(classification):
    training = table(classification)
    X, y = training.X.copy(), training.y.copy()
    found = run(training)
    assert np.array_equal(training.X, X)
    assert np.array_equal(training.y, y)
    result = compare_errors(found, classification)
    errors = {m.name: m.error for m in result.methods}
    assert errors[SOURCEWISE] < errors[EVERYTHING]
    assert result.rows == 60
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


def test_the_only_row_of_a_class_is_never_held_out():
    training = table()
    training.y[7] = 2
    found = run(training)
    assert np.flatnonzero(np.isnan(found.losses[SOURCEWISE])).tolist() == [7]
    assert compare_errors(found, True).rows == 59


def test_wilson_by_hand():
    losses = np.zeros(50)
    losses[:5] = 1.0
    result = compare_errors(
        HeldOut(dict.fromkeys((REFERENCE_ONLY, EVERYTHING, SOURCEWISE), losses), losses), True
    )
    # Wilson 1927; values from R's prop.test(5, 50, correct = FALSE).
    assert result.methods[0].low == pytest.approx(0.04347588, abs=1e-6)
    assert result.methods[0].high == pytest.approx(0.21360227, abs=1e-6)
    assert result.differences[0].error == 0.0
