from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict
from made_up_sites import classifier, federated, rows

from sourcewise.engines.flower import TrustedFedAvg


def record(**arrays):
    return ArrayRecord({name: Array(np.asarray(value)) for name, value in arrays.items()})


def reply(node, arrays, claimed=10, error=False):
    content = RecordDict({"a": arrays, "m": MetricRecord({"num-examples": claimed})})
    return SimpleNamespace(
        metadata=SimpleNamespace(src_node_id=node), has_error=lambda: error, content=content
    )


def strategy(weights=None, sent=None, monkeypatch=None, **options):
    made = TrustedFedAvg(weights or {1: 0.6, 2: 0.2, 3: 0.0}, **options)
    made._construct_messages = lambda record, nodes, kind: list(nodes)
    grid = SimpleNamespace(get_node_ids=lambda: [1, 2, 3, 4])
    sent = sent or record(w=np.zeros(2, dtype=np.float32))
    nodes = made.configure_train(1, sent, ConfigRecord(), grid)
    return made, nodes


def test_only_nodes_with_a_weight_are_asked():
    assert strategy()[1] == [1, 2]


@pytest.mark.parametrize("claimed", [1, 10**9])
def test_what_a_client_claims_changes_nothing(claimed):
    made, _ = strategy()
    first, second = record(w=np.array([1.0, 0.0])), record(w=np.array([0.0, 1.0]))
    arrays, _ = made.aggregate_train(1, [reply(1, first), reply(2, second, claimed)])
    found = arrays["w"].numpy()
    np.testing.assert_allclose(found, [0.75, 0.25])
    assert found.dtype == np.float32  # as it was sent


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (record(w=np.array([np.nan, 0.0])), "NaN"),
        (record(w=np.zeros((2, 2))), "shape"),
        (record(v=np.zeros(2)), "other arrays"),
        (record(w=np.zeros(1_000_000)), "bytes"),
    ],
)
def test_contributions_that_cannot_be_used_are_left_out(bad, why):
    made, _ = strategy()
    arrays, _ = made.aggregate_train(1, [reply(1, bad), reply(2, record(w=np.ones(2)))])
    np.testing.assert_array_equal(arrays["w"].numpy(), [1.0, 1.0])
    assert why in made.left_out[1, 1]


def test_a_contribution_that_harms_the_reference_is_left_out():
    made, _ = strategy(judge=lambda arrays: float(np.abs(arrays["w"].numpy()).max()), most_harm=0.5)
    poisoned, fine = record(w=np.array([5.0, 5.0])), record(w=np.array([0.1, 0.2]))
    arrays, _ = made.aggregate_train(1, [reply(1, poisoned), reply(2, fine)])
    np.testing.assert_allclose(arrays["w"].numpy(), [0.1, 0.2], rtol=1e-6)
    assert "raises the loss" in made.left_out[1, 1]


def test_nobody_left_is_one_sentence():
    made, _ = strategy()
    with pytest.raises(ValueError, match="No contribution to round 1"):
        made.aggregate_train(1, [reply(1, record(w=np.zeros(2)), error=True)])


@pytest.mark.parametrize("weights", [{1: -1.0}, {1: float("nan")}, {1: 0.0}])
def test_weights_are_checked(weights):
    with pytest.raises(ValueError, match="weight"):
        TrustedFedAvg(weights)


def test_node_weights_are_those_of_the_sites():
    found, sources = federated(rows(), classifier())
    weights = sources.node_weights(found)
    assert list(weights) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(list(weights.values()), found.source_weights_[1:])
