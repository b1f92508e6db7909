import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourcewise.core.bound import generalization_bound
from sourcewise.core.complexity import (
    dudley_complexity,
    linear_complexity,
    monte_carlo_complexity,
    vc_complexity,
)
from sourcewise.core.weights import solve_weights, theory_trade_off

WEIGHTS = np.array([0.5, 0.3, 0.2])
DISCREPANCIES = np.array([0.0, 0.1, 0.4])
SIZES = np.array([100.0, 400, 2500])


def test_terms_are_those_of_theorem_1():
    bound = generalization_bound(
        WEIGHTS, DISCREPANCIES, SIZES, complexity=[0.1, 0.2, 0.3], delta=0.1, loss_bound=2.0
    )
    assert bound.discrepancy_term == pytest.approx(2 * (0.03 + 0.08))
    assert bound.complexity_term == pytest.approx(4 * (0.05 + 0.06 + 0.06))
    spread = math.sqrt(0.25 / 100 + 0.09 / 400 + 0.04 / 2500)
    assert bound.deviation_term == pytest.approx(6 * math.sqrt(math.log(40) * 4 / 2) * spread)
    assert bound.total == pytest.approx(
        bound.discrepancy_term + bound.complexity_term + bound.deviation_term
    )
    assert bound.complexities.tolist() == [0.1, 0.2, 0.3]
    assert (bound.delta, bound.loss_bound) == (0.1, 2.0)
    assert bound.vacuous == (bound.total >= 2.0)


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(1, 10**6)), min_size=1, max_size=8),
    st.floats(1e-6, 0.9),
    st.floats(0.01, 100),
)
def test_solved_weights_have_the_smallest_bound(pairs, delta, loss_bound):
    d, m = np.array([(0.0, 50.0), *pairs]).T
    n = len(d)

    def total(weights):
        return generalization_bound(
            weights, d, m, complexity=0.1, delta=delta, loss_bound=loss_bound
        ).total

    best = total(solve_weights(d, m, theory_trade_off(delta, loss_bound)))
    rivals = [np.full(n, 1 / n), np.eye(n)[0], m / m.sum()]
    rivals += list(np.random.default_rng(0).dirichlet(np.ones(n), 5))
    for weights in rivals:
        assert best <= total(weights) * (1 + 1e-10)


def test_more_confidence_costs_more():
    totals = [
        generalization_bound(WEIGHTS, DISCREPANCIES, SIZES, complexity=0.0, delta=delta).total
        for delta in (0.5, 0.1, 0.05, 0.001)
    ]
    assert all(a < b for a, b in itertools.pairwise(totals))


def test_linear_complexity_takes_the_radius_from_the_rows():
    X = np.array([[3.0, 4.0], [0.0, 1.0], [1.0, 1.0]])
    bound = generalization_bound(WEIGHTS, DISCREPANCIES, SIZES, X=X, norm_bound=2.0, lipschitz=0.5)
    np.testing.assert_allclose(bound.complexities, 0.5 * 2 * 5 / np.sqrt(SIZES))
    assert "L = 0.5, B = 2, D = 5" in bound.complexity_method


def test_monte_carlo_lies_below_the_distribution_free_bound():
    rng = np.random.default_rng(0)
    counts = np.array([1, 5, 60, 700])
    sources = rng.permutation(np.repeat(np.arange(4), counts))
    for features in (1, 3, 300):
        X = rng.normal(size=(len(sources), features))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        found = monte_carlo_complexity(X, sources, 4, norm_bound=2.0, random_state=1)
        free = linear_complexity(counts, norm_bound=2.0, radius=1.0)
        assert np.all(found <= free * (1 + 1e-12))
        # Khintchine's inequality: never less than 1 / sqrt(2) of the root mean square.
        assert np.all(found >= 0.9 * free / math.sqrt(2))


def test_monte_carlo_agrees_with_all_signs_enumerated():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(17, 2))
    sources = np.array([0] * 8 + [1] * 9)
    exact = []
    for source in (0, 1):
        rows = X[sources == source]
        signs = np.array(list(itertools.product([-1, 1], repeat=len(rows))))
        exact.append(np.linalg.norm(signs @ rows, axis=1).mean() / len(rows))
    found = monte_carlo_complexity(X, sources, 2, n_draws=40_000, random_state=0)
    np.testing.assert_allclose(found, exact, rtol=0.02)


def test_monte_carlo_supremum_is_attained_by_a_model_of_the_class():
    # With one draw the value is that of w = B s / ||s||, s = sum sigma_j x_j.
    X = np.array([[1.0, 2.0]])
    assert monte_carlo_complexity(X, [0], 1, norm_bound=3.0, n_draws=1) == pytest.approx(
        3 * math.sqrt(5)
    )


def test_monte_carlo_does_not_depend_on_how_rows_are_cut(monkeypatch):
    X = np.ones((50, 1))
    whole = monte_carlo_complexity(X, np.zeros(50, int), 1, n_draws=20_000, random_state=0)
    monkeypatch.setattr("sourcewise.core.complexity._SIGNS_AT_ONCE", 20_000 * 7)
    cut = monte_carlo_complexity(X, np.zeros(50, int), 1, n_draws=20_000, random_state=0)
    np.testing.assert_allclose(whole, cut, rtol=0.03)


def test_bound_passes_rows_and_seed_to_monte_carlo():
    rng = np.random.default_rng(0)
    X, sources = rng.normal(size=(30, 2)), np.repeat([2, 0, 1], 10)
    bound = generalization_bound(
        WEIGHTS,
        DISCREPANCIES,
        [10, 10, 10],
        complexity="monte-carlo",
        X=X,
        sources=sources,
        n_draws=50,
        random_state=7,
        lipschitz=0.5,
    )
    expected = monte_carlo_complexity(X, sources, 3, n_draws=50, random_state=7)
    np.testing.assert_allclose(bound.complexities, 0.5 * expected)
    assert "50 Monte-Carlo draws" in bound.complexity_method


def test_vc_complexity_bounds_threshold_classifiers():
    # Thresholds on a line (VC dimension 1): the supremum is a maximal partial sum.
    m = 200
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(2000, m))
    sums = np.cumsum(np.c_[np.zeros(2000), signs], axis=1)
    simulated = (2 * sums.max(axis=1) - sums[:, -1]).mean() / m
    assert simulated <= vc_complexity([m], vc_dimension=1)[0]


def test_vc_complexity_closed_forms():
    np.testing.assert_allclose(
        vc_complexity([1000, 5], vc_dimension=10),
        [math.sqrt(2 * 10 * math.log(math.e * 100) / 1000), 1.0],
    )
    np.testing.assert_allclose(vc_complexity([400], vc_dimension=4, constant=3.0), 0.3)


def test_dudley_complexity_closed_forms():
    # log N = 1 on [0, D]: the integral is D.
    np.testing.assert_allclose(dudley_complexity([900], lambda t: 1.0, diameter=0.5), 0.2)
    # log N = 1 / t: the integral of t^(-1/2) is 2 sqrt(D).
    np.testing.assert_allclose(
        dudley_complexity([100, 400], lambda t: 1 / t, diameter=0.25), [1.2, 0.6], rtol=1e-7
    )


def test_names_reach_the_right_complexity():
    vc = generalization_bound(
        WEIGHTS, DISCREPANCIES, SIZES, complexity="vc", vc_dimension=3, lipschitz=0.5
    )
    np.testing.assert_allclose(vc.complexities, 0.5 * vc_complexity(SIZES, vc_dimension=3))
    dudley = generalization_bound(
        WEIGHTS,
        DISCREPANCIES,
        SIZES,
        complexity="dudley",
        log_covering_number=lambda t: 4.0,
        diameter=1.0,
    )
    np.testing.assert_allclose(dudley.complexities, 24 / np.sqrt(SIZES))
    assert "Dudley" in dudley.complexity_method


def test_printed_table_is_complete_and_narrow():
    bounds = [
        generalization_bound(WEIGHTS, DISCREPANCIES, SIZES, radius=12345.678, norm_bound=1e-9 / 7),
        generalization_bound(WEIGHTS, DISCREPANCIES, SIZES, complexity=0.0, delta=1e-12 / 3),
        generalization_bound(
            WEIGHTS, DISCREPANCIES, SIZES, complexity="vc", vc_dimension=123456, lipschitz=1 / 3
        ),
    ]
    for bound in bounds:
        text = str(bound)
        assert max(map(len, text.splitlines())) <= 80
        for value in (bound.discrepancy_term, bound.deviation_term, bound.total):
            assert f"{value:.5g}" in text
        assert bound.complexity_method in text
        assert "their own sampling error is not included" in text
        assert ("says nothing yet" in text) == bound.vacuous


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights": [0.5, 0.5]}, "There are 3 sources but weights of shape (2,)."),
        ({"weights": [0.5, 0.6, -0.1]}, "Weights must not be negative and must sum to 1."),
        ({"weights": [0.5, 0.6, 0.1]}, "Weights must not be negative and must sum to 1."),
        ({"weights": [0.5, 0.5, math.nan]}, "Weights must not be negative and must sum to 1."),
        ({"sizes": [1, 0, 1]}, "Sizes must be positive and finite; source 1 has 0.0."),
        ({"delta": 1.0}, "delta must lie strictly between 0 and 1; got 1.0."),
        ({"loss_bound": 0.0}, "loss_bound must be positive and finite; got 0.0."),
        ({"norm_bound": -1.0}, "norm_bound must be positive and finite; got -1.0."),
        ({"n_draws": 0}, "n_draws must be positive and finite; got 0."),
        ({"radius": None}, "complexity='linear' needs the radius of the rows, or X."),
        (
            {"complexity": "monte-carlo"},
            "complexity='monte-carlo' needs the rows: pass X and sources.",
        ),
        (
            {"complexity": "monte-carlo", "X": np.ones((2, 1)), "sources": [0, 1]},
            "Every one of the 3 sources needs rows in X, and no other.",
        ),
        (
            {"complexity": "monte-carlo", "X": np.ones((4, 1)), "sources": [0, 1, 2, 3]},
            "Every one of the 3 sources needs rows in X, and no other.",
        ),
        (
            {"complexity": "monte-carlo", "X": np.ones((2, 1)), "sources": [0]},
            "sources must name the position of the source of every row of X.",
        ),
        ({"complexity": "vc"}, "complexity='vc' needs vc_dimension."),
        (
            {"complexity": "vc", "vc_dimension": 0},
            "vc_dimension must be positive and finite; got 0.",
        ),
        ({"complexity": "dudley"}, "complexity='dudley' needs log_covering_number and diameter."),
        (
            {"complexity": "dudley", "log_covering_number": lambda t: 1 / t**4, "diameter": 1.0},
            "Dudley's integral did not converge: the covering number grows too fast near 0.",
        ),
        (
            {"complexity": "magic"},
            "complexity must be 'linear', 'monte-carlo', 'vc', 'dudley' or numbers; got 'magic'.",
        ),
        (
            {"complexity": [0.1, 0.2]},
            "complexity must be a name, one number, or one number a source, none negative.",
        ),
    ],
)
def test_bad_input_gets_one_sentence(changes, message):
    arguments = {
        "weights": WEIGHTS,
        "discrepancies": DISCREPANCIES,
        "sizes": SIZES,
        "radius": 1.0,
    }
    with pytest.raises(ValueError) as error:
        generalization_bound(**(arguments | changes))
    assert str(error.value) == message
