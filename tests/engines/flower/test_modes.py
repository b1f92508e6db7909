from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from made_up_sites import (
    classifier,
    federated,
    in_memory,
    regressor,
    rows,
    sites_of,
    total_variation,
)
from sklearn.datasets import load_breast_cancer

import sourcewise as sw
from sourcewise.core.data import FloatArray, group_rows
from sourcewise.core.discrepancy import methods
from sourcewise.core.discrepancy.findings import gather
from sourcewise.core.discrepancy.result import Discrepancies, Witness
from sourcewise.core.engine import Message, Question
from sourcewise.core.quadratic_sources import derivatives
from sourcewise.core.source_weights import GivenWeights
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Policy
from sourcewise.engines.flower.engine import FlowerSums
from sourcewise.engines.flower.questions import QUESTIONS
from sourcewise.engines.memory import MemorySources


def breast():
    X, y = load_breast_cancer(return_X_y=True)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y))[:400]
    X, y = X[order], y[order]
    names = np.repeat(["ours", *(f"site-{k}" for k in range(9))], 40)[: len(y)]
    for k in range(3):
        mine = names == f"site-{k}"
        y[mine] = rng.permutation(y[mine])
    return X[: len(names)], y[: len(names)], names


POOLS = {
    "two classes": rows(),
    "three classes": rows(classes=3),
    "few rows and many features": rows(m=25, d=12, n_ref=30),
    "real, hardly any overlap": breast(),
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_models_only_is_near_all_rows_in_memory(pool):
    exact = in_memory(pool, classifier())
    found, sources = federated(pool, classifier())
    # With so few rows of so many features, the curvature is that of models that fit every row.
    most = 0.08 if pool is POOLS["few rows and many features"] else 0.05
    assert total_variation(exact, found) < most
    assert sources.facts.rule.startswith("approximate")
    assert sources.facts.rule in found.report().notes[-1]
    assert len(sources.facts.rounds) <= 12


@pytest.mark.parametrize(
    "options", [{"mode": "models-only"}, {"mode": "shared-reference"}, {"exact_selection": True}]
)
def test_regression_is_exact_without_the_reference_rows(options):
    pool = rows(classes=0)
    exact = in_memory(pool, regressor())
    found, sources = federated(pool, regressor(), **options)
    np.testing.assert_allclose(found.source_weights_, exact.source_weights_, atol=1e-8)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=1e-6)
    assert len(sources.facts.rounds) == 2


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_with_the_reference_shared_discrepancies_are_exact(pool):
    exact = in_memory(pool, classifier())
    found, _ = federated(pool, classifier(), mode="shared-reference")
    np.testing.assert_allclose(found.discrepancies_, exact.discrepancies_, atol=1e-8)
    assert total_variation(exact, found) < 0.03


@pytest.mark.parametrize("classes", [2, 3])
def test_sums_that_sites_are_asked_for_are_those_of_all_rows(classes):
    X, y, names = rows(classes=classes)
    codes = np.unique(names, return_inverse=True)[1]  # the reference is first
    data, _ = group_rows(X, y, codes, reference=0, n_classes=classes)
    rng = np.random.default_rng(0)
    weights = GivenWeights(rng.uniform(size=(5, 4)))
    exact = MemorySources(data, range(5)).weighted(weights)
    engine = SimpleNamespace(
        gradients=lambda points: derivatives(data, points, curvature=False).gradients,
        derivatives=lambda points: derivatives(data, points),
        sizes=data.sizes[data.untrusted],
        row_counts=data.row_counts[data.untrusted],
        n_classes=classes,
    )
    sums = FlowerSums(engine, weights)
    points = rng.normal(size=(4, 2, 1 if classes == 2 else classes))  # two that columns stand at
    columns, at = np.array([0, 2, 3]), np.array([1, 0, 1])
    found = sums.gradients(points, columns, at), *sums.curvature(points, columns, at)
    expected = exact.gradients(points, columns, at), *exact.curvature(points, columns, at)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_with_exact_selection_nothing_is_approximate():
    pool, told = POOLS["two classes"], []
    exact = in_memory(pool, classifier())
    found, sources = federated(
        pool, classifier(), mode="shared-reference", exact_selection=True, on_expected=told.append
    )
    np.testing.assert_allclose(found.source_weights_, exact.source_weights_, atol=1e-8)
    np.testing.assert_allclose(found.coef_, exact.coef_, atol=1e-6 * np.abs(exact.coef_).max())
    assert "approximate" not in sources.facts.rule
    # It was told before how long that would take; trade-offs that are given up cost less.
    asked = [made.questions for made in sources.facts.rounds]
    by_gradients = asked.count(("gradients",)) + asked.count(("derivatives",))
    assert len(told) == 1
    assert 0.3 * told[0] < by_gradients < 1.5 * told[0]


@pytest.mark.parametrize("classes", [2, 3])
def test_plug_in_by_gradients_is_the_central_value(classes):
    pool = rows(d=40, classes=classes, m=50)  # more features than hypotheses in a round
    exact = in_memory(pool, classifier(discrepancy="plug-in"))
    found, sources = federated(pool, classifier(discrepancy="plug-in"), mode="gradients")
    np.testing.assert_allclose(found.discrepancies_, exact.discrepancies_, atol=1e-6)
    asked = [made.questions for made in sources.facts.rounds]
    assert asked.count(("square-gradients",)) >= 2
    # In the same round as the losses, what training needs.
    assert asked.count(("losses", "derivatives")) == 1


def test_plug_in_by_gradients_for_regression():
    pool = rows(classes=0, d=6)
    exact = in_memory(pool, regressor(discrepancy="plug-in"))
    found, _ = federated(pool, regressor(discrepancy="plug-in"), mode="gradients")
    np.testing.assert_allclose(found.discrepancies_, exact.discrepancies_, atol=1e-6)


def test_what_a_site_sends_does_not_grow_with_its_rows():
    def up(m):
        pool = rows(n_sites=2, m=m, bad=())
        _, sources = federated(pool, classifier())
        return [made.up for made in sources.facts.rounds[:3]]

    assert up(50) == up(500)


def test_the_reference_rows_stay_here_unless_they_are_shared():
    pool = rows()
    X, _, names = pool
    own = X[names == "ours"]

    class Spy:
        def __init__(self, carrier):
            self.carrier, self.sent = carrier, []

        def nodes(self):
            return self.carrier.nodes()

        def exchange(self, messages, timeout):
            for content in messages.values():
                for record in content.array_records.values():
                    self.sent += [array.numpy().ravel() for array in record.values()]
            return self.carrier.exchange(messages, timeout)

    def sent(mode, **options):
        spy = Spy(LocalCarrier(sites_of(*pool)))
        model, _ = federated(pool, classifier(), carrier=spy, mode=mode, **options)
        # The map of the features is public: rows would travel mapped.
        low, high = model.feature_range_
        centre, scale = (low + high) / 2, (high - low) / 200
        mapped = (own - centre) / scale
        found = np.concatenate(spy.sent)
        return [bool(np.isclose(found, row[0], rtol=1e-9, atol=0).any()) for row in mapped]

    assert all(sent("shared-reference"))
    assert not any(sent("models-only"))
    assert sent("shared-reference", show_rows=45) == [True] * 45 + [False] * 15


def test_some_rows_of_the_reference_stand_for_all():
    pool = POOLS["two classes"]
    exact = in_memory(pool, classifier())
    found, sources = federated(pool, classifier(), mode="shared-reference", show_rows=45)
    assert total_variation(exact, found) < 0.1
    assert "45 rows of the reference stand for all" in sources.facts.rule
    # Quantities are told by moments: no row is shown for them.
    pool = rows(classes=0)
    exact = in_memory(pool, regressor())
    found, _ = federated(pool, regressor(), mode="shared-reference", show_rows=10)
    np.testing.assert_allclose(found.source_weights_, exact.source_weights_, atol=1e-8)


def test_too_few_rows_to_show_are_told_in_a_sentence():
    with pytest.raises(ValueError, match="1 rows of the reference are too few to be shown"):
        federated(rows(), classifier(), mode="shared-reference", show_rows=1)


def test_the_model_is_the_one_everybody_else_gets(tmp_path):
    pool = rows()
    found, _ = federated(pool, classifier())
    report = found.report()
    assert [row.source for row in report.sources] == ["ours", *(f"site-{k}" for k in range(5))]
    path = tmp_path / "model.skops"
    sw.save(found, path)
    X = pool[0]
    np.testing.assert_array_equal(sw.load(path).predict(X), found.predict(X))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"mode": "secret"}, "mode"),
        ({"least_sites": 0}, "least_sites"),
        ({"timeout": 0}, "timeout"),
        ({"size_cap": 0.5}, "size_cap"),
        ({"show_rows": 10}, "show_rows"),
        ({"show_rows": 10**6, "mode": "shared-reference"}, "show_rows"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(options, word):
    X, y, names = rows()
    with pytest.raises(ValueError, match=word):
        FlowerSources(object(), X, y, **options)


def test_modes_say_what_they_cannot_do():
    with pytest.raises(ValueError, match="plug-in"):
        federated(rows(), classifier(), mode="gradients")
    with pytest.raises(ValueError, match="shared-reference"):
        federated(rows(), classifier(discrepancy="cross-fit"))


# A discrepancy of one's own: by how much the share of the second class differs.


def answer_shares(sources, names, *, labels: FloatArray):
    shares = [sources.row_shares[rows] @ labels[sources.y[rows]] for rows in sources.slices()]
    return {"shares": np.array(shares), "counts": sources.row_counts}


def judge_shares(answer, own: float):
    return {"off": np.abs(answer["shares"] - own)[None], "counts": answer["counts"]}


def find_shares(survey, asked):
    labels, rows = np.array([0.0, 1.0]), survey.reference
    message = Message(answer_shares, {"labels": labels})
    known = {"own": float(rows.shares @ labels[rows.y])}
    return gather(survey.sources.ask(Question(message, judge_shares, known), asked))


def conclude_shares(survey, found):
    off = found["off"][0]
    witnesses = (Witness("share", "source"),) * len(off)
    result = Discrepancies(off, np.sqrt(0.25 / found["counts"]), np.ones(len(off)), witnesses)
    return methods.Measured(result, np.tile(off, (len(survey.folds.held_out), 1)), 0.25, 0.5)


@pytest.mark.parametrize("mode", ["models-only", "shared-reference", "gradients"])
def test_a_new_discrepancy_is_functions_and_two_entries(mode, monkeypatch):
    method = methods.Method(find_shares, conclude_shares, (("counts", "off"),))
    monkeypatch.setitem(methods.DISCREPANCIES, "shares", method)
    monkeypatch.setitem(QUESTIONS, "shares", answer_shares)
    pool = X, y, names = rows(n_sites=4, bad=())
    y[names == "site-2"] = 1
    exact = in_memory(pool, classifier(discrepancy="shares"))
    carrier = LocalCarrier(sites_of(*pool, policy=Policy(questions=tuple(QUESTIONS))))
    found, _ = federated(pool, classifier(discrepancy="shares"), carrier=carrier, mode=mode)
    order = [exact.sources_.tolist().index(name) for name in found.sources_]
    np.testing.assert_allclose(found.discrepancies_, exact.discrepancies_[order], atol=1e-12)
    assert found.sources_[np.argmax(found.discrepancies_)] == "site-2"
    refusing = LocalCarrier(sites_of(*pool, policy=Policy(questions=("describe",))))
    with pytest.raises(ValueError, match="does not allow the question 'shares'"):
        federated(pool, classifier(discrepancy="shares"), carrier=refusing, mode=mode)
