from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import cross_val_predict

from sourcewise.audit import column_kinds, label_kinds
from sourcewise.audit.column_kinds import compare_features
from sourcewise.audit.common_rows import common_rows
from sourcewise.audit.diagnosis import LEAST_ROWS, Side, diagnose
from sourcewise.audit.wording import CANNOT_TELL, QUESTIONS
from sourcewise.corruption import flip_labels, label_bias, shuffle_labels

N, D = 400, 8
FEATURES = np.array([f"column {j}" for j in range(D)])
NAMES = np.array(["ant", "bee", "cow", "dog", "eel", "fox"])


def world(seed, n=N, task="two"):
    """Columns of different sizes, so that their order can be seen."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, D))
    X = z * np.arange(1, D + 1) + 5.0 * np.arange(D)
    if task == "six":
        coefficients = np.random.default_rng(99).normal(size=(D, 6))
        return X, NAMES[(z @ coefficients + 0.35 * rng.normal(size=(n, 6))).argmax(axis=1)]
    score = z[:, 0] - z[:, 1] + 0.3 * rng.normal(size=n)
    return (X, 300.0 + 100.0 * score) if task == "numbers" else (X, np.where(score > 0, "y", "n"))


@cache
def trusted_side(task, n):
    """Return the reference, what its model predicts of rows, and the classes."""
    X, y = world(0, n, task)
    numbers = task == "numbers"
    model = Ridge() if numbers else LogisticRegression(max_iter=5000)
    method = "predict" if numbers else "predict_proba"
    held_out = cross_val_predict(model, X, y, method=method)
    look = getattr(model.fit(X, y), method)
    return Side(X, y, held_out), look, None if numbers else model.classes_


def guess(change, *, task="two", seed=1, n=N, trusted=N):
    side, look, classes = trusted_side(task, trusted)
    X, y = change(*world(seed, n, task))
    found = diagnose(Side(X, y, look(X)), side, FEATURES, classes, look)
    assert found["why"].endswith(".") and "np." not in found["why"]
    return found


def scaled(X, y):
    X = X.copy()
    X[:, 2] *= 25.4
    return X, y


def swapped(X, y):
    return X, np.where(y == "bee", "dog", np.where(y == "dog", "bee", y))


def never(X, y):
    others = NAMES[NAMES != "cow"]
    return X, np.where(y == "cow", np.random.default_rng(0).choice(others, len(y)), y)


def relabelled(X, y):
    return X, np.where(y == "cow", "fox", y)


def noisier(X, y):
    return X + 1.2 * X.std(axis=0) * np.random.default_rng(0).normal(size=X.shape), y


CHANGES = {
    "two": {
        "one label for all": lambda X, y: label_bias(X, y, label="y")[:2],
        "flipped labels": lambda X, y: flip_labels(X, y)[:2],
        "shuffled labels": lambda X, y: shuffle_labels(X, y, random_state=0)[:2],
        "noisy labels": lambda X, y: flip_labels(X, y, p=0.3, random_state=0)[:2],
        "other units": scaled,
        "columns permuted": lambda X, y: (np.roll(X, 3, axis=1), y),
        "other population": lambda X, y: (X + 1.5 * np.eye(D)[7] * X.std(axis=0), y),
        "noisy features": noisier,
    },
    "six": {
        "two classes swapped": swapped,
        "class never used": never,
        "class relabelled": relabelled,
        "shuffled labels": lambda X, y: shuffle_labels(X, y, random_state=0)[:2],
        "other units": scaled,
        "columns permuted": lambda X, y: (np.roll(X, 3, axis=1), y),
    },
    "numbers": {
        "flipped sign": lambda X, y: (X, 600.0 - y),
        "shuffled labels": lambda X, y: (X, np.random.default_rng(0).permutation(y)),
        "label units": lambda X, y: (X, 2.54 * y),
        "label shift": lambda X, y: (X, y + 200.0),
        "noisy labels": lambda X, y: (X, y + 250.0 * np.random.default_rng(0).normal(size=len(y))),
        "other units": scaled,
        "columns permuted": lambda X, y: (np.roll(X, 3, axis=1), y),
    },
}
CASES = [(task, kind) for task, kinds in CHANGES.items() for kind in kinds]


@pytest.mark.parametrize(("task", "kind"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_kind_is_known(task, kind, seed):
    assert guess(CHANGES[task][kind], task=task, seed=seed)["kind"] == kind


@pytest.mark.parametrize(("task", "kind"), CASES)
@pytest.mark.parametrize("n", [3, 7, LEAST_ROWS - 1])
def test_no_guess_from_a_handful_of_rows(task, kind, n):
    found = guess(CHANGES[task][kind], task=task, n=n)
    assert found["kind"] == CANNOT_TELL
    assert f"{n} rows are too few" in found["why"]


def test_flipped_labels_are_known_where_other_columns_differ_too():
    def flipped_elsewhere(X, y):
        X = X.copy()
        X[:, 7] += 40.0  # which the labels do not depend on
        return X, np.where(y == "y", "n", "y")

    found = guess(flipped_elsewhere)
    assert found["agreement"] < 0.2
    assert found["kind"] == "flipped labels"


def test_every_kind_has_a_question():
    assert {kind for _, kind in CASES} <= set(QUESTIONS)


class TestKnownToHaveBeenWrong:
    def test_nothing_right_is_not_chance(self):
        found = guess(lambda X, y: (X, np.where(y == "y", "n", "y")))
        assert "chance" not in found["why"]
        assert found["agreement"] < 0.2

    @pytest.mark.parametrize("seed", range(4))
    def test_permuted_columns_are_not_called_flipped_labels(self, seed):
        # Columns that look alike: their order cannot be seen in them.
        rng = np.random.default_rng(seed)
        X_r, X = rng.normal(size=(2, N, D))
        rule = rng.normal(size=D)
        y_r, y = X_r @ rule > 0, X @ rule > 0
        X = X[:, rng.permutation(D)]
        model = LogisticRegression()
        held_out = cross_val_predict(model, X_r, y_r, method="predict_proba")
        look = model.fit(X_r, y_r).predict_proba
        sides = Side(X, y, look(X)), Side(X_r, y_r, held_out)
        found = diagnose(*sides, FEATURES, model.classes_, look)
        assert found["kind"] in (CANNOT_TELL, "noisy labels")
        assert "exchang" not in QUESTIONS[found["kind"]]

    def test_two_swapped_classes_are_named(self):
        found = guess(swapped, task="six")
        assert "'bee'" in found["why"] and "'dog'" in found["why"]

    def test_a_class_that_is_never_used_is_named(self):
        assert "never uses 'cow' (0%" in guess(never, task="six")["why"]
        merged = guess(relabelled, task="six")["why"]
        assert "never uses 'cow' (0%" in merged and "says 'fox'" in merged

    def test_the_place_of_permuted_columns_is_named(self):
        why = guess(CHANGES["two"]["columns permuted"])["why"]
        assert "its 'column 0' looks like your 'column 5'" in why


def test_right_labels_are_never_blamed():
    for task in CHANGES:
        for seed in range(2, 12):
            assert guess(lambda X, y: (X, y), task=task, seed=seed)["kind"] in (
                CANNOT_TELL,
                "other population",
            )


def test_the_column_to_blame_comes_first():
    found = guess(scaled)
    assert found["shifts"][0].feature == "column 2"
    assert found["shifts"][0].spread == pytest.approx(25.4, rel=0.2)
    assert "'column 2'" in found["why"]


def test_label_rates():
    found = guess(CHANGES["two"]["one label for all"])
    rates = {rate.label: rate for rate in found["labels"]}
    assert rates["y"].source == 1.0
    assert rates["y"].reference == pytest.approx(0.5, abs=0.1)


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


class TestOneLabelForAll:
    @pytest.mark.parametrize("n", [100, 400, 1000, 4000])
    @pytest.mark.parametrize("label", ["y", "n"])
    def test_it_is_known_whatever_the_number_of_rows(self, n, label):
        found = guess(lambda X, y: (X, np.full_like(y, label)), n=n)
        assert found["kind"] == "one label for all"


class TestColumnsConstantInTheReference:
    """They are no evidence, whatever a source has there."""

    @staticmethod
    def guess(change, task, values):
        side, look, classes = trusted_side(task, N)
        X, y = change(*world(1, N, task))
        wide = Side(_with_constants(side.X, 0.0), side.y, side.scores)
        source = Side(_with_constants(X, values), y, look(X))
        names = np.array([*FEATURES, "flag", "version"])
        return diagnose(source, wide, names, classes, lambda X: look(X[:, :D]))

    @pytest.mark.parametrize(("task", "kind"), CASES)
    def test_guesses_are_the_same(self, task, kind):
        values = np.random.default_rng(3).integers(2, size=(N, 2)).astype(float)
        found = self.guess(CHANGES[task][kind], task, values)
        same = guess(CHANGES[task][kind], task=task)
        assert (found["kind"], found["why"]) == (same["kind"], same["why"])
        assert found["kind"] == kind


def _with_constants(X, values):
    return np.column_stack([X, np.broadcast_to(values, (len(X), 2))])


class TestRowsInCommon:
    def test_the_source_is_told_how_it_labelled_them(self):
        side, look, classes = trusted_side("two", N)
        X, y = world(1)
        y = np.random.default_rng(0).permutation(y)
        X[:30], y[:30] = side.X[:30], side.y[:30]
        y[:9] = np.where(y[:9] == "y", "n", "y")
        why = diagnose(Side(X, y, look(X)), side, FEATURES, classes, look)["why"]
        assert "labelled 30 of your trusted rows itself, 9 of them differently (30%)." in why

    def test_numbers(self):
        side, look, _ = trusted_side("numbers", N)
        X, y = world(1, task="numbers")
        X[:20], y[:20] = side.X[:20], side.y[:20]
        y[:5] += 500.0
        why = diagnose(Side(X, y, look(X)), side, FEATURES, None, look)["why"]
        assert "20 of your trusted rows itself: 5 (25%) differ" in why
        assert "mean difference is +125" in why

    def test_nothing_is_said_of_others_nor_where_rows_repeat_by_nature(self):
        assert "itself" not in guess(CHANGES["two"]["flipped labels"])["why"]
        rng = np.random.default_rng(0)
        X, own = rng.integers(3, size=(200, 2)), rng.integers(3, size=(100, 2))
        assert common_rows(X, X[:, 0], own, own[:, 0]) is None

    def test_any_label_of_a_repeated_trusted_row_is_right(self):
        rng = np.random.default_rng(0)
        own = rng.normal(size=(100, 3))
        own[1] = own[0]
        labels = np.arange(100)
        found = common_rows(own[[0, 0, 2, 3]], np.array([0, 1, 2, 9]), own, labels)
        assert (found.rows, found.differ) == (4, 1)
        few = rng.integers(2, size=(60, 12)).astype(float)  # equal rows are luck here
        found = common_rows(few[:1].repeat(2, axis=0), np.zeros(2), few, np.zeros(60, dtype=int))
        assert found is None or found.rows == 2


def test_columns_without_variance_make_no_warning():
    # Words that a source never uses, and one that it hardly does: warnings are errors here.
    X, y = world(1)
    reference = world(0)[0]
    for scale in (0.0, 1e-160, 1e-200):
        other = X.copy()
        other[:, 3] *= scale
        assert column_kinds.noisier(other, reference) is None
    assert guess(lambda X, y: (X * (np.arange(D) != 3), y))["kind"] in QUESTIONS


class TestUnits:
    """Columns in other units are named, and only these."""

    def test_flags_and_counts_beside_them_are_not_blamed(self):
        rng = np.random.default_rng(3)

        def rows(n):
            return np.column_stack(
                [rng.random((n, 6)) < 0.1, rng.poisson(1.0, (n, 3)), rng.normal(20, 5, (n, 3))]
            ).astype(float)

        ours, theirs = rows(200), rows(100)
        theirs[:, 10] *= 2.54
        (first, *_) = column_kinds.other_units(theirs, ours)
        assert first.columns.tolist() == [10]

    def test_yes_and_no_in_percent_are(self):
        rng = np.random.default_rng(4)
        ours, theirs = (np.where(rng.random((n, 1)) < 0.3, 1.0, 0.0) for n in (200, 100))
        found = list(column_kinds.other_units(100.0 * theirs, ours))
        assert any(np.allclose(each.repaired, theirs) for each in found)


def test_one_label_is_named_beside_thirty_rows_too():
    """A label that all thirty rows have is no matter of doubt."""
    rng = np.random.default_rng(5)
    classes = np.array(["a", "b"])

    def side(n, y=None):
        x = rng.normal(size=(n, 1))
        p = 1.0 / (1.0 + np.exp(-3.0 * x[:, 0]))
        labels = classes[(rng.random(n) < p).astype(int)] if y is None else np.full(n, y)
        return Side(x, labels, np.column_stack([1.0 - p, p]))

    ours = side(200)
    said = diagnose(side(30, "a"), ours, np.array(["x"]), classes)
    assert said["kind"] == "one label for all"


def test_shares_of_classes_that_few_trusted_rows_show_are_not_taken_as_exact():
    """Shuffled labels whose shares are right are shuffled, though the reference's are a bit off."""
    usual = np.array([60, 70, 70])
    y = np.repeat([0, 1, 2], [400, 350, 250])
    p = np.full((1000, 3), 1 / 3)
    fits = {h.kind: h.fit for h in label_kinds.hypotheses(p, y, usual)}
    assert fits["shuffled labels"] > label_kinds.saturated(p, y)[0] - 4.0
    assert (
        fits["shuffled labels"]
        < {h.kind: h.fit for h in label_kinds.hypotheses(p, y, 100 * usual)}["labels unrelated"]
    )
