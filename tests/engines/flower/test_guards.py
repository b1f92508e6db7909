from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flwr.app import Array
from made_up_sites import classifier, federated, regressor, rows, sites_of

from sourcewise.core.data import SourceData, group_rows
from sourcewise.core.discrepancy.moments import concat_moments, moments_of, source_rows
from sourcewise.core.quadratic_sources import derivatives
from sourcewise.engines.flower import LocalCarrier, Policy, Site, wire
from sourcewise.engines.flower.client import message_in
from sourcewise.engines.flower.copies import (
    COPY_OF_REFERENCE,
    COPY_OF_SITE,
    copies,
    copies_by_moments,
)


class Poisoning(Site):
    """Honest until the derivatives of the final training, then with other labels."""

    asked = 0

    def _answer(self, question, content, data):
        if question == "derivatives":
            counts[self.name] = counts.get(self.name, 0) + 1
            if counts[self.name] > 3:  # pilots, joint model, second look
                data = replace(data, y=1 - data.y)
        return super()._answer(question, content, data)


counts: dict[str, int] = {}


def test_who_poisons_training_after_an_honest_look_is_left_out():
    counts.clear()
    pool = rows(n_sites=5, m=80, bad=())
    sites = sites_of(*pool)
    sites[0] = Poisoning(sites[0].name, sites[0].rows)
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    assert "contradicts" in sources.facts.left_out["site-0"]
    counts.clear()
    found, sources = federated(pool, classifier(), carrier=LocalCarrier(sites), guards=False)
    assert not sources.facts.left_out
    assert found.source_weights_[1] > 0.1  # nobody would have noticed


@pytest.mark.parametrize("classes", [2, 0])
def test_copies_of_one_site_count_once(classes):
    X, y, names = pool = rows(n_sites=4, m=60, classes=classes, bad=())
    sites = sites_of(*pool)
    bad = names == "site-0"
    sites += [Site.of_arrays(f"copy-{k}", X[bad], y[bad]) for k in range(3)]
    model = classifier() if classes else regressor()
    _, sources = federated(pool, model, carrier=LocalCarrier(sites))
    left_out = sources.facts.left_out
    assert len(left_out) == 3
    assert all("answers are those of" in why for why in left_out.values())


@pytest.mark.parametrize("classes", [0, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_copies_are_found_by_their_gradients_and_independent_sites_are_none(classes, seed):
    X, y, names = rows(n_sites=6, classes=classes, seed=seed, bad=())
    for site, copied in {"site-4": "site-1", "site-5": "ours"}.items():
        X[names == site], y[names == site] = X[names == copied], y[names == copied]
    codes = np.unique(names, return_inverse=True)[1]  # the reference is first
    sites = [f"site-{k}" for k in range(6)]
    data, _ = group_rows(X, y, codes, reference=0, n_classes=classes)
    about = data.sizes[1:], replace(data.some(0, 1), reference=0)
    if classes:
        model = np.full((1 if classes == 2 else classes, X.shape[1]), 0.01)
        known = derivatives(data, model[None], curvature=False)
        found = copies(sites, known, *about, model)
    else:
        own, *others = (moments_of(source_rows(data, k)) for k in range(7))
        found = copies_by_moments(sites, concat_moments(others), *about, own)
    assert found == {"site-4": COPY_OF_SITE.format(other="site-1"), "site-5": COPY_OF_REFERENCE}


@pytest.mark.parametrize("classes", [2, 0])
def test_a_site_that_claims_a_single_row_makes_no_copies_of_the_others(classes):
    class Small(Site):
        def _answer(self, question, content, data):
            answer = super()._answer(question, content, data)
            if question == "describe":
                record = answer["describe.arrays"]
                for part in (".rows", ".sizes"):
                    record[part] = Array(np.ones(1))
            return answer

    pool = rows(n_sites=4, m=600, n_ref=200, d=8, classes=classes, bad=())
    sites = sites_of(*pool)
    sites[0] = Small(sites[0].name, sites[0].rows)  # the first by name, too
    model = classifier() if classes else regressor()
    _, sources = federated(pool, model, carrier=LocalCarrier(sites))
    assert not set(sources.facts.left_out) - {"site-0"}


@pytest.mark.parametrize("classes", [2, 0])
@pytest.mark.parametrize("mode", ["models-only", "shared-reference"])
def test_a_copy_of_the_reference_is_not_a_source(mode, classes):
    X, y, names = pool = rows(n_sites=4, m=60, classes=classes, bad=())
    own = names == "ours"
    sites = [*sites_of(*pool), Site.of_arrays("mirror", X[own], y[own])]
    model = classifier() if classes else regressor()
    _, sources = federated(pool, model, carrier=LocalCarrier(sites), mode=mode)
    assert list(sources.facts.left_out) == ["mirror"]
    assert "copies of the reference" in sources.facts.left_out["mirror"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "shape", [{"m": 25, "d": 12, "n_ref": 30}, {"m": 40, "d": 2}, {"m": 60, "classes": 3}]
)
def test_honest_sites_pass_every_guard(shape, seed):
    _, sources = federated(rows(n_sites=4, seed=seed, **shape), classifier())
    assert not sources.facts.left_out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("target", ["noisy", "exact", "constant but for noise", "spread unevenly"])
@pytest.mark.parametrize("shape", [{"m": 25, "d": 12}, {"m": 400, "d": 1}, {"m": 60, "d": 30}])
def test_honest_sites_of_quantities_are_no_copies(shape, target, seed):
    X, y, names = rows(n_sites=4, classes=0, seed=seed, bad=(), **shape)
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=len(y))
    y = {
        "noisy": y,
        "exact": X.sum(axis=1),
        "constant but for noise": 1e3 + noise,
        "spread unevenly": X[:, 0] + noise * np.exp(-2.0 * (X**2).sum(axis=1)),
    }[target]
    _, sources = federated((X, y, names), regressor())
    assert not sources.facts.left_out


def test_answers_that_change_are_noticed():
    class Moody(Site):
        def _answer(self, question, content, data):
            answer = super()._answer(question, content, data)
            if question == "derivatives":
                record = answer["derivatives.arrays"]
                shift = np.random.default_rng().normal(scale=1e-3)
                record[".gradients"] = Array(record[".gradients"].numpy() + shift)
            return answer

    pool = rows(n_sites=4, bad=())
    sites = sites_of(*pool)
    sites[2] = Moody(sites[2].name, sites[2].rows)
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    assert "otherwise than before" in sources.facts.left_out["site-2"]


class Forging(Site):
    """Sends another number in one place of an answer."""

    def _answer(self, question, content, data):
        answer = super()._answer(question, content, data)
        path, value = forged
        record = answer.get(f"{question}.arrays", {})
        if path in record:
            record[path] = Array(np.full_like(record[path].numpy(), value))
        return answer


forged = ("", 0.0)


def forge(monkeypatch, path, value, pool, model, **options):
    monkeypatch.setitem(globals(), "forged", (path, value))
    sites = sites_of(*pool)
    sites[1] = Forging(sites[1].name, sites[1].rows)
    return federated(pool, model, carrier=LocalCarrier(sites), **options)[1].facts.left_out


@pytest.mark.parametrize(("classes", "value"), [(2, 1e9), (3, -1e9), (0, 1e9)])
@pytest.mark.parametrize(
    "path",
    [
        ".agreements",
        ".feature_products",
        ".feature_norms",
        ".concentration",
        ".own_moments",
    ],
)
def test_numbers_that_no_rows_could_have_led_to_are_named(monkeypatch, path, classes, value):
    pool = rows(n_sites=3, classes=classes, bad=())
    model = classifier() if classes else regressor()
    left_out = forge(monkeypatch, path, value, pool, model)
    assert list(left_out) == ["site-1"]
    assert f"'{path.rpartition('.')[2]}' is {value:.3g}, which cannot be" in left_out["site-1"]


def test_products_with_the_target_have_an_end(monkeypatch):
    pool = rows(n_sites=3, classes=0, bad=())
    left_out = forge(monkeypatch, ".cross", 1e9, pool, regressor())
    assert "'cross' is 1e+09, which cannot be" in left_out["site-1"]


@pytest.mark.parametrize("value", [1e9, -1.0])
@pytest.mark.parametrize("path", [".prediction_variances", ".agreement_errors"])
def test_spreads_of_probabilities_have_an_end(monkeypatch, path, value):
    left_out = forge(monkeypatch, path, value, rows(n_sites=3, bad=()), classifier())
    assert list(left_out) == ["site-1"]


def test_agreement_beyond_the_spread_of_the_predictions_is_named(monkeypatch):
    pool = rows(n_sites=3, bad=())
    left_out = forge(monkeypatch, ".prediction_variances", 1e-6, pool, classifier())
    assert "'agreements' is" in left_out["site-1"]


def test_features_are_as_concentrated_as_the_number_of_rows_says(monkeypatch):
    # Else a site of other features could say that its own are mostly noise.
    X, y, names = pool = rows(n_sites=3, bad=())
    X[names == "site-1"] *= 5.0
    honest, _ = federated(pool, classifier())
    monkeypatch.setitem(globals(), "forged", (".concentration", 1.0))
    sites = sites_of(*pool)
    sites[1] = Forging(sites[1].name, sites[1].rows)
    found, _ = federated(pool, classifier(), carrier=LocalCarrier(sites))
    np.testing.assert_allclose(found.source_weights_, honest.source_weights_, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 0])
@pytest.mark.parametrize("noise", [1e-3, 0.1, 10.0])
def test_noise_leaves_no_honest_site_out_for_its_ranges(noise, classes):
    pool = rows(n_sites=3, classes=classes, bad=())
    sites = sites_of(*pool, policy=Policy(noise=noise))
    model = classifier() if classes else regressor()
    _, sources = federated(pool, model, carrier=LocalCarrier(sites))
    assert not any("cannot be" in why for why in sources.facts.left_out.values())


class Joining(Site):
    """Says what it has fitted to the reference's rows alone, as if its own were among them."""

    def _answer(self, question, content, data):
        if question != "pull":
            return super()._answer(question, content, data)
        message = message_in(content, question)
        X, y = message.sent["X"], message.sent["y"]
        n = len(y)
        shown = SourceData(X, y, np.array([0, n]), -1, np.full(n, 1.0 / n), data.n_classes)
        found = message.answer(shown, [self.name])
        return wire.pack({**found, "sizes": np.array([1e-9])}, question)


@pytest.mark.parametrize("show_rows", [None, 40])
def test_joint_models_have_to_go_with_the_derivatives(show_rows):
    X, y, names = rows(n_sites=5, m=80, n_ref=80, bad=())
    bad = names == "site-0"
    y = np.where(bad, 1 - y, y)
    sites = sites_of(X, y, names)
    sites[0] = Joining(sites[0].name, sites[0].rows)
    options = {"mode": "shared-reference", "show_rows": show_rows}
    _, sources = federated((X, y, names), classifier(), LocalCarrier(sites), **options)
    assert list(sources.facts.left_out) == ["site-0"]
    assert "what its own derivatives lead to" in sources.facts.left_out["site-0"]
    # What it says its rows counted for is not looked at either.
    found, _ = federated((X, y, names), classifier(), LocalCarrier(sites), guards=False, **options)
    assert np.isfinite(found.discrepancies_).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "shape", [{"m": 22, "d": 15, "n_ref": 25}, {"m": 22, "d": 2, "n_ref": 300}, {"classes": 4}]
)
def test_honest_joint_models_pass(shape, seed):
    pool = rows(n_sites=3, seed=seed, **shape)
    _, sources = federated(pool, classifier(), mode="shared-reference")
    assert not sources.facts.left_out


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_losses_of_quantities_have_to_go_with_the_moments(noise):
    class Flattering(Site):
        def _answer(self, question, content, data):
            answer = super()._answer(question, content, data)
            if question == "losses":
                record = answer["losses.arrays"]
                record[".losses"] = Array(0.7 * record[".losses"].numpy())
            return answer

    pool = rows(n_sites=4, classes=0, m=100, n_ref=100)
    sites = sites_of(*pool, policy=Policy(noise=noise))
    options = {"mode": "gradients", "model": regressor(discrepancy="plug-in")}
    _, sources = federated(pool, carrier=LocalCarrier(sites), **options)
    assert not sources.facts.left_out
    sites[3] = Flattering(sites[3].name, sites[3].rows, sites[3].policy)
    _, sources = federated(pool, carrier=LocalCarrier(sites), **options)
    assert list(sources.facts.left_out) == ["site-3"]
    assert "its moments lead to" in sources.facts.left_out["site-3"]
