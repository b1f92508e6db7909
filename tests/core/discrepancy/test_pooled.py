"""The second look: sources judged by models of the reference and of other sources."""

import numpy as np
import pytest
from made_up_sources import make

from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy.evidence import (
    compare,
    reference_evidence,
    source_evidence,
)
from sourcewise.core.discrepancy.judgement import (
    FARNESS,
    NEAREST,
    SHOWN,
    Findings,
    judge,
    judged_discrepancies,
)
from sourcewise.core.discrepancy.pooled import TRADE_OFF, second_look
from sourcewise.core.discrepancy.pull import Pulls, find_pulls
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.folds import named_seed
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss
from sourcewise.core.weights import solve_weights

FAMILY = LogisticFamily(2, np.array([1.0]), tol=1e-10)
dealt = np.array([0, 1, 2, 0, 1])


def look(data, groups=dealt, n_repeats=1, seed=0, n_folds=3):
    rows = data.rows(0)
    trusted = data.X[rows], data.y[rows]
    folds = ReferenceFolds.draw(trusted[1], len(trusted[1]), n_folds, n_repeats, seed)
    asked = range(1, data.n_sources)
    shares = data.row_shares[rows]
    reference = reference_evidence(*trusted, shares, folds, FAMILY, brier_loss, 1.0)
    seeds = [named_seed(seed, i) for i in asked]
    evidence = source_evidence(
        data, asked, seeds, reference, trusted, n_folds, FAMILY, brier_loss, 1.0
    )
    sides = [compare(reference, evidence, s) for s in range(1 + len(folds.held_out))]
    first = np.stack([side.values for side in sides[1:]])
    found = second_look(data, asked, groups, sides, first, folds, FAMILY, brier_loss, 1.0)
    return found, sides, first, folds


def findings_of(found, sides, pulls=None, distances=None):
    nothing = np.zeros((len(sides), len(sides[0].a)))
    pulls = Pulls(nothing, nothing) if pulls is None else pulls
    return Findings(tuple(sides), found, pulls, nothing[0] if distances is None else distances)


def naive(data, folds, first, held_out=None):
    """Differences by explicit loops, every model fitted by itself; one repeat."""
    trusted = data.rows(0)
    fold = folds.folds[0]
    outer = np.zeros(len(fold), bool) if held_out is None else fold == held_out
    a, reference_loss = np.zeros(data.n_sources - 1), 0.0
    for g in range(dealt.max() + 1):
        members = np.flatnonzero(dealt == g)
        used = np.append(np.flatnonzero(dealt != g) + 1, 0)
        own, theirs = np.zeros(len(fold)), np.zeros(len(members))
        for f in range(folds.n_folds):
            if f == held_out:
                continue
            kept = ~outer & (fold != f)
            sizes = data.sizes
            sizes[0] = kept.sum()
            values = first[f if held_out is None else held_out]
            values = np.append(values[dealt != g], 0.0)
            alpha = solve_weights(values, sizes[used], TRADE_OFF)
            total = 1.0 / np.sum(alpha**2 / sizes[used])
            weight = np.zeros(len(data.y))
            for i, share in zip(used, alpha, strict=True):
                rows = np.arange(data.starts[i], data.starts[i + 1])
                rows = rows[kept] if i == 0 else rows
                weight[rows] = total * share / len(rows)
            model = FAMILY.fit(data.X, data.y, weight[:, None], np.array([1.0]))
            loss = brier_loss(FAMILY.predict(model, data.X), data.y)[0]
            inside = (fold == f) & ~outer
            own[inside] = loss[trusted][inside]
            mass = inside.sum() / (~outer).sum()
            theirs += mass * np.array([loss[data.rows(i + 1)].mean() for i in members])
        a[members] = theirs - own[~outer].mean()
        reference_loss += own[~outer].mean() / (dealt.max() + 1)
    return a, reference_loss


@pytest.mark.parametrize("chosen, held_out", [(0, None), (2, 1)])
def test_equals_the_definition_computed_one_model_at_a_time(chosen, held_out):
    data = make([24, 40, 40, 60, 40, 30], flipped=(2,))
    found, sides, first, folds = look(data)
    a, loss = naive(data, folds, first, held_out)
    assert found.pooled[chosen] == (loss < sides[chosen].reference_loss)
    expected = a if found.pooled[chosen] else sides[chosen].a
    np.testing.assert_allclose(found.a[chosen], expected, atol=1e-5)


def test_without_a_difference_the_mean_is_zero():
    differences = []
    for seed in range(40):
        data = make([30, 40, 40, 40, 40, 40], seed=seed)
        differences.append(look(data, seed=seed)[0].a[0])
    # The sources of one draw share a reference, so each draw counts as one observation.
    means = np.mean(differences, axis=1)
    assert abs(means.mean()) < 3.0 * means.std(ddof=1) / np.sqrt(len(means))


def test_a_weak_reference_is_helped_by_its_allies():
    better = []
    for seed in range(6):
        data = make([24, 80, 80, 80, 80, 80], d=12, seed=seed, flipped=(2, 4), strength=1.5)
        found, sides, _, _ = look(data, seed=seed)
        bad = np.array([False, True, False, True, False])
        gaps = [values[bad].min() - values[~bad].max() for values in (sides[0].a, found.a[0])]
        better.append(gaps[1] > gaps[0])
    assert np.mean(better) > 0.5


def test_misled_models_are_not_heard():
    # All sources are flipped: whatever learns from them does worse on the reference.
    data = make([60, 50, 50, 50, 50, 50], flipped=(1, 2, 3, 4, 5))
    found, sides, _, _ = look(data)
    assert not found.pooled[0]
    np.testing.assert_array_equal(found.a[0], sides[0].a)
    values = judge(findings_of(found, sides))
    assert (values > 0.2 * SHOWN).all()


def test_only_the_reference_is_at_distance_zero():
    data = make([24, 40, 40, 60, 40, 30])
    found, sides, _, folds = look(data)
    pulls = find_pulls(data, range(1, 6), folds, FAMILY, brier_loss, 1.0)
    for s in range(len(sides)):
        assert (judge(findings_of(found, sides, pulls), s) >= NEAREST).all()


def test_pulls_add_to_what_models_show():
    data = make([24, 40, 40, 60, 40, 30], flipped=(2,))
    found, sides, _, _ = look(data)
    silent = findings_of(found, sides)
    nothing = silent.pulls.values
    pulled = findings_of(found, sides, Pulls(nothing + 0.3, nothing + 0.1))
    for s in range(len(sides)):
        shown = judge(silent, s)
        added = judge(pulled, s) - shown
        np.testing.assert_allclose(added, np.where(shown > NEAREST, 0.4, 0.4 - NEAREST))
    result = judged_discrepancies(pulled, np.ones(5))
    assert result.witnesses[0].hypothesis == "joint model"
    assert (result.standard_errors >= 0.1).all()


def test_far_features_count_as_far_as_a_source_pulls_the_wrong_way():
    data = make([24, 40, 40, 60, 40, 30])
    found, sides, _, _ = look(data)
    pull = np.tile([0.0, 0.0, -0.04, 0.0, 0.02], (len(sides), 1))
    pulls = Pulls(pull, np.full_like(pull, 0.02))
    distances = np.array([0.0, 0.0, 4.0, 4.0, 4.0])
    near, far = (findings_of(found, sides, pulls, d) for d in (0.0 * distances, distances))
    # Cumulative normal probabilities at -2, 0 and 1.
    expected = 4.0 * FARNESS * np.array([0.0, 0.0, 0.0228, 0.5, 0.8413])
    for s in range(len(sides)):
        np.testing.assert_allclose(judge(far, s) - judge(near, s), expected, atol=1e-4)
    hypotheses = [w.hypothesis for w in judged_discrepancies(far, np.ones(5)).witnesses]
    assert hypotheses[3:] == ["features"] * 2
    assert "features" not in hypotheses[:3]
    # However far: not beyond the largest loss, and no farther than it is likely to do harm.
    remote = findings_of(found, sides, pulls, 1e6 * distances)
    expected = np.array([0.0, 0.0, 0.0228, 0.5, 0.8413])
    np.testing.assert_allclose(judge(remote) - judge(near), expected, atol=1e-4)


def test_a_source_whose_own_model_fails_is_found_where_ours_is_content():
    # All labels are 1, and the reference's are mostly 1: its model loses little on such a source.
    rng = np.random.default_rng(0)
    counts = [80, 100, 100, 100, 100, 100]
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, 3)), np.ones(n)])
    y = (X[:, 0] + 1.0 + rng.logistic(size=n) > 0).astype(int)
    source = np.repeat(np.arange(6), counts)
    y[source == 3] = 1
    data = group_rows(X, y, source, reference=0, n_classes=2)[0]
    found, sides, _, _ = look(data)
    result = judged_discrepancies(findings_of(found, sides), np.ones(5))
    assert np.argmax(result.values) == 2
    assert result.witnesses[2].hypothesis == "source model"
    assert result.standard_errors[2] > 0
