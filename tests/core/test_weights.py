import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sourcewise.core.weights import (
    WeightProblem,
    counted_sizes,
    solve_weights,
    theory_trade_off,
    weight_path,
)

fixed = settings(derandomize=True, deadline=None, max_examples=150)

# Few distinct values make ties common; the others cover eleven orders of magnitude.
discrepancy = st.sampled_from([0.0, 0.1, 0.25, 0.5]) | st.floats(1e-8, 1e3)
size = st.integers(1, 20) | st.integers(1, 10**9)
sources = st.lists(st.tuples(discrepancy, size), min_size=1, max_size=12).map(
    lambda pairs: (np.array([d for d, _ in pairs]), np.array([float(m) for _, m in pairs]))
)
trade_off = st.floats(1e-6, 1e6)


def objective(weights, d, m, lam):
    return math.fsum(weights * d) + lam * math.sqrt(math.fsum(weights**2 / m))


def assert_optimal(weights, cutoff, d, m, lam, rtol=1e-10):
    """Check a primal solution and the dual certificate that no weights do better.

    Every mu with sum m max(mu - d, 0)^2 <= lambda^2 is a lower bound on the problem.
    """
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    bound = cutoff * (1 - rtol)
    assert math.fsum(m * np.maximum(bound - d, 0) ** 2) <= lam**2
    assert objective(weights, d, m, lam) <= cutoff * (1 + rtol)


def random_problem(rng):
    n = int(rng.integers(1, 9))
    d = rng.random(n) * 10.0 ** rng.integers(-3, 2)
    kind = rng.integers(4)
    if kind == 0:
        d = np.round(d / d.max(), 1)
    elif kind == 1:
        d[:] = d[0]
    if kind != 2:
        d -= d.min()
    m = np.ceil(10.0 ** rng.uniform(0, rng.choice([1, 4, 9]), n))
    reach = math.sqrt((m * (d.max() - d) ** 2).sum()) or 1.0
    return d, m, reach * 10.0 ** rng.uniform(-2, 1)


def slsqp(d, m, lam, start):
    # In units of the optimal value and of the trade-off, or SLSQP stops far too early.
    scale = objective(start, d, m, lam)

    def value(a):
        return (a @ d + lam * math.sqrt((a**2 / m).sum())) / scale

    def gradient(a):
        return (d + lam * a / m / math.sqrt((a**2 / m).sum())) / scale

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = minimize(
            value,
            start,
            jac=gradient,
            method="SLSQP",
            bounds=[(0, 1)] * len(d),
            constraints={"type": "eq", "fun": lambda a: a.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-15, "maxiter": 500},
        )
    found = np.clip(result.x, 0, None)
    return found / found.sum()


def test_never_worse_than_slsqp_on_300_problems():
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(300):
        d, m, lam = random_problem(rng)
        weights, cutoff = solve_weights(d, m, lam, return_cutoff=True)
        assert_optimal(weights, cutoff, d, m, lam)
        ours = objective(weights, d, m, lam)
        theirs = objective(slsqp(d, m, lam, m / m.sum()), d, m, lam)
        assert ours <= theirs * (1 + 1e-10)
        reached += theirs <= ours * (1 + 1e-9)
    # The comparison means something only if the other solver gets there too.
    assert reached >= 250


@fixed
@given(sources, trade_off)
def test_solution_carries_a_dual_certificate(problem, lam):
    d, m = problem
    weights, cutoff = solve_weights(d, m, lam, return_cutoff=True)
    assert weights.dtype == np.float64
    assert_optimal(weights, cutoff, d, m, lam)
    assert objective(weights, d, m, lam) == pytest.approx(cutoff, rel=1e-10)
    assert np.all(weights[d >= cutoff] <= 1e-10)


@fixed
@given(sources, trade_off, st.floats(1e-3, 1e3))
def test_no_random_weights_do_better(problem, lam, concentration):
    d, m = problem
    _, cutoff = solve_weights(d, m, lam, return_cutoff=True)
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.full(len(d), concentration), size=20):
        assert objective(other, d, m, lam) >= cutoff * (1 - 1e-10)


def test_a_hundred_thousand_sources_keep_their_digits():
    rng = np.random.default_rng(1)
    d = np.round(rng.random(100_000), 4)
    m = np.ceil(10 ** rng.uniform(0, 9, d.size))
    for lam in WeightProblem.from_sources(d, m).breakpoints[:20] + 1e-6:
        weights, cutoff = solve_weights(d, m, lam, return_cutoff=True)
        assert_optimal(weights, cutoff, d, m, lam, rtol=1e-11)


@pytest.mark.parametrize("lam", [1e-6, 1e-3, 0.1, 3.0, 1e4])
def test_huge_offsets_change_nothing(lam):
    # Differences of a billionth of the offset, exact in binary.
    gaps = np.array([0, 3, 3, 8, 20, 21]) * 2.0**-10
    m = np.array([5.0, 1e6, 1, 1e9, 40, 1])
    offset = 2.0**30
    np.testing.assert_allclose(
        solve_weights(gaps + offset, m, lam), solve_weights(gaps, m, lam), rtol=1e-10, atol=0
    )


@pytest.mark.parametrize("lam", [0.001, 0.3, 2.0, 70.0, 1e5])
def test_weights_match_exact_arithmetic(lam):
    d = np.array([0.7, 0.1, 0.4, 0.1, 0.9])
    m = np.array([3.0, 1e9, 17, 2, 1e5])
    exact_d, exact_m = [Fraction(v) for v in d], [Fraction(v) for v in m]
    low, high = min(exact_d), min(exact_d) + Fraction(lam)
    for _ in range(120):
        mu = (low + high) / 2
        if sum(w * max(mu - v, 0) ** 2 for v, w in zip(exact_d, exact_m, strict=True)) <= (
            Fraction(lam) ** 2
        ):
            low = mu
        else:
            high = mu
    raw = [w * max(low - v, 0) for v, w in zip(exact_d, exact_m, strict=True)]
    weights, cutoff = solve_weights(d, m, lam, return_cutoff=True)
    assert cutoff == pytest.approx(float(low), rel=1e-14)
    np.testing.assert_allclose(weights, [float(v / sum(raw)) for v in raw], rtol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 1e-300, 1e-9, 1.0, 1e9, 1e300, 1.7e308, math.inf])
def test_one_source_takes_everything(lam):
    weights, cutoff = solve_weights([0.3], [4], lam, return_cutoff=True)
    assert weights.tolist() == [1.0]
    assert cutoff == pytest.approx(0.3 + lam / 2, rel=1e-14)


@pytest.mark.parametrize("lam", [0.0, 1e-300, 1e-9, 1.0, 1e9, 1e300, 1.7e308, math.inf])
@pytest.mark.parametrize("d", [0.0, 0.4, 1e6])
def test_equal_discrepancies_share_by_size(lam, d):
    m = np.array([1.0, 7, 1e9, 20])
    np.testing.assert_allclose(solve_weights([d] * 4, m, lam), m / m.sum(), rtol=1e-12)


@pytest.mark.parametrize("lam", [0.0, 1e-320, 1e-200, 1e-12])
def test_smallest_discrepancy_takes_everything_and_ties_share_by_size(lam):
    weights, cutoff = solve_weights([0.5, 0.2, 0.9, 0.2], [100, 30, 5, 10], lam, return_cutoff=True)
    np.testing.assert_allclose(weights, [0, 0.75, 0, 0.25], rtol=1e-12)
    assert cutoff == pytest.approx(0.2)


@pytest.mark.parametrize("lam", [1e14, 1e200, 1.7e308, math.inf])
def test_every_row_counts_the_same_in_the_limit(lam):
    d, m = np.array([0.0, 0.3, 1.0]), np.array([10.0, 70, 20])
    weights, cutoff = solve_weights(d, m, lam, return_cutoff=True)
    np.testing.assert_allclose(weights, m / 100, rtol=1e-12)
    assert cutoff == pytest.approx(lam / 10)


@pytest.mark.parametrize("unit", [1e-300, 1e-160, 1e-9, 1e150, 1e300])
def test_units_of_the_loss_do_not_matter(unit):
    d, m = np.array([0.0, 0.1, 0.15, 0.5]), np.array([50, 10, 400, 1000])
    np.testing.assert_allclose(
        solve_weights(d * unit, m, 2.0 * unit), solve_weights(d, m, 2.0), rtol=1e-10
    )


@fixed
@given(sources, trade_off, st.randoms(use_true_random=False))
def test_order_of_sources_does_not_matter(problem, lam, random):
    d, m = problem
    order = list(range(len(d)))
    random.shuffle(order)
    np.testing.assert_allclose(
        solve_weights(d[order], m[order], lam), solve_weights(d, m, lam)[order], atol=1e-12
    )


@fixed
@given(sources, trade_off)
def test_merging_two_equal_sources_adds_their_weights(problem, lam):
    d, m = problem
    split = solve_weights(np.append(d, d[0]), np.append(m, 5.0), lam)
    merged = solve_weights(d, m + 5.0 * (np.arange(len(m)) == 0), lam)
    np.testing.assert_allclose(split[1:-1], merged[1:], atol=1e-12)
    assert split[0] + split[-1] == pytest.approx(merged[0], abs=1e-12)


@fixed
@given(sources, st.floats(0, 1 - 1e-12))
def test_reference_alone_while_the_trade_off_is_small(problem, share):
    d, m = np.append(0.0, problem[0] + 0.01), np.append(60.0, problem[1])
    weights = solve_weights(d, m, share * math.sqrt(60) * d[1:].min())
    assert weights[0] == 1
    assert not weights[1:].any()
    beyond = solve_weights(d, m, 1.001 * math.sqrt(60) * d[1:].min())
    assert beyond[0] < 1


@fixed
@given(sources)
def test_breakpoints_are_where_sources_enter(problem):
    d, m = problem
    found = WeightProblem.from_sources(d, m)
    expected = [math.sqrt(math.fsum(m * np.maximum(v - d, 0) ** 2)) for v in d]
    np.testing.assert_allclose(found.breakpoints, expected, rtol=1e-12)
    for source in range(len(d)):
        entry = found.breakpoints[source]
        assert found.weights(entry * (1 + 1e-6) + 1e-12)[source] > 0
        if entry > 0:
            assert found.weights(entry * (1 - 1e-6))[source] == 0


@fixed
@given(sources)
def test_support_and_cutoff_grow_along_the_path(problem):
    path = weight_path(*problem)
    assert path.trade_offs[0] == 0
    assert path.trade_offs[-1] == math.inf
    assert np.all(np.diff(path.trade_offs[:-1]) >= 0)
    assert np.all(np.diff(path.cutoffs[:-1]) >= 0)
    active = path.weights > 0
    assert np.all(active[1:] >= active[:-1])
    np.testing.assert_array_equal(active.sum(axis=1), path.support_sizes)
    np.testing.assert_allclose(path.weights.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(path.weights[-1], problem[1] / problem[1].sum(), rtol=1e-12)
    # The default grid ends where the path has all but reached its limit.
    np.testing.assert_allclose(path.weights[-2], path.weights[-1], rtol=0.02)


@fixed
@given(sources)
def test_path_is_continuous_across_breakpoints(problem):
    d, m = problem[0], np.minimum(problem[1], 1e4)
    found = WeightProblem.from_sources(d, m)
    step = 1e-10
    # A relative step of lambda moves no weight by more than twice step * sum(m) / min(m).
    most = 4 * step * m.sum() / m.min() + 1e-12
    for entry in found.breakpoints[found.breakpoints > 0]:
        below, above = found.weights(entry * (1 - step)), found.weights(entry * (1 + step))
        np.testing.assert_allclose(below, above, rtol=0, atol=most)


@fixed
@given(sources, st.lists(trade_off | st.sampled_from([0.0, math.inf]), min_size=1, max_size=6))
def test_path_is_one_solve_per_trade_off(problem, trade_offs):
    path = weight_path(*problem, trade_offs)
    assert path.weights.shape == (len(trade_offs), len(problem[0]))
    cutoffs = WeightProblem.from_sources(*problem).cutoffs(trade_offs)
    for row, lam in enumerate(trade_offs):
        weights, cutoff = solve_weights(*problem, lam, return_cutoff=True)
        np.testing.assert_array_equal(path.weights[row], weights)
        assert path.cutoffs[row] == cutoff == cutoffs[row]


def test_inputs_are_left_alone():
    d, m = np.array([0.3, 0.0, 0.1]), np.array([3.0, 1.0, 2.0])
    weight_path(d, m)
    assert d.tolist() == [0.3, 0.0, 0.1]
    assert m.tolist() == [3.0, 1.0, 2.0]


def test_theory_trade_off_is_half_of_theorem_1():
    assert theory_trade_off() == pytest.approx(3 * math.sqrt(math.log(80) / 2))
    assert theory_trade_off(0.01, 2.5) == pytest.approx(3 * math.sqrt(math.log(400) * 6.25 / 2))


@pytest.mark.parametrize(
    ("d", "m", "lam", "message"),
    [
        ([0, -0.1], [1, 1], 1.0, "finite and not negative; source 1 has -0.1."),
        ([0, 1, math.nan], [1, 1, 1], 1.0, "finite and not negative; source 2 has nan."),
        ([0, math.inf], [1, 1], 1.0, "finite and not negative; source 1 has inf."),
        ([0, 1], [1, 0], 1.0, "Sizes must be positive and finite; source 1 has 0.0."),
        ([0, 1], [math.nan, 1], 1.0, "Sizes must be positive and finite; source 0 has nan."),
        ([0, 1], [1, 1, 1], 1.0, "the same length, one number a source; got shapes (2,) and (3,)."),
        ([[0, 1]], [1, 1], 1.0, "the same length, one number a source; got shapes (1, 2) and (2,)"),
        ([], [], 1.0, "There are no sources to weigh: discrepancies and sizes are empty."),
        ([0], [1], -1.0, "A trade-off must be 0 or more, or infinity; got -1.0."),
        ([0], [1], math.nan, "A trade-off must be 0 or more, or infinity; got nan."),
        ([0], [1], [1.0, 2.0], "The trade-off must be one number; weight_path takes several."),
    ],
)
def test_bad_input_gets_one_sentence(d, m, lam, message):
    with pytest.raises(ValueError) as error:
        solve_weights(d, m, lam)
    assert message in str(error.value)


@pytest.mark.parametrize("delta", [0, 1, math.nan, -0.5])
def test_delta_is_a_probability(delta):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        theory_trade_off(delta)


@pytest.mark.parametrize("loss_bound", [0, -1, math.inf, math.nan])
def test_loss_bound_is_positive(loss_bound):
    with pytest.raises(ValueError, match="loss_bound must be positive and finite"):
        theory_trade_off(0.05, loss_bound)


CAP, TRUSTED = 2.0, 100.0


@fixed
@given(sources, trade_off, st.data())
def test_names_with_the_same_rows_in_total_count_the_same(pool, lam, data):
    d, claimed = pool
    claimed = np.minimum(claimed, CAP * TRUSTED)  # who claims more splits itself below
    whole = solve_weights(d, counted_sizes(claimed, CAP, TRUSTED), lam)
    chosen = data.draw(st.integers(0, len(d) - 1))
    cuts = data.draw(st.lists(st.floats(0.01, 1.0), min_size=1, max_size=50))
    names = claimed[chosen] * np.array(cuts) / sum(cuts)
    parts = solve_weights(
        np.append(np.delete(d, chosen), np.full(len(names), d[chosen])),
        counted_sizes(np.append(np.delete(claimed, chosen), names), CAP, TRUSTED),
        lam,
    )
    assert parts[len(d) - 1 :].sum() == pytest.approx(whole[chosen], rel=1e-6, abs=1e-12)


@fixed
@given(sources, trade_off)
def test_no_row_counts_more_than_one_of_an_uncapped_source_of_the_same_discrepancy(pool, lam):
    d, claimed = pool
    weights = solve_weights(d, counted_sizes(claimed, CAP, TRUSTED), lam)
    a_row = weights / claimed
    for value in np.unique(d):
        same = d == value
        uncapped = same & (claimed <= CAP * TRUSTED)
        if uncapped.any():
            assert a_row[same].max() <= 1.02 * a_row[uncapped].min()


@fixed
@given(st.lists(st.floats(1.0, 1e9), min_size=1, max_size=20), st.floats(1.0, 1e9))
def test_what_a_giant_gains_by_names_is_a_cap_for_each(claimed, trusted):
    counted = counted_sizes(np.array(claimed), CAP, trusted)
    assert counted.max() <= CAP * trusted
    for i, size in enumerate(counted):
        assert counted_sizes(np.array([claimed[i]]), CAP, trusted)[0] == size
