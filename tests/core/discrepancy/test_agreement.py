"""How much of what the reference's model knows holds for a source's labels."""

from typing import NamedTuple

import numpy as np
import pytest
from made_up_sources import draw_folds, fit_reference, make
from sklearn.linear_model import LogisticRegression

from sourcewise.core.choices import DEFAULT
from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy.agreement import (
    agreement_known,
    agreement_sent,
    judge_agreement,
    measure_agreement,
)
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import BoundedLoss, brier_loss, spread
from sourcewise.core.ridge import RidgeFamily

FAMILY = LogisticFamily(2, np.array([1.0]), penalise_constant=True, tol=1e-10)


class Found(NamedTuple):
    """What sources answer, what it is compared with, and what came of it."""

    answer: dict
    own: dict
    missing: np.ndarray
    missing_errors: np.ndarray


def agreement_with(data, folds, family=FAMILY):
    scale = 1.0 if data.n_classes else spread(data.y[data.rows(data.reference)])
    models = fit_reference(data, folds, family, BoundedLoss(data.n_classes, scale))
    sent = agreement_sent(models, DEFAULT)
    untrusted = data.select(data.untrusted.tolist())
    answer = measure_agreement(untrusted, family.predict(models.models, untrusted.X), **sent)
    own = agreement_known(models, sent, DEFAULT)
    return Found(answer, own, **judge_agreement(answer, **own))


def agreement_of(data, *, n_folds=3, n_repeats=1, seed=0, family=FAMILY):
    folds = draw_folds(data, n_folds, n_repeats, seed)
    return agreement_with(data, folds, family), folds


def judged(values, expected, errors, own, own_errors):
    """Judge an answer of sources of which just so much agreement is expected.

    The spread of predictions is what the expectation goes by.
    """
    apart = np.divide(expected, own[:, None], out=np.ones_like(expected), where=own[:, None] > 0)
    answer = {"agreements": values, "prediction_variances": apart**2, "agreement_errors": errors}
    found = judge_agreement(answer, own, own_errors, np.ones_like(own), DEFAULT)
    return Found(answer, {}, **found)


def covariance(p, y):
    """Of both classes' probabilities and indicators; they are mirror images."""
    return 2.0 * np.cov(p, y)[0, 1]


@pytest.mark.parametrize("chosen, without", [(0, None), (2, 1)])
def test_equals_covariances_computed_one_model_at_a_time(chosen, without):
    data = make([31, 10, 40, 90], flipped=(2,))
    found, folds = agreement_of(data)
    fold, trusted = folds.folds[0], data.rows(0)
    X, y = data.X[trusted], data.y[trusted]
    outer = np.zeros(len(y), bool) if without is None else fold == without
    theirs, by_row = np.zeros(3), np.zeros(len(y))
    for f in range(3):
        if f == without:
            continue
        kept, inside = ~outer & (fold != f), ~outer & (fold == f)
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
        model.fit(X[kept], y[kept])
        p = model.predict_proba(X)[:, 1]
        by_row[inside] = 2.0 * ((p - p[kept].mean()) * (y - y[kept].mean()))[inside]
        for i in (1, 2, 3):
            rows = data.rows(i)
            own = covariance(model.predict_proba(data.X[rows])[:, 1], data.y[rows])
            theirs[i - 1] += own * inside.sum() / (~outer).sum()
    np.testing.assert_allclose(found.answer["agreements"][chosen], theirs, atol=1e-5)
    np.testing.assert_allclose(found.own["values"][chosen], by_row[~outer].mean(), atol=1e-5)
    expected = by_row[~outer].std(ddof=1) / np.sqrt((~outer).sum())
    np.testing.assert_allclose(found.own["errors"][chosen], expected, atol=1e-5)


def test_it_is_what_shuffling_the_labels_would_cost():
    data = make([40, 30])
    found, folds = agreement_of(data)
    rows, trusted = data.rows(1), data.rows(0)
    models = fit_reference(data, folds, FAMILY, brier_loss).models
    average = folds.average(data.row_shares[trusted])[0]
    p = FAMILY.predict(models, data.X[rows])
    y = data.y[rows]
    # Over all pairs of a row with another row's label: the mean of all shuffles.
    pairs = [average @ brier_loss(p, np.roll(y, k)).mean(axis=1) for k in range(1, len(y))]
    gain = np.mean(pairs) - average @ brier_loss(p, y).mean(axis=1)
    np.testing.assert_allclose(found.answer["agreements"][0, 0], gain, atol=1e-10)


def test_moderate_differences_in_label_frequencies_hardly_matter():
    # Half of one class is left out of the last source: its mean loss changes, its agreement hardly.
    lacks = []
    for seed in range(20):
        data = make([200, 400, 400], seed=seed, strength=4.0)
        keep = np.ones(len(data.y), bool)
        last = np.arange(data.starts[2], data.starts[3])
        keep[last[data.y[last] == 1][::2]] = False
        uneven, _ = group_rows(
            data.X[keep], data.y[keep], data.source_of_row[keep], reference=0, n_classes=2
        )
        lacks.append(agreement_of(uneven, seed=seed)[0].missing[0])
    even, uneven = np.mean(lacks, axis=0)
    assert uneven < even + 0.1


@pytest.mark.parametrize("noise, at_most", [(0.05, 0.05), (0.5, 0.15)])
def test_rows_that_are_hardly_told_apart_need_not_agree_as_much(noise, at_most):
    # The last source shows a tenth of the range only, and its labels are right: with noise as much
    # smaller they are correlated as in the reference, with the same noise less so.
    lacks, ratios = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=(900, 4)), np.ones(900)])
        source = np.repeat([0, 1, 2], [100, 400, 400])
        X[source == 2, :4] *= 0.1
        y = (X[:, 0] + np.where(source == 2, noise, 0.5) * rng.logistic(size=900) > 0).astype(int)
        data, _ = group_rows(X, y, source, reference=0, n_classes=2)
        found, _ = agreement_of(data, seed=seed)
        lacks.append(found.missing[0])
        ratios.append(found.answer["agreements"][0] / found.own["values"][0])
    wide, narrow = np.mean(lacks, axis=0)
    assert narrow < wide + at_most
    assert np.mean(ratios, axis=0)[1] < 0.2  # as low as that of labels that are half shuffled


def test_a_source_is_not_expected_to_agree_more_than_the_reference():
    data = make([60, 80])
    X = data.X.copy()
    X[data.rows(1), :-1] *= 10.0
    found, _ = agreement_of(data.with_features(X))
    assert (found.answer["prediction_variances"][:, 0] > found.own["variances"]).all()
    # What is missing is missing of the reference's own agreement, not of more.
    own, theirs = found.own["values"], found.answer["agreements"][:, 0]
    np.testing.assert_allclose(found.missing[:, 0], np.clip((own - theirs) / own, 0.0, 2.0))
    less = {**found.answer, "agreements": 0.25 * own[:, None]}
    np.testing.assert_allclose(judge_agreement(less, **found.own)["missing"], 0.75)


def test_what_is_missing():
    shares = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        data = make([150, 200, 200, 200, 200], seed=seed, flipped=(2,))
        y = data.y.copy()
        y[data.rows(3)] = rng.permutation(y[data.rows(3)])
        y[data.rows(4)] = 1
        other, _ = group_rows(data.X, y, data.source_of_row, reference=0, n_classes=2)
        shares.append(agreement_of(other, seed=seed)[0].missing[0])
    clean, flipped, shuffled, constant = np.mean(shares, axis=0)
    assert clean < 0.15
    assert flipped > 1.8
    assert shuffled == pytest.approx(1.0, abs=0.1)
    assert constant == pytest.approx(1.0, abs=0.05)


def test_no_difference_no_bias():
    off = []
    for seed in range(60):
        found, _ = agreement_of(make([40, 60], seed=seed), seed=seed)
        off.append((found.answer["agreements"][0] - found.own["values"][0])[0])
    assert abs(np.mean(off)) < 3.0 * np.std(off, ddof=1) / np.sqrt(60)


def test_errors_are_those_of_rows_drawn_anew():
    found = [agreement_of(make([2000, 100], seed=seed))[0] for seed in range(60)]
    spread = np.std([one.answer["agreements"][0, 0] for one in found], ddof=1)
    assert np.mean([one.answer["agreement_errors"][0] for one in found]) == pytest.approx(
        spread, rel=0.3
    )


def test_a_reference_whose_model_knows_nothing_accuses_nobody():
    # Agreement of the reference's own within noise: shares are told of twice its error.
    values, expected = np.array([[0.0, 0.01, -0.01]]), np.full((1, 3), 0.001)
    own, error = np.array([0.001]), np.array([0.02])
    found = judged(values, expected, np.zeros(3), own, error)
    np.testing.assert_allclose(found.missing, [[0.001 / 0.04, 0.0, 0.011 / 0.04]])
    assert found.missing.max() < 0.3
    nothing = np.zeros((1, 3))
    found = judged(nothing, nothing, nothing[0], nothing[0, :1], nothing[0, :1])
    assert (found.missing == 0.0).all()


def test_a_single_row_lacks_nothing_and_shares_are_limited():
    data = make([40, 1, 60], flipped=(2,))
    found, _ = agreement_of(data)
    assert (found.missing[:, 0] == 0.0).all()
    assert np.isfinite(found.missing_errors).all()
    assert ((found.missing >= 0.0) & (found.missing <= DEFAULT.most_missing)).all()


def test_a_row_of_threefold_weight_is_three_rows():
    data = make([40, 30])
    weights = np.ones(70)
    weights[55:] = 3.0
    thrice = np.repeat(np.arange(70), weights.astype(int))
    source = data.source_of_row
    repeated, _ = group_rows(
        data.X[thrice], data.y[thrice], source[thrice], reference=0, n_classes=2
    )
    weighted, _ = group_rows(
        data.X, data.y, source, reference=0, n_classes=2, sample_weight=weights
    )
    found = []
    for one in (repeated, weighted):
        size = one.sizes[1]  # the correction for the mean goes by effective rows
        found.append(agreement_of(one)[0].answer["agreements"] * (size - 1.0) / size)
    np.testing.assert_allclose(*found, atol=1e-10)


def test_real_targets():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(1400, 3)), np.ones(1400)])
    y = X[:, 0] + 0.5 * rng.normal(size=1400)
    source = np.repeat([0, 1, 2, 3], [200, 400, 400, 400])
    y[source == 2] *= -1.0
    y[source == 3] += 10.0
    data, _ = group_rows(X, y, source, reference=0, n_classes=0)
    found, _ = agreement_of(data, family=RidgeFamily(np.array([1.0])))
    clean, flipped, shifted = found.missing[0]
    assert max(clean, shifted) < 0.3
    assert flipped > 1.7


def test_one_target_far_off_does_not_decide():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), np.ones(300)])
    y = X[:, 0] + 0.5 * rng.normal(size=300) + 1e9
    source = np.repeat([0, 1, 2], [100, 100, 100])
    y[source == 2] = rng.permutation(y[source == 2])
    highest = [np.flatnonzero(source == i)[np.argmax(X[source == i, 0])] for i in (1, 2)]
    for size in (1e2, 1e300):
        y[highest] = [-size, size]  # the wrong way in the clean source, the right one in the other
        data, _ = group_rows(X, y, source, reference=0, n_classes=0)
        with np.errstate(all="raise"):
            found, _ = agreement_of(data, family=RidgeFamily(np.array([1.0])))
        clean, shuffled = found.missing[0]
        assert clean < 0.5 < shuffled
        assert (found.missing_errors < 0.3).all()


def test_limits_do_not_make_a_share_certain():
    own, error = np.array([1.0]), np.array([0.0])
    values = np.array([[5.0, 0.5, -1e9, 1.0]])
    errors = np.array([0.5, 0.1, 1e12, 0.2])
    found = judged(values, np.ones((1, 4)), errors, own, error)
    # Clearly more than enough; within limits; nothing is known, and no more than 2; at the limit.
    np.testing.assert_allclose(found.missing_errors, [0.5, 0.1, 2.0, 0.2])


def test_repeats_are_averaged():
    data = make([30, 40, 40])
    both, folds = agreement_of(data, n_repeats=2)
    ones = [agreement_with(data, ReferenceFolds(fold[None], 3)).answer for fold in folds.folds]
    np.testing.assert_allclose(
        both.answer["agreements"][0],
        np.mean([one["agreements"][0] for one in ones], axis=0),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        both.answer["agreements"][1:],
        np.concatenate([one["agreements"][1:] for one in ones]),
        atol=1e-6,
    )
