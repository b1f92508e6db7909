"""What the second look must not take for a fault."""

from __future__ import annotations

import numpy as np

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.estimators.closer_look import look_closer

N_SEEDS = 8


def drawn(rng, direction, n, off=0.0, spread=1.0):
    """Draw rows around ``off`` along the direction that decides labels; elsewhere all are alike."""
    X = rng.normal(size=(n, len(direction)))
    X += np.outer(off + (spread - 1.0) * (X @ direction), direction)
    y = rng.random(n) < 1.0 / (1.0 + np.exp(-4.0 * X @ direction))
    return X, y.astype(int)


def test_sources_that_show_a_narrow_part_of_the_features_keep_their_weight():
    # Their labels go with the reference's model little more than the shuffled ones beside them, but
    # no less than can be expected there.
    narrow, shuffled = [], []
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        direction = rng.normal(size=8)
        direction /= np.linalg.norm(direction)
        parts = [drawn(rng, direction, 60)]
        parts += [drawn(rng, direction, 100, off, spread=0.3) for off in (-1.0, 1.0, -1.0, 1.0)]
        for _ in range(4):
            X, y = drawn(rng, direction, 100)
            parts.append((X, rng.permutation(y)))
        sources = np.repeat(np.arange(9), [len(y) for _, y in parts])
        model = SourceWeightedClassifier(reference=0, random_state=0)
        model.fit(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)), sources=sources)
        narrow.append(model.source_weights_[1:5].sum())
        shuffled.append(model.source_weights_[5:].sum())
    assert np.mean(narrow) > 0.35
    assert np.mean(narrow) > 4.0 * np.mean(shuffled)


def test_a_region_that_is_labelled_the_other_way_round_is_found_and_no_other():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    far = rng.random(1500) < 0.08
    X[far, 3] += 12.0
    y = (X[:, 0] > 0).astype(int)
    sources = np.repeat([0, 1, 2], 500)
    y[(sources == 2) & far] ^= 1
    pool = SourceWeightedClassifier(reference=0, random_state=0)._prepare(X, y, sources)
    look = look_closer(pool, 1.0, [1, 2])
    assert look.regions and {one.source for one in look.regions} == {2}
    for one in look.regions:
        assert (3, True) in one.columns
        assert one.here > 0.8 and one.own < 0.2 and one.elsewhere < 0.2
    assert not look.scattered and not look.unchecked
    rows = sum(rows for rows, _, _ in look.power)
    assert rows == 500  # every trusted row lies in one region
    assert look_closer(pool, 1.0, [1, 2], strict=True).power != look.power


def test_of_numbers_wider_scatter_is_found_and_few_trusted_rows_make_no_region():
    rng = np.random.default_rng(0)
    X, sources = rng.normal(size=(420, 2)), np.repeat([0, 1, 2], [20, 200, 200])
    y = X[:, 0] + rng.normal(size=420) * np.where(sources == 2, 3.0, 0.3)
    pool = SourceWeightedRegressor(reference=0, cv=3, random_state=0)._prepare(X, y, sources)
    look = look_closer(pool, 1.0, [1, 2])
    assert [i for i, _ in look.scattered] == [2] and look.scattered[0][1] > 3.0
    assert not (look.regions or look.power or look.unchecked)
    assert not look_closer(pool, 1.0, [1]).scattered  # of others it is no news
