import inspect

import numpy as np
import pytest

import sourcewise as sw
from sourcewise.core.discrepancy.methods import DISCREPANCIES


def naive_plug_in(X, y, source, reference):
    """Compute appendix B of the paper source by source, with a stacked least-squares problem."""
    trusted = source == reference
    values = []
    for name in dict.fromkeys(source.tolist()):
        mine = source == name
        t_source, t_reference = 2.0 * y[mine] - 1, 2.0 * y[trusted] - 1
        A = np.vstack(
            [
                X[mine] / np.sqrt(mine.sum()),
                X[trusted] / np.sqrt(trusted.sum()),
                np.sqrt(1e-6) * np.eye(X.shape[1]),
            ]
        )
        b = np.concatenate(
            [
                -t_source / np.sqrt(mine.sum()),
                t_reference / np.sqrt(trusted.sum()),
                np.zeros(X.shape[1]),
            ]
        )
        w = np.linalg.lstsq(A, b, rcond=None)[0]
        flipped = np.mean(X[mine] @ w * -t_source < 0)
        own = np.mean(X[trusted] @ w * t_reference < 0)
        values.append(0.0 if name == reference else abs(1 - flipped - own))
    return np.array(values)


def pool(seed=0, counts=(80, 120, 60, 90)):
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, 5)), np.ones(n)])
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int)
    source = np.repeat(["north", "gold", "south", "west"], counts)
    y[source == "west"] = 1 - y[source == "west"]
    mixed = rng.permutation(n)
    return X[mixed], y[mixed], source[mixed]


def test_plug_in_is_the_papers_formula_on_features_as_given():
    X, y, source = pool()
    found = sw.estimate_discrepancies(X, y, sources=source, reference="gold", method="plug-in")
    np.testing.assert_allclose(found.values, naive_plug_in(X, y, source, "gold"), atol=1e-10)
    assert found.sources == list(dict.fromkeys(source.tolist()))


@pytest.mark.parametrize("method", DISCREPANCIES)
def test_every_method_finds_the_flipped_source(method):
    X, y, source = pool()
    found = sw.estimate_discrepancies(
        X, y, sources=source, reference="gold", method=method, random_state=0
    )
    west, gold = found.sources.index("west"), found.sources.index("gold")
    assert np.argmax(found.values) == west
    assert found.p_values[west] <= 0.01
    assert (found.values[gold], found.standard_errors[gold], found.p_values[gold]) == (0, 0, 1)
    assert found.witnesses[west].worse_on in ("source", "reference")
    np.testing.assert_array_equal(np.asarray(found), found.values)


@pytest.mark.parametrize("method", DISCREPANCIES)
def test_regression_and_several_classes(method):
    X, _, source = pool()
    rng = np.random.default_rng(1)
    y = X[:, 0] + 0.1 * rng.normal(size=len(X))
    y[source == "west"] *= -1
    found = sw.estimate_discrepancies(X, y, sources=source, reference="gold", method=method)
    assert found.sources[np.argmax(found.values)] == "west"
    classes = np.digitize(y, [-0.5, 0.5])
    found = sw.estimate_discrepancies(
        X, classes, sources=source, reference="gold", method=method, task="classification"
    )
    assert found.sources[np.argmax(found.values)] == "west"


@pytest.mark.parametrize("method", DISCREPANCIES)
def test_one_row_one_class_and_more_features_than_rows(method):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 12))
    y = (X[:, 0] > 0).astype(int)
    source = np.repeat(["gold", "one", "few", "single"], [40, 1, 5, 24])
    y[source == "single"] = 1
    found = sw.estimate_discrepancies(X, y, sources=source, reference="gold", method=method)
    assert np.isfinite(found.values).all()
    assert (found.p_values > 0).all() and (found.p_values <= 1).all()


def test_an_unknown_task_is_refused():
    X, y, source = pool()
    with pytest.raises(ValueError, match="task must be 'auto', 'classification' or 'regression'"):
        sw.estimate_discrepancies(X, y, sources=source, reference="gold", task="ranking")


@pytest.mark.parametrize("regression", [False, True])
@pytest.mark.parametrize("method", DISCREPANCIES)
def test_one_name_is_one_computation(method, regression):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(330, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=330)
    y = y if regression else (y > 0).astype(int)
    who = np.repeat(["a", "gold", "b", "c"], [90, 60, 80, 100])
    y[who == "b"] = rng.permutation(y[who == "b"])
    kind = sw.SourceWeightedRegressor if regression else sw.SourceWeightedClassifier
    model = kind(reference="gold", discrepancy=method, random_state=3).fit(X, y, sources=who)
    found = sw.estimate_discrepancies(
        X, y, sources=who, reference="gold", method=method, random_state=3
    )
    np.testing.assert_array_equal(found.values, model.discrepancies_)
    np.testing.assert_array_equal(found.p_values, model.discrepancy_result_.p_values)


def test_the_default_is_combined_in_both_places():
    assert sw.SourceWeightedClassifier().discrepancy == "combined"
    assert inspect.signature(sw.estimate_discrepancies).parameters["method"].default == "combined"
