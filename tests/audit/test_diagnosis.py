from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict

from sourcewise.audit.diagnosis import QUESTIONS, Side, compare_features, diagnose
from sourcewise.corruption import flip_labels, label_bias, shuffle_labels

N, D = 400, 8
FEATURES = np.array([f"column {j}" for j in range(D)])


def world(seed, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n)


def guess(change, *, numbers=False, seed=1):
    X_r, z_r = world(0)
    y_r = z_r if numbers else np.where(z_r > 0, "yes", "no")
    model = Ridge() if numbers else LogisticRegression()
    reference = Side(X_r, y_r, cross_val_predict(model, X_r, y_r))
    X, z = world(seed)
    X, y = change(X, z if numbers else np.where(z > 0, "yes", "no"))
    return diagnose(Side(X, y, model.fit(X_r, y_r).predict(X)), reference, FEATURES)


def scaled(X, y):
    X = X.copy()
    X[:, 2] *= 25.4
    return X, y


def dead(X, y):
    X = X.copy()
    X[:, 1] = 0.0
    return X, y


CLASSES = {
    "label bias": lambda X, y: label_bias(X, y, label="yes")[:2],
    "flipped labels": lambda X, y: flip_labels(X, y)[:2],
    "shuffled labels": lambda X, y: shuffle_labels(X, y, random_state=0)[:2],
    "different scale": scaled,
    "feature shift": lambda X, y: (X + 2.0, y),
    "noisy labels": lambda X, y: flip_labels(X, y, p=0.25, random_state=0)[:2],
}
NUMBERS = {
    "flipped sign": lambda X, y: (X, -y),
    "shuffled labels": lambda X, y: (X, np.random.default_rng(0).permutation(y)),
    "label scale": lambda X, y: (X, 2.54 * y),
    "label bias": lambda X, y: (X, y + 2.0),
    "different scale": scaled,
    "feature shift": lambda X, y: (X + np.eye(D)[7] * 2.0, y),
}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("seed", range(1, 6))
def test_classes(kind, seed):
    found = guess(CLASSES[kind], seed=seed)
    assert found["kind"] == kind
    assert found["why"].endswith(".")
    assert "np.str_" not in found["why"]


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("seed", range(1, 4))
def test_numbers(kind, seed):
    assert guess(NUMBERS[kind], numbers=True, seed=seed)["kind"] == kind


def test_every_kind_has_a_question():
    assert set(CLASSES) | set(NUMBERS) <= set(QUESTIONS)


def test_the_column_to_blame_comes_first():
    found = guess(scaled)
    assert found["shifts"][0].feature == "column 2"
    assert found["shifts"][0].spread == pytest.approx(25.4, rel=0.2)
    assert "'column 2'" in found["why"]


def test_dead_column_is_named():
    assert "'column 1' never changes here" in guess(dead)["why"]


def test_label_rates():
    found = guess(CLASSES["label bias"])
    rates = {rate.label: rate for rate in found["labels"]}
    assert rates["yes"].source == 1.0
    assert rates["yes"].reference == pytest.approx(0.5, abs=0.1)


def test_rare_values_are_no_difference():
    # A column that is zero but for a row or two may show any spread by chance.
    rng = np.random.default_rng(0)
    blamed = 0
    for _ in range(50):
        few, many = (rng.random((n, 20)) < 0.02 for n in (60, 120))
        shifts, scales = compare_features(
            many.astype(float), few.astype(float), np.arange(20).astype(str)
        )
        blamed += bool(shifts) + bool(scales)
    assert blamed <= 2


def test_same_rows_differ_in_nothing():
    X, _ = world(0)
    assert compare_features(X, X, FEATURES) == ([], [])
