"""What the second look must not take for a fault."""

from __future__ import annotations

import numpy as np

from sourcewise import SourceWeightedClassifier

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
