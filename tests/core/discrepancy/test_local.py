"""The local discrepancy: answers, value, p-value."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_sources import draw_folds, fit_reference
from scipy import stats

from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy.local import (
    Sample,
    from_cauchy,
    local_discrepancies,
    local_values,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.local_exchange import local_question
from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss, clipped_squared_loss
from sourcewise.core.ridge import RidgeFamily

FAMILY = LogisticFamily(2, np.array([1.0]), tol=1e-10)


def make(counts, d=6, seed=0, spoil=None, n_classes=2):
    rng = np.random.default_rng(seed)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    score = X[:, :d] @ rng.normal(size=d) / np.sqrt(d) * 2 + 0.5 * rng.logistic(size=n)
    y = (score > 0).astype(int) if n_classes else score
    source = np.repeat(np.arange(len(counts)), counts)
    if spoil is not None:
        spoil(y, source, rng)
    return group_rows(X, y, source, reference=0, n_classes=n_classes)[0]


def ask(data, asked, family=FAMILY, loss=brier_loss, n_repeats=2, seed=0, n_folds=5):
    """Ask some sources, by their position among all; returns folds, answer and findings."""
    folds = draw_folds(data, n_folds, n_repeats, seed)
    return folds, *ask_with(data, asked, folds, family, loss, seed)


def ask_with(data, asked, folds, family=FAMILY, loss=brier_loss, seed=0):
    question = local_question(fit_reference(data, folds, family, loss), seed)
    answer = question.message.answer(data.select(asked), list(asked))
    return answer, question.judge(answer)


def naive(data, i, folds, seed, held_out=None):
    """Compute the definition with explicit loops, all models fitted one by one."""
    rows = data.rows(0)
    X_t, y_t = data.X[rows], data.y[rows]
    X_i, y_i = data.X[data.rows(i)], data.y[data.rows(i)]

    def fit(X, y, keep):
        return FAMILY.fit(X[keep], y[keep], np.ones((keep.sum(), 1)), np.array([1.0]))

    def loss(model, X, y):
        return brier_loss(FAMILY.predict(model, X), y)[0]

    kept = np.ones(len(y_t), bool) if held_out is None else ~held_out
    under, own, repeats = 0.0, 0.0, 0
    for r, fold in enumerate(folds.folds):
        if held_out is not None and r != held_out_repeat(folds, held_out):
            continue
        repeats += 1
        for k in range(folds.n_folds):
            inside = (fold == k) & kept
            if not inside.any():
                continue
            model = fit(X_t, y_t, (fold != k) & kept)
            under += loss(model, X_i, y_i).mean() * inside.sum() / kept.sum()
            own += loss(model, X_t, y_t)[inside].sum() / kept.sum()
    a = (under - own) / repeats
    fold = stratified_folds(y_i, len(y_i), 5, np.random.default_rng(named_seed(seed, i)))
    foreign, mine = 0.0, 0.0
    for k in range(5):
        model = fit(X_i, y_i, fold != k)
        foreign += loss(model, X_t, y_t)[kept].mean() * (fold == k).mean()
        mine += loss(model, X_i, y_i)[fold == k].sum() / len(y_i)
    return a, foreign - mine


def held_out_repeat(folds, mask):
    position = next(v for v, m in enumerate(folds.held_out) if (m == mask).all())
    return position // folds.n_folds


@pytest.mark.parametrize("which", [None, 0, 7])
def test_equals_the_definition_computed_one_model_at_a_time(which):
    data = make([40, 30, 55])
    folds, _, found = ask(data, [1, 2])
    chosen = 0 if which is None else 1 + which
    mask = None if which is None else folds.held_out[which]
    for k, i in enumerate([1, 2]):
        a, b = naive(data, i, folds, 0, mask)
        assert found["a"][chosen, k] == pytest.approx(a, abs=1e-5)
        assert found["b"][chosen, k] == pytest.approx(b, abs=1e-4)
    values = np.maximum(abs(found["a"]), abs(found["b"]))
    np.testing.assert_allclose(local_values(found), values)
    np.testing.assert_array_equal(local_discrepancies(found).values, values[0])
    np.testing.assert_array_equal(local_discrepancies(found).p_values, found["p_values"])


def test_standard_errors_are_those_of_two_means_of_losses():
    data = make([40, 30, 55])
    folds, _, found = ask(data, [1, 2], n_repeats=1)
    rows, fold = data.rows(0), folds.folds[0]
    X_t, y_t = data.X[rows], data.y[rows]
    for k, i in enumerate([1, 2]):
        X_i, y_i = data.X[data.rows(i)], data.y[data.rows(i)]
        ours, theirs = np.zeros(len(y_t)), np.zeros(len(y_i))
        for f in range(5):
            keep = (fold != f)[:, None].astype(float)
            model = FAMILY.fit(X_t, y_t, keep, np.array([1.0]))
            ours[fold == f] = brier_loss(FAMILY.predict(model, X_t), y_t)[0, fold == f]
            theirs += brier_loss(FAMILY.predict(model, X_i), y_i)[0] * np.mean(fold == f)
        expected = np.sqrt(ours.var(ddof=1) / len(ours) + theirs.var(ddof=1) / len(theirs))
        assert found["error_a"][0, k] == pytest.approx(expected, rel=1e-4)


def test_validation_rows_have_no_say_in_the_set_that_leaves_them_out():
    data = make([50, 60])
    folds, _, before = ask(data, [1])
    spoiled = data.y.copy()
    spoiled[:50][folds.held_out[3]] ^= 1
    # Folds must be the same ones, so labels are changed once these are drawn.
    _, after = ask_with(replace(data, y=spoiled), [1], folds)
    assert after["a"][4] == pytest.approx(before["a"][4])
    assert after["b"][4] == pytest.approx(before["b"][4])
    assert after["a"][0] != pytest.approx(before["a"][0])


def test_a_source_answers_the_same_whoever_else_is_asked():
    data = make([40, 30, 55, 20])
    _, together, found = ask(data, [1, 2, 3])
    _, alone, found_alone = ask(data, [2])
    # Rounding alone may differ: sources are stacked with others of about their size.
    assert found["p_values"][1] == pytest.approx(found_alone["p_values"][0], rel=1e-9)
    np.testing.assert_allclose(together["means"][:, 1], alone["means"][:, 0], rtol=1e-9)
    np.testing.assert_array_equal(together["own_counts"], [5, 5, 5])
    on_reference, on_reference_alone = (
        FAMILY.predict(models, data.X[data.rows(0)])
        for models in (together["own_models"][..., 1], alone["own_models"][..., 0])
    )
    np.testing.assert_allclose(on_reference, on_reference_alone, rtol=1e-9)
    np.testing.assert_allclose(together["own_masses"][:, 1], alone["own_masses"][:, 0], rtol=1e-12)
    np.testing.assert_allclose(found["a"][:, 1], found_alone["a"][:, 0], rtol=1e-9)
    np.testing.assert_allclose(found["b"][:, 1], found_alone["b"][:, 0], rtol=1e-9)


def test_places_are_no_more_than_rows_however_many_folds_are_asked_for():
    data = make([60, 3, 40])
    question = local_question(fit_reference(data, draw_folds(data, 5, 1, 0), FAMILY, brier_loss), 0)
    many = replace(question.message, sent={**question.message.sent, "n_folds": 10**12})
    answer = many.answer(data.select([1]), ["a"])
    assert answer["own_masses"].shape == (3, 1)


def test_places_of_models_that_a_source_has_not_count_nothing():
    answer = ask(make([60, 1, 2, 80]), [1, 2, 3])[1]
    assert answer["own_models"].shape == (5, 1, 7, 3)
    has_model = np.array([[0, 1, 1], [0, 1, 1], [0, 0, 1], [0, 0, 1], [0, 0, 1]], dtype=bool)
    np.testing.assert_array_equal(answer["own_masses"] > 0, has_model)
    np.testing.assert_array_equal(answer["own_models"].any(axis=(1, 2)), has_model)
    np.testing.assert_allclose(answer["own_masses"].sum(axis=0), [0.0, 1.0, 1.0])


@pytest.mark.parametrize("m_t, m_i, d", [(100, 100, 5), (60, 120, 20), (40, 15, 8)])
def test_p_values_are_honest_without_a_difference(m_t, m_i, d):
    # A fresh reference for every handful of sources: those that share one are not independent.
    p_values = []
    for seed in range(75):
        data = make([m_t] + [m_i] * 6, d=d, seed=seed)
        p_values.append(ask(data, range(1, 7), seed=seed, n_repeats=3)[2]["p_values"])
    share = np.mean(np.concatenate(p_values) < 0.05)
    assert 0.02 <= share <= 0.07
    assert 0.3 <= np.mean(np.concatenate(p_values) < 0.5) <= 0.55


@pytest.mark.parametrize("kind", ["shuffle", "flip", "bias"])
def test_bad_sources_get_small_p_values_and_clean_ones_do_not(kind):
    def spoil(y, source, rng):
        bad = source == 2
        if kind == "shuffle":
            y[bad] = rng.permutation(y[bad])
        else:
            y[bad] = 1 - y[bad] if kind == "flip" else 1

    p = np.array([ask(make([100, 200, 200], seed=s, spoil=spoil), [1, 2])[2]["p_values"]
                  for s in range(10)])  # fmt: skip
    assert np.median(p[:, 1]) < 1e-3
    assert np.median(p[:, 0]) > 0.1


def test_witness_names_hypothesis_and_side():
    def one_class(y, source, rng):
        y[source == 1] = 1

    _, _, found = ask(make([100, 200], spoil=one_class), [1])
    (witness,) = local_discrepancies(found).witnesses
    assert (witness.hypothesis, witness.worse_on) in {
        ("source model", "reference"),
        ("reference model", "source"),
    }


def test_one_row_is_judged_by_the_reference_model_alone():
    _, answer, sides = ask(make([60, 1, 2, 80]), [1, 2, 3])
    assert answer["own_counts"].tolist() == [0, 2, 5]
    assert np.isnan(sides["b"][:, 0]).all()
    found = local_discrepancies(sides)
    assert found.witnesses[0].hypothesis == "reference model"
    assert np.isfinite(found.values).all() and np.isfinite(found.standard_errors).all()
    assert found.standard_errors[0] > found.standard_errors[2]
    assert ((found.p_values > 0) & (found.p_values <= 1)).all()


def test_regression_tells_a_wrong_sign_from_a_clean_source():
    def spoil(y, source, rng):
        y[source == 2] *= -1

    data = make([80, 150, 150], spoil=spoil, n_classes=0)
    scale = data.y[:80].std()

    def loss(predictions, y):
        return clipped_squared_loss(predictions, y, scale=scale)

    _, _, sides = ask(data, [1, 2], RidgeFamily(np.array([1.0])), loss)
    found = local_discrepancies(sides)
    assert found.values[1] > 5 * found.values[0]
    assert found.p_values[1] < 1e-6 < found.p_values[0]


def sample(x):
    x = np.asarray(x, dtype=float)
    off = x - x.mean()
    return Sample(x.mean(), np.sum(off**2), np.sum(off**3), np.asarray(float(len(x))))


@pytest.mark.parametrize("n_small", [5, 20, 100])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("power", [1, 3])  # mildly and strongly skewed
def test_p_values_are_those_of_all_permutations(n_small, seed, power):
    rng = np.random.default_rng(seed)
    large, small = (rng.random(n) ** power for n in (100, n_small))
    small += 1.8 * large.std() * np.sqrt(1 / n_small + 1 / 100)
    exact = stats.permutation_test(
        (small, large), lambda a, b: abs(a.mean() - b.mean()), alternative="greater",
        permutation_type="independent", n_resamples=5_000, rng=seed,
    ).pvalue  # fmt: skip
    ours = two_sample_p_values(sample(small), sample(large))
    assert two_sample_p_values(sample(large), sample(small)) == pytest.approx(ours)
    # Both are near 0.07; 5,000 draws leave a standard error of 0.004.
    assert ours == pytest.approx(exact, rel=0.2, abs=0.015)


def test_few_rows_of_skewed_losses_keep_the_level():
    rng = np.random.default_rng(0)
    losses = rng.random((20_000, 105)) ** 12  # nearly all near 0, some near 1
    few, many = losses[:, :5], losses[:, 5:]
    student = stats.ttest_ind(few, many, axis=1).pvalue
    ours = np.array(
        [two_sample_p_values(sample(a), sample(b)) for a, b in zip(few, many, strict=True)]
    )
    assert np.mean(student < 0.01) > 0.02
    assert np.mean(ours < 0.01) < 0.015
    assert np.mean(ours < 0.05) < 0.06


def test_constant_losses():
    one, two, single = sample(np.ones(5)), sample(np.full(5, 2.0)), sample(np.ones(1))
    assert two_sample_p_values(one, one) == 1.0
    assert two_sample_p_values(one, two) < 0.01  # two of 252 permutations
    assert two_sample_p_values(sample(np.ones(100)), sample(np.full(100, 2.0))) < 1e-9
    assert two_sample_p_values(single, sample([2.0])) == 1.0


def test_cauchy_combination_keeps_the_level_for_equal_and_for_independent_tests():
    p = np.linspace(0.01, 0.99, 50)
    np.testing.assert_allclose(from_cauchy(to_cauchy(p)), p, atol=1e-12)
    independent = np.random.default_rng(0).random((20_000, 6))
    combined = from_cauchy(to_cauchy(independent).mean(axis=1))
    assert stats.kstest(combined, "uniform").pvalue > 0.01


def test_a_test_without_any_difference_does_not_outvote_one_with_a_large_one():
    assert from_cauchy(to_cauchy(np.array([1e-5, 1.0])).mean()) < 1e-4
