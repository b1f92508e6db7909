"""Sites of few rows, under many names: weights go by rows, and nobody is put out for them."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.false_copies import COPY, TINY, TWIN, Federation
from benchmarks.liars import ATTACKS, Draw, run
from made_up_sites import classifier, federated, rows, sites_of

from sourcewise.engines.flower import LocalCarrier, Policy


@pytest.mark.parametrize(("names", "honest"), [(7, 3), (30, 9)])
def test_sites_of_six_rows_move_nothing(names, honest):
    (attack,) = (a for a in ATTACKS if (a.names, a.rows) == (names, 6) and a.seen)
    pairs = []
    for seed in range(100, 103):
        draw = Draw.of(seed)
        pairs.append([run(draw, None, honest), run(draw, attack, honest)])
    without, beside = np.mean([[(o.error, o.honest) for o in pair] for pair in pairs], axis=0)
    assert beside[0] <= without[0] + 0.01
    assert beside[1] >= 0.8 * without[1]


def test_no_row_of_a_tiny_site_counts_more_than_one_of_an_honest_site_as_near():
    X, y, names = rows(n_sites=4, m=60, bad=())
    names = names.astype("U20")
    last = np.flatnonzero(names == "site-3")
    names[last] = [f"tiny-{k // 6}" for k in range(len(last))]
    sites = sites_of(X, y, names, Policy(least_rows=1))
    found, sources = federated((X, y, names), classifier(), LocalCarrier(sites))
    assert not sources.facts.left_out
    a_row = found.source_weights_ / found.source_sizes_
    honest = found.sources_ == "site-1"
    farther = found.discrepancies_ >= found.discrepancies_[honest]
    assert a_row[farther].max() <= 1.02 * a_row[honest]
    tiny = np.char.startswith(found.sources_.astype(str), "tiny")
    np.testing.assert_allclose(found.source_sizes_, np.where(tiny, 6.0, 60.0))


@pytest.mark.parametrize("seed", range(4))
def test_a_federation_weighs_rows_and_not_names(seed):
    rng = np.random.default_rng(seed)
    pool = X, y, names = rows(n_sites=3, m=int(rng.integers(6, 100)), seed=seed, bad=())
    whole, _ = federated(pool, classifier(trade_off=np.inf), guards=False)
    parts = names.astype("U20")
    mine = np.flatnonzero(names == "site-1")
    parts[mine] = [f"part {k}" for k in rng.integers(rng.integers(2, 40), size=len(mine))]
    carrier = LocalCarrier(sites_of(X, y, parts, Policy(least_rows=1)))
    model = classifier(trade_off=np.inf)
    found, _ = federated((X, y, parts), model, carrier, guards=False)
    split = np.char.startswith(found.sources_.astype(str), "part")
    before = whole.source_weights_[whole.sources_ == "site-1"].sum()
    assert found.source_weights_[split].sum() <= 1.02 * before


# The first four lost an honest site while sizes went into the test as capped.
@pytest.mark.parametrize("seed", [5015, 5029, 5063, 5075, 5006, 5007, 5008])
def test_an_honest_site_is_no_copy_of_another_and_a_real_copy_is_found(seed):
    federation = Federation.of(seed)
    copies = [name for name, why in federation.left_out().items() if why.startswith(COPY)]
    assert not [n for n in copies if not n.startswith((TINY, TWIN, "site-0"))]
    # 25 rows of two columns of yes or no are equal by chance.
    assert len({"site-0", TWIN} & set(copies)) == (seed != 5006)


def test_rows_that_are_equal_by_chance_make_no_copies():
    X, y, names = rows(n_sites=12, m=20, d=1, bad=())
    X = (X > 0).astype(float)
    y = np.where(np.arange(len(y)) % 4 == 0, 1 - X[:, 0], X[:, 0]).astype(int)
    policy = Policy(least_rows=1)
    _, sources = federated((X, y, names), classifier(), LocalCarrier(sites_of(X, y, names, policy)))
    assert not sources.facts.left_out


def test_wide_sites_are_no_copies_of_one_another():
    pool = rows(n_sites=5, m=100, d=250, n_ref=30, bad=())
    _, sources = federated(pool, classifier())
    assert not [why for why in sources.facts.left_out.values() if why.startswith(COPY)]
