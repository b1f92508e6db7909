"""Three numbers a column stand for the weights of every source in it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sourcewise.core import source_weights
from sourcewise.core.source_weights import (
    CutoffWeights,
    GivenWeights,
    cutoff_and_scale,
    rows_in_use,
    share_gaps,
    source_blocks,
)
from sourcewise.core.weights import WeightProblem, theory_trade_off

TRADE_OFFS = [0.0, 1e-9, *(theory_trade_off() * 2.0 ** np.arange(-10, 10)), 1e4, np.inf]

discrepancies = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-9, 1.0), st.sampled_from([1e-6, 0.1, 1.0])),
    min_size=1,
    max_size=20,
)
sizes = st.floats(1.0, 1e5)


def problem_with_reference(of_sources, sizes, reference_size):
    """Put the reference, at distance 0, before the sources."""
    return WeightProblem.from_sources([0.0, *of_sources], [reference_size, *sizes])


def by_cutoffs(problems, trade_offs):
    """Weights of the sources behind the reference, a column a problem and trade-off."""
    numbers = [(s, *cutoff_and_scale(p, t)) for s, p in enumerate(problems) for t in trade_offs]
    sets, cutoffs, scales = (np.array(column) for column in zip(*numbers, strict=True))
    return CutoffWeights(
        np.stack([p.discrepancies[1:] for p in problems]),
        problems[0].sizes[1:],
        sets,
        cutoffs,
        scales,
    )


@given(discrepancies, st.data(), st.floats(1.0, 1e4))
def test_columns_are_the_weights_of_their_trade_offs(of_sources, data, reference_size):
    counts = data.draw(st.lists(sizes, min_size=len(of_sources), max_size=len(of_sources)))
    problem = problem_with_reference(of_sources, counts, reference_size)
    weights = by_cutoffs([problem], TRADE_OFFS)
    found = weights.of(slice(None))
    for q, trade_off in enumerate(TRADE_OFFS):
        expected = problem.weights(trade_off)
        np.testing.assert_allclose(found[:, q], expected[1:], rtol=1e-7, atol=1e-10)
        # The reference's own follows from the same numbers.
        cutoff = 1.0 if np.isinf(weights.cutoffs[q]) else weights.cutoffs[q]
        own = weights.scales[q] * reference_size * cutoff
        assert own == pytest.approx(expected[0], rel=1e-7, abs=1e-10)


@given(discrepancies)
@example([0.0, 0.0, 1e-6])
def test_without_a_trade_off_only_what_is_at_distance_zero_counts(of_sources):
    problem = problem_with_reference(of_sources, np.full(len(of_sources), 7.0), 3.0)
    found = by_cutoffs([problem], [0.0]).of(slice(None))[:, 0]
    np.testing.assert_array_equal(found > 0, np.array(of_sources) == 0.0)
    n_copies = of_sources.count(0.0)
    np.testing.assert_allclose(found[found > 0], 7.0 / (3.0 + 7.0 * n_copies), rtol=1e-12)


def made_up(n_sources=11, seed=0):
    """Two sets of discrepancies under all trade-offs."""
    rng = np.random.default_rng(seed)
    m = rng.integers(5, 500, n_sources).astype(float)
    d = np.where(rng.random((2, n_sources)) < 0.2, 0.0, rng.random((2, n_sources)))
    problems = [problem_with_reference(of_set, m, 40.0) for of_set in d]
    return by_cutoffs(problems, TRADE_OFFS)


@pytest.fixture(params=["cut-off", "given"])
def weights(request):
    found = made_up()
    return found if request.param == "cut-off" else GivenWeights(found.of(slice(None)))


def test_a_choice_of_columns_and_sources_is_that_part_of_the_whole(weights):
    whole = weights.of(slice(None))
    assert whole.shape == (weights.n_sources, weights.n_columns) == (11, 2 * len(TRADE_OFFS))
    sources, columns = np.array([7, 0, 3]), np.array([30, 2, 2, 47])
    np.testing.assert_array_equal(weights.of(sources), whole[sources])
    np.testing.assert_array_equal(weights.of(sources, columns), whole[sources][:, columns])
    np.testing.assert_array_equal(weights.of(slice(2, 5), columns), whole[2:5, columns])
    some = weights.in_columns(columns)
    assert some.n_columns == 4
    np.testing.assert_array_equal(some.of(slice(None)), whole[:, columns])
    mask = np.arange(weights.n_columns) % 3 == 0
    np.testing.assert_array_equal(weights.in_columns(mask).of(slice(None)), whole[:, mask])
    few = weights.of_sources(sources)
    assert few.n_sources == 3
    np.testing.assert_array_equal(few.of(slice(None)), whole[sources])
    np.testing.assert_array_equal(
        weights.of_sources(slice(4, None)).in_columns(columns).of([1, 0]), whole[[5, 4]][:, columns]
    )


def test_factors_go_with_their_columns(weights):
    factors = np.random.default_rng(1).random(weights.n_columns)
    scaled = weights.scaled(factors)
    np.testing.assert_allclose(scaled.of(slice(None)), weights.of(slice(None)) * factors)
    np.testing.assert_allclose(
        weights.in_columns([5, 20]).scaled(np.array([2.0, 3.0])).of(slice(None)),
        weights.of(slice(None), [5, 20]) * [2.0, 3.0],
    )


def test_keys_are_equal_exactly_where_the_columns_are(weights):
    twice = weights.in_columns(np.tile(np.arange(len(TRADE_OFFS)), 2))  # of one set
    keys, columns = twice.keys(), twice.of(slice(None)).T
    assert len(keys) == twice.n_columns
    same_keys = (keys[:, None] == keys).all(axis=2)
    np.testing.assert_array_equal(same_keys, (columns[:, None] == columns).all(axis=2))
    assert same_keys[0, 1]  # trade-offs that leave out all but what is at distance zero
    assert not same_keys[0, -1]
    doubled = twice.scaled(np.repeat([1.0, 2.0], len(TRADE_OFFS)))
    assert not (doubled.keys()[0] == doubled.keys()[len(TRADE_OFFS)]).all()


def test_rows_count_alike_where_weights_go_by_rows():
    counts = np.array([10, 20, 20, 5])
    given_weights = GivenWeights(np.outer([10.0, 20.0, 10.0, 2.5], [1.0, 3.0]))
    assert given_weights.alike(counts).tolist() == [True, False, True]
    everywhere = CutoffWeights(
        np.random.default_rng(0).random((1, 4)),
        np.array([10.0, 20.0, 15.0, 5.0]),
        np.zeros(2, dtype=int),
        np.array([np.inf, np.inf]),
        np.ones(2),
    )
    assert everywhere.alike(counts).tolist() == [True, False, False]
    some = replace(everywhere, cutoffs=np.array([np.inf, 0.5]))
    assert not some.alike(counts).any()


@pytest.mark.parametrize("entries", [1, 150, 1_000_000])
def test_blocks_cover_every_source_once(entries, monkeypatch):
    monkeypatch.setattr(source_weights, "BLOCK_ENTRIES", entries)
    blocks = source_blocks(11, 48)
    assert np.concatenate([np.arange(11)[some] for some in blocks]).tolist() == list(range(11))
    assert len(blocks) == {1: 11, 150: 4, 1_000_000: 1}[entries]
    assert not source_blocks(0, 48)


@pytest.mark.parametrize("entries", [1, 150, 1_000_000])
def test_rows_in_use_are_those_of_sources_that_count(weights, entries, monkeypatch):
    monkeypatch.setattr(source_weights, "BLOCK_ENTRIES", entries)
    counts = np.random.default_rng(2).integers(1, 100, 11)
    table = weights.of(slice(None))
    expected = [counts[table[:, q] > 0].sum() for q in range(weights.n_columns)]
    np.testing.assert_array_equal(rows_in_use(weights, counts), expected)
    assert min(expected) < max(expected)


@pytest.mark.parametrize("entries", [1, 150, 1_000_000])
def test_gaps_are_distances_of_shares(weights, entries, monkeypatch):
    monkeypatch.setattr(source_weights, "BLOCK_ENTRIES", entries)
    rng = np.random.default_rng(3)
    of_reference = rng.random(weights.n_columns)
    scaled = weights.scaled(100 * rng.random(weights.n_columns) + 1.0)
    first, second = np.array([5, 0, 23]), np.arange(weights.n_columns)[::-1]
    found = share_gaps(scaled, of_reference, first, second)
    shares = np.vstack([of_reference, scaled.of(slice(None))])
    shares /= shares.sum(axis=0)
    expected = np.abs(shares[:, first, None] - shares[:, None, second]).sum(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert expected.max() > 0.5
