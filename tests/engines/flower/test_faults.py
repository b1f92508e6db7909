from __future__ import annotations

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict
from made_up_sites import classifier, federated, in_memory, rows, sites_of

from sourcewise.engines.flower import LocalCarrier, Policy, Site

POOL = rows(n_sites=5, m=40, d=2)


class Faulty(LocalCarrier):
    """Sites of which one does something wrong from some round on."""

    def __init__(self, sites, spoil, since=0, node=1):
        super().__init__(sites)
        self.spoil, self.since, self.node, self.round = spoil, since, node, 0

    def exchange(self, messages, timeout):
        replies = dict(super().exchange(messages, timeout))
        if self.round >= self.since and self.node in replies:
            replies[self.node] = self.spoil(replies[self.node])
        self.round += 1
        return replies


def arrays_of(reply):
    return [(r, name) for r in reply.array_records.values() for name in r]


def with_nan(reply):
    for record, name in arrays_of(reply):
        values = record[name].numpy().astype(float)
        values.flat[0] = np.nan
        record[name] = Array(values)
    return reply


def of_another_shape(reply):
    for record, name in arrays_of(reply):
        record[name] = Array(np.zeros((3, 3)))
    return reply


def under_another_name(reply):
    reply["site"] = ConfigRecord({"name": "somebody else"})
    return reply


def too_large(reply):
    # Claims nothing, and is never looked at: as long as a gigabyte is, but shared in memory.
    block = bytes(50_000_000)
    junk = Array("float64", (1,), "numpy.ndarray", block)
    reply["junk"] = ArrayRecord({f"{k}": junk for k in range(20)})
    return reply


def shape_beyond_its_bytes(reply):
    head = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, "
    head += b"'shape': (1000000000000,), }"
    head += b" " * (127 - len(head)) + b"\n"
    for record, name in arrays_of(reply):
        record[name] = Array("float64", (1,), "numpy.ndarray", head)
    return reply


def pickled(reply):
    import io

    stream = io.BytesIO()
    np.save(stream, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    for record, name in arrays_of(reply):
        record[name] = Array("object", (1,), "numpy.ndarray", stream.getvalue())
    return reply


def empty(reply):
    return RecordDict()


def gone(reply):
    return "its node failed or left (killed)"


def losses_beyond_their_range(reply):
    for record, name in arrays_of(reply):
        if name.endswith(".means"):
            record[name] = Array(record[name].numpy() - 3.0)
    return reply


def curvature_of_no_rows(reply):
    for record, name in arrays_of(reply):
        if name.endswith(".hessians"):
            record[name] = Array(-record[name].numpy())
    return reply


FAULTS = {
    with_nan: "NaN",
    of_another_shape: "shape",
    under_another_name: "calls itself",
    too_large: "bytes",
    shape_beyond_its_bytes: "claims",
    pickled: "plain numbers",
    empty: "calls itself",
    gone: "killed",
    losses_beyond_their_range: "cannot be",
    curvature_of_no_rows: "curvature",
}


LATER = [with_nan, under_another_name, gone]
WHEN = [*((spoil, 1) for spoil in FAULTS), *((spoil, 4) for spoil in LATER)]


@pytest.mark.parametrize(("spoil", "since"), WHEN, ids=[f"{f.__name__}-{k}" for f, k in WHEN])
def test_a_site_that_fails_is_left_out_and_the_others_go_on(spoil, since):
    carrier = Faulty(sites_of(*POOL), spoil, since)
    found, sources = federated(POOL, classifier(), carrier=carrier)
    assert list(sources.facts.left_out) == ["site-1"]
    assert FAULTS[spoil] in sources.facts.left_out["site-1"]
    X, y, names = POOL
    kept = names != "site-1"
    same, _ = federated((X[kept], y[kept], names[kept]), classifier())
    assert found.sources_.tolist() == same.sources_.tolist()
    np.testing.assert_allclose(found.source_weights_, same.source_weights_, atol=1e-8)


def test_too_few_sites_are_one_sentence_and_no_model():
    carrier = Faulty(sites_of(*POOL), gone, since=1)
    model = classifier()
    with pytest.raises(ValueError, match=r"4 of 5 sites can be used, and at least 5 .*'site-1'"):
        federated(POOL, model, carrier=carrier, least_sites=5)
    assert not hasattr(model, "coef_")


def test_nobody_there_is_one_sentence():
    with pytest.raises(ValueError, match="No site is connected"):
        federated(POOL, classifier(), carrier=LocalCarrier([]))


def test_a_late_site_is_not_asked():
    class Growing(LocalCarrier):
        def exchange(self, messages, timeout):
            replies = super().exchange(messages, timeout)
            if len(self.sites) == 5:
                X, y, names = POOL
                self.sites.append(Site.of_arrays("late", X[:40], y[:40]))
            return replies

    found, sources = federated(POOL, classifier(), carrier=Growing(sites_of(*POOL)))
    assert "late" not in found.sources_
    assert sources.session.late() == [5]
    assert any("came after" in why for why in sources.facts.left_out.values())


@pytest.mark.parametrize("name", ["site-2", "ours", "", "a\nb"])
def test_names_are_plain_and_belong_to_one_site(name):
    sites = sites_of(*POOL)
    sites[1] = Site(name, sites[1].rows)
    found, sources = federated(POOL, classifier(), carrier=LocalCarrier(sites))
    left_out = {"site-2"} if name == "site-2" else {name} if name == "ours" else {"node 1"}
    assert set(sources.facts.left_out) == left_out
    assert len(found.sources_) == 6 - 1 - (name == "site-2")


def test_labels_that_the_reference_does_not_have_leave_their_site_out():
    X, y, names = POOL
    y = np.where((names == "site-0") & (y == 1), 7, y)
    found, sources = federated((X, y, names), classifier())
    assert list(sources.facts.left_out) == ["site-0"]
    assert "its own log says why" in sources.facts.left_out["site-0"]
    assert "7" not in sources.facts.left_out["site-0"]  # no value of a row travels
    assert len(found.sources_) == 5


def test_a_claim_of_many_rows_counts_as_twice_the_reference():
    X, y, names = rows(n_sites=5, n_ref=80, bad=())

    class Claiming(Site):
        def _answer(self, question, content, data):
            answer = super()._answer(question, content, data)
            if question == "describe":
                record = answer["describe.arrays"]
                for part in (".rows", ".sizes"):
                    record[part] = Array(np.array([1e9]))
            return answer

    sites = sites_of(X, y, names)
    sites[0] = Claiming(sites[0].name, sites[0].rows)
    found, sources = federated((X, y, names), classifier(), carrier=LocalCarrier(sites))
    assert sources.facts.capped == {"site-0": 1e9}
    assert found.source_sizes_[1] == pytest.approx(160.0)
    assert in_memory((X, y, names), classifier()).source_sizes_[1] == pytest.approx(60.0)


def test_what_an_owner_refuses_is_named_and_the_rest_go_on():
    sites = sites_of(*POOL)
    refusing = Policy(questions=("describe", "look"))
    sites[0] = Site(sites[0].name, sites[0].rows, refusing)
    sites[2] = Site(sites[2].name, sites[2].rows, Policy(least_rows=1000))
    found, sources = federated(POOL, classifier(), carrier=LocalCarrier(sites))
    assert "does not allow the question 'derivatives'" in sources.facts.left_out["site-0"]
    assert "fewer rows" in sources.facts.left_out["site-2"]
    assert found.sources_.tolist() == ["ours", "site-1", "site-3", "site-4"]
