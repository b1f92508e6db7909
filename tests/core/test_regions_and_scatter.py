from __future__ import annotations

import numpy as np
import pytest

from sourcewise.core.closer_look import (
    LEAST_ROWS,
    RegionLosses,
    region_test,
    scatter_test,
    unchecked_regions,
)


def drawn(rng, rows, regions, rate):
    """Draw losses that are small, or large at a rate of their region, and add them up."""
    where = rng.integers(regions, size=rows)
    wrong = rng.random(rows) < np.broadcast_to(rate, regions)[where]
    losses = np.where(wrong, 1.0, 0.0) + rng.uniform(-0.3, 0.3, rows) * np.where(wrong, -1.0, 1.0)
    return np.abs(losses), where


def added(losses, where, regions):
    return RegionLosses.of(losses, where, (regions,))


def one(found):
    return RegionLosses(found.rows[None], found.total[None], found.squares[None], found.cubes[None])


@pytest.mark.parametrize(("n", "own"), [(12, 15), (60, 8), (8, 60), (30, 30)])
def test_the_curve_is_that_of_permutations(n, own):
    rng = np.random.default_rng(n)
    pooled = drawn(rng, n + own, 1, 0.3)[0]
    sums = rng.permuted(np.tile(pooled, (40_000, 1)), axis=1)[:, :n].sum(axis=1)
    for tail in (0.2, 0.05, 0.01):
        at = np.quantile(sums, 1 - tail)  # only sums over both sides enter, besides this one
        source = RegionLosses(*(np.full((1, 1), v) for v in (n, at, 0.0, 0.0)))
        rest = RegionLosses(
            np.full(1, float(own)),
            np.full(1, pooled.sum() - at),
            np.full(1, (pooled**2).sum()),
            np.full(1, (pooled**3).sum()),
        )
        # Never much too small, and too large only where most rows are the source's.
        found = region_test(source, rest)[1][0]
        assert 0.75 * tail < found < (1.25 if n <= own else 2.5) * tail


@pytest.mark.parametrize(("trusted", "rows"), [(60, 100), (60, 1000), (200, 60), (200, 1000)])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_the_level_holds_where_there_is_no_difference(trusted, rows, rate):
    rng = np.random.default_rng(trusted)
    p = []
    for _ in range(1000):
        own = added(*drawn(rng, trusted, 8, rate), 8)
        p.append(region_test(one(added(*drawn(rng, rows, 8, rate), 8)), own)[1][0])
    for level in (0.05, 0.01, 0.002):
        assert np.mean(np.array(p) < level) < level + 3 * np.sqrt(level / 1000)


def test_a_flipped_tenth_is_found_with_two_hundred_trusted_rows():
    rng = np.random.default_rng(1)
    rates = np.full(10, 0.1)
    rates[3] = 0.9
    found = []
    for _ in range(100):
        own = added(*drawn(rng, 200, 10, 0.1), 10)
        region, p = region_test(one(added(*drawn(rng, 200, 10, rates), 10)), own)
        found.append(p[0] < 0.01 and region[0] == 3)
    assert np.mean(found) > 0.95


def test_regions_without_rows_are_no_evidence():
    few, many = np.ones(LEAST_ROWS - 1), np.zeros(50)
    source = one(added(few, np.zeros(len(few), dtype=int), 1))
    assert region_test(source, added(many, np.zeros(50, dtype=int), 1))[1].tolist() == [1.0]
    same = np.full(50, 0.3)
    source = one(added(same, np.zeros(50, dtype=int), 1))
    assert region_test(source, added(same, np.zeros(50, dtype=int), 1))[1].tolist() == [1.0]


@pytest.mark.parametrize("draw", [np.random.Generator.normal, np.random.Generator.standard_cauchy])
def test_the_same_scatter_is_none(draw):
    rng = np.random.default_rng(0)
    p = [scatter_test(draw(rng, size=300), draw(rng, size=100))[1] for _ in range(400)]
    assert np.mean(np.array(p) < 0.05) < 0.05


@pytest.mark.parametrize("rows", [100, 1000])
def test_wider_scatter_is_found(rows):
    # Noise of 250,000 on labels that a model of 145,000 misses.
    rng = np.random.default_rng(0)
    for _ in range(50):
        own, noise = rng.normal(size=200), rng.normal(size=rows) * 250 / 145
        ratio, p = scatter_test(rng.normal(size=rows) + noise, own)
        assert rows == 100 or p < 0.001
        assert ratio == pytest.approx(2.0, rel=0.4)


def test_a_few_far_ones_do_not_decide():
    rng = np.random.default_rng(0)
    rest = rng.normal(size=300)
    rest[:5] = 1e6
    assert scatter_test(rest, rng.normal(size=200))[1] > 0.05


@pytest.mark.parametrize("own", [np.zeros(50), np.arange(3.0)])
def test_nothing_is_said_where_nothing_is_known(own):
    assert scatter_test(np.arange(50.0), own) == (1.0, 1.0)


def test_regions_without_trusted_rows_are_unchecked():
    shares = np.array([0.5, 0.3, 0.2])
    assert unchecked_regions(shares, np.array([60, 38, 2]), 5, 0.001).tolist() == [2]
    # So few may be luck, and in a large region five are enough to be named otherwise.
    assert unchecked_regions(np.array([0.6, 0.37, 0.03]), np.array([60, 38, 2]), 5, 0.001).size == 0
