from __future__ import annotations

import numpy as np
import pytest
from made_up_sites import classifier, federated, rows, sites_of

from sourcewise.engines.flower import LocalCarrier, Site


class Poisoning(Site):
    """Honest until the derivatives of the final training, then with other labels."""

    asked = 0

    def _answer(self, question, content, data):
        from dataclasses import replace

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


def test_copies_of_one_site_count_once():
    X, y, names = pool = rows(n_sites=4, m=60, bad=())
    sites = sites_of(*pool)
    bad = names == "site-0"
    sites += [Site.of_arrays(f"copy-{k}", X[bad], y[bad]) for k in range(3)]
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    left_out = sources.facts.left_out
    assert len(left_out) == 3
    assert all("answers are those of" in why for why in left_out.values())


@pytest.mark.parametrize("mode", ["models-only", "shared-reference"])
def test_a_copy_of_the_reference_is_not_a_source(mode):
    X, y, names = pool = rows(n_sites=4, m=60, bad=())
    own = names == "ours"
    sites = [*sites_of(*pool), Site.of_arrays("mirror", X[own], y[own])]
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites), mode=mode)
    assert list(sources.facts.left_out) == ["mirror"]
    assert "copies of the reference" in sources.facts.left_out["mirror"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "shape", [{"m": 25, "d": 12, "n_ref": 30}, {"m": 40, "d": 2}, {"m": 60, "classes": 3}]
)
def test_honest_sites_pass_every_guard(shape, seed):
    _, sources = federated(rows(n_sites=4, seed=seed, **shape), classifier())
    assert not sources.facts.left_out


def test_answers_that_change_are_noticed():
    class Moody(Site):
        def _answer(self, question, content, data):
            answer = super()._answer(question, content, data)
            if question == "derivatives":
                record = answer["derivatives.arrays"]
                from flwr.app import Array

                shift = np.random.default_rng().normal(scale=1e-3)
                record[".gradients"] = Array(record[".gradients"].numpy() + shift)
            return answer

    pool = rows(n_sites=4, bad=())
    sites = sites_of(*pool)
    sites[2] = Moody(sites[2].name, sites[2].rows)
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    assert "otherwise than before" in sources.facts.left_out["site-2"]
