"""What a source does to the reference's own loss when it is added to it."""

import numpy as np
import pytest
from made_up_sources import draw_folds, fit_reference, make
from sklearn.linear_model import LogisticRegression

from sourcewise.core.data import group_rows
from sourcewise.core.discrepancy import pull
from sourcewise.core.discrepancy.findings import gather
from sourcewise.core.discrepancy.moments import concat_moments, moments_of, source_rows
from sourcewise.core.discrepancy.pull import pull_question, quadratic_joint_models
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss, clipped_squared_loss
from sourcewise.core.quadratic_sources import QuadraticSources
from sourcewise.core.ridge import RidgeFamily
from sourcewise.engines.memory import MemorySources


@pytest.fixture(autouse=True)
def exact_fits(monkeypatch):
    """Compare definitions, not where solvers stop."""
    monkeypatch.setattr("sourcewise.core.linear.JOINT_TOL", 1e-12)
    monkeypatch.setattr("sourcewise.core.linear.LEAST_TOL", 1e-12)


FAMILY = LogisticFamily(2, np.array([1.0]), penalise_constant=True, tol=1e-10)


def pulls_of(data, asked=None, n_repeats=1, n_folds=3, seed=0, family=FAMILY, loss=brier_loss):
    folds = draw_folds(data, n_folds, n_repeats, seed)
    return pulls_with(data, folds, asked, family, loss), folds


def pulls_with(data, folds, asked=None, family=FAMILY, loss=brier_loss):
    """Ask some untrusted sources, by their position among all sources."""
    question = pull_question(fit_reference(data, folds, family, loss))
    sources = MemorySources(data, data.untrusted.tolist())
    positions = None if asked is None else np.searchsorted(data.untrusted, asked)
    return gather(sources.ask(question, positions))


def naive(data, source, fold, without=None):
    """One scikit-learn fit at a time; also returns the changes row by row."""
    trusted = data.rows(0)
    X, y, n = data.X[trusted], data.y[trusted], len(fold)
    rows = data.rows(source)
    their_weight = min(1.0, n / len(data.y[rows]))
    outer = np.zeros(n, bool) if without is None else fold == without
    changes = np.full(n, np.nan)
    for f in np.unique(fold):
        if f == without:
            continue
        kept = ~outer & (fold != f)
        losses = []
        for joined in (False, True):
            parts = [(X[kept], y[kept], 1.0), (data.X[rows], data.y[rows], their_weight)]
            parts = parts[: 1 + joined]
            model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000)
            model.fit(
                np.concatenate([part[0] for part in parts]),
                np.concatenate([part[1] for part in parts]),
                np.concatenate([np.full(len(part[1]), part[2]) for part in parts]),
            )
            p = model.predict_proba(X)[np.arange(n), y]
            losses.append((1.0 - p) ** 2)
        theirs = their_weight * len(data.y[rows])
        inside = ~outer & (fold == f)
        changes[inside] = ((losses[1] - losses[0]) * (theirs + kept.sum()) / theirs)[inside]
    return changes[~outer]


@pytest.mark.parametrize("chosen, without", [(0, None), (2, 1)])
def test_equals_the_definition_computed_one_model_at_a_time(chosen, without):
    data = make([30, 10, 40, 90], flipped=(2,))
    found, folds = pulls_of(data)
    for i in (1, 2, 3):
        changes = naive(data, i, folds.folds[0], without)
        np.testing.assert_allclose(found["pulls"][chosen, i - 1], changes.mean(), atol=1e-5)
        expected = changes.std(ddof=1) / np.sqrt(len(changes))
        np.testing.assert_allclose(found["pull_errors"][chosen, i - 1], expected, atol=1e-5)


def test_help_is_negative_and_harm_positive():
    helpful, harmful = [], []
    for seed in range(20):
        data = make([60, 120, 120], d=8, seed=seed, flipped=(2,))
        values = pulls_of(data, seed=seed)[0]["pulls"][0]
        helpful.append(values[0])
        harmful.append(values[1])
    assert np.mean(helpful) < -2.0 * np.std(helpful, ddof=1) / np.sqrt(20)
    assert min(harmful) > 0.05


def test_depends_on_no_other_source():
    data = make([30, 10, 40, 90, 41], flipped=(2,))
    together, _ = pulls_of(data)
    for i in (1, 2, 3, 4):
        alone, _ = pulls_of(data, asked=[i])
        np.testing.assert_allclose(alone["pulls"][:, 0], together["pulls"][:, i - 1], atol=1e-6)


def test_a_large_source_has_no_more_say_than_the_reference():
    # Every row twice is the same source, once it is as large as the reference.
    data = make([30, 40])
    X, y = np.concatenate([data.X, data.X[30:]]), np.concatenate([data.y, data.y[30:]])
    source = np.repeat([0, 1], [30, 80])
    doubled, _ = group_rows(X, y, source, reference=0, n_classes=2)
    np.testing.assert_allclose(pulls_of(doubled)[0]["pulls"], pulls_of(data)[0]["pulls"], atol=1e-6)


def test_repeats_are_averaged():
    data = make([30, 40, 40])
    both, folds = pulls_of(data, n_repeats=2)
    ones = [pulls_with(data, ReferenceFolds(fold[None], 3)) for fold in folds.folds]
    np.testing.assert_allclose(
        both["pulls"][0], np.mean([one["pulls"][0] for one in ones], axis=0), atol=1e-6
    )
    np.testing.assert_allclose(
        both["pulls"][1:], np.concatenate([one["pulls"][1:] for one in ones]), atol=1e-6
    )


def test_real_targets():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(160, 3)), np.ones(160)])
    y = X[:, 0] + 0.5 * rng.normal(size=160)
    source = np.repeat([0, 1, 2], [40, 60, 60])
    y[source == 2] *= -1.0
    data, _ = group_rows(X, y, source, reference=0, n_classes=0)
    found, _ = pulls_of(
        data,
        family=RidgeFamily(np.array([1.0])),
        loss=lambda predictions, y: clipped_squared_loss(predictions, y, scale=1.0),
    )
    assert found["pulls"][0, 1] > 5.0 * found["pull_errors"][0, 1]
    assert abs(found["pulls"][0, 0]) < 3.0 * found["pull_errors"][0, 0]


@pytest.mark.parametrize("counts", [[60, 120, 40], [3000, 1, 10, 100]])
def test_early_stops_are_below_the_noise(monkeypatch, counts):
    data = make(counts, d=8, flipped=(2,))
    assert_early_stops_do_not_matter(data, monkeypatch)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("largest", [30.0, 1e3, 1e5])
def test_features_of_other_orders_of_magnitude(monkeypatch, largest):
    data = make([40, 30, 60], d=8)
    X = data.X.copy()
    X[data.rows(2), :-1] *= np.geomspace(0.01, largest, 8)
    free = LogisticFamily(2, np.array([1.0]), tol=1e-10)
    options = {"family": free, "n_folds": 5, "n_repeats": 2}
    assert_early_stops_do_not_matter(data.with_features(X), monkeypatch, **options)


def assert_early_stops_do_not_matter(data, monkeypatch, **options):
    exact = pulls_of(data, **options)[0]
    monkeypatch.undo()
    found = pulls_of(data, **options)[0]
    assert (np.abs(found["pulls"] - exact["pulls"]) < 0.2 * exact["pull_errors"]).all()
    np.testing.assert_allclose(found["pull_errors"], exact["pull_errors"], rtol=0.1)


@pytest.mark.parametrize("small", [0, 200])  # by gradients, and by systems of equations
def test_moments_lead_to_the_joint_models_of_all_rows(small, monkeypatch):
    monkeypatch.setattr(pull, "MANY_FEATURES", small)
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(160, 3)), np.ones(160)])
    y = X[:, 0] + 0.5 * rng.normal(size=160)
    data, _ = group_rows(X, y, np.repeat([0, 1, 2], [40, 30, 90]), reference=0, n_classes=0)
    family = RidgeFamily(np.array([1.0]))
    reference = fit_reference(
        data, draw_folds(data, 3, 1, 0), family, lambda p, y: clipped_squared_loss(p, y, scale=1.0)
    )
    others = data.select([1, 2])
    expected = pull_question(reference).message.answer(others, [1, 2])
    moments = concat_moments([moments_of(source_rows(others, i)) for i in range(2)])
    known = QuadraticSources.of_moments(moments, others.sizes, others.row_counts)
    found = quadratic_joint_models(reference, known, family._penalty(4))
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, atol=1e-8)
