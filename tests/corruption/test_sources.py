import numpy as np
import pytest

from sourcewise.corruption import Corrupted, corrupt_sources, flip_labels
from sourcewise.corruption.sources import IMAGE_KINDS, KINDS

NAMES = ["gold", "a", "b", "c", "d"]
each_kind = pytest.mark.parametrize("kind", list(KINDS))


def pool(kind="", n=20):
    rng = np.random.default_rng(0)
    sources = np.tile(NAMES, n)  # rows of all sources interleaved
    if kind in IMAGE_KINDS:
        X = rng.integers(0, 256, (len(sources), 5, 7, 3), dtype=np.uint8)
    else:
        X = rng.normal(size=(len(sources), 4))
    return X, rng.integers(0, 2, len(sources)), sources


@each_kind
def test_no_sources_no_change(kind):
    X, y, sources = pool(kind)
    done = corrupt_sources(X, y, sources, 0, kind, protect="gold", random_state=0)
    np.testing.assert_array_equal(done.X, X)
    np.testing.assert_array_equal(done.y, y)
    assert not done.mask.any() and done.corrupted == []


@each_kind
def test_chosen_sources_and_no_other(kind):
    X, y, sources = pool(kind)
    done = corrupt_sources(X, y, sources, 2, kind, 0.5, protect="gold", random_state=0)
    assert len(done.corrupted) == 2 and "gold" not in done.corrupted
    inside = np.isin(sources, done.corrupted)
    assert not done.mask[~inside].any()
    assert all(done.mask[sources == name].sum() == 10 for name in done.corrupted)
    np.testing.assert_array_equal(done.X[~done.mask], X[~done.mask])
    np.testing.assert_array_equal(done.y[~done.mask], y[~done.mask])


@each_kind
def test_same_seed_same_rows(kind):
    X, y, sources = pool(kind)
    one, two = (
        corrupt_sources(X, y, sources, 3, kind, 0.3, protect="gold", random_state=4)
        for _ in range(2)
    )
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_seed_touches_other_rows_of_a_source():
    X, y, sources = pool()
    one, two = (
        corrupt_sources(X, y, sources, 5, "flip_labels", 0.5, random_state=seed).mask
        for seed in (0, 1)
    )
    assert (one != two).any()
    by_source = [tuple(one[sources == name]) for name in NAMES]
    assert len(set(by_source)) > 1


def test_all_sources_share_one_feature_permutation():
    X, y, sources = pool()
    done = corrupt_sources(X, y, sources, 4, "shuffle_features", protect="gold", random_state=1)
    row = np.flatnonzero(done.mask)[0]
    order = [int(np.flatnonzero(X[row] == value)[0]) for value in done.X[row]]
    np.testing.assert_array_equal(done.X[done.mask], X[done.mask][:, order])
    told = corrupt_sources(X, y, sources, 4, "shuffle_features", permutation=[3, 2, 1, 0])
    np.testing.assert_array_equal(told.X[told.mask], X[told.mask][:, ::-1])


def test_fewer_sources_are_among_more():
    X, y, sources = pool()
    chosen = [
        set(corrupt_sources(X, y, sources, n, "flip_labels", random_state=3).corrupted)
        for n in range(6)
    ]
    assert all(a < b for a, b in zip(chosen, chosen[1:], strict=False))


def test_a_source_of_one_class_is_flipped_and_biased_like_the_others():
    X, y, sources = pool()
    y[sources == "a"] = 0
    flipped = corrupt_sources(X, y, sources, 5, "flip_labels")
    np.testing.assert_array_equal(flipped.y, 1 - y)
    assert (corrupt_sources(X, y, sources, 5, "label_bias").y == 1).all()
    assert (corrupt_sources(X, y, sources, 5, "label_bias", label=0).y == 0).all()


def test_functions_of_ones_own():
    X, y, sources = pool()

    def blank(X, y, *, p=1.0, random_state=None):
        return Corrupted(np.zeros_like(X), np.array(y), np.ones(len(y), dtype=bool))

    done = corrupt_sources(X, y, sources, 1, blank, random_state=0)
    assert (done.X[done.mask] == 0).all() and done.mask.sum() == 20
    same = corrupt_sources(X, y, sources, 2, flip_labels, random_state=0)
    named = corrupt_sources(X, y, sources, 2, "flip_labels", random_state=0)
    np.testing.assert_array_equal(same.y, named.y)


def test_whole_numbers_become_fractions_where_needed():
    X, y, sources = pool()
    whole = np.round(10 * X).astype(int)
    done = corrupt_sources(whole, y, sources, 2, "feature_noise", random_state=0)
    assert done.X.dtype == np.float64
    np.testing.assert_array_equal(done.X[~done.mask], whole[~done.mask])


def test_wrong_requests():
    X, y, sources = pool()
    with pytest.raises(ValueError, match="n must be between 0 and 3, the unprotected sources"):
        corrupt_sources(X, y, sources, 4, "flip_labels", protect=["gold", "a"])
    with pytest.raises(ValueError, match="There is no corruption 'blurr'; choose among"):
        corrupt_sources(X, y, sources, 1, "blurr")
    with pytest.raises(ValueError, match="The reference 'silver' is not among the sources"):
        corrupt_sources(X, y, sources, 1, "flip_labels", protect="silver")
