"""Flower's own SecAgg+ at both ends; only the network between them is left out."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

from sourcewise.engines.flower import secure_average, secure_client_app
from sourcewise.engines.flower import secure_averaging as module

NODES = [11, 12, 13, 14, 15]


def context(node=0):
    return Context(run_id=1, node_id=node, node_config={}, state=RecordDict(), run_config={})


class Grid:
    """Hands every message to its node's client app; remembers what the server is sent."""

    run = SimpleNamespace(run_id=1)

    def __init__(self, nodes, train, silent=()):
        self.contexts = {node: context(node) for node in nodes}
        self.apps = {
            node: secure_client_app(lambda arrays, config, n=node: train(n, arrays, config))
            for node in nodes
        }
        self.silent, self.answers = silent, []

    def get_node_ids(self):
        return list(self.apps)

    def send_and_receive(self, messages, timeout=None):
        return [self._answer(message) for message in messages]

    def _answer(self, message):
        node = message.metadata.dst_node_id
        stage = message.content.config_records["secaggplus_configs"].get("stage", "")
        if (node, stage) in self.silent:
            return Message(Error(code=5, reason="gone"), reply_to=message)
        # A copy, as one over a network is.
        reply = self.apps[node](copy.deepcopy(message), self.contexts[node])
        self.answers.append((node, reply.content))
        return reply


@pytest.fixture(autouse=True)
def identity(monkeypatch):
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def vectors(nodes):
    rng = np.random.default_rng(0)
    return {node: [rng.normal(size=(3, 4)), rng.normal(size=2)] for node in nodes}


def weighted_mean(found, weights):
    total = sum(weights.values())
    return [sum(weights[node] / total * found[node][k] for node in weights) for k in range(2)]


def start():
    return [np.zeros((3, 4)), np.zeros(2)]


def test_the_sum_is_the_mean_under_the_weights_of_the_server():
    mine = vectors(NODES)
    grid = Grid(NODES, lambda node, arrays, config: mine[node])
    weights = {11: 0.5, 12: 0.25, 13: 0.125, 14: 0.125, 15: 0.0}
    found = secure_average(grid, context(), weights, start())
    expected = weighted_mean(mine, {n: w for n, w in weights.items() if w})
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)
    assert {node for node, _ in grid.answers} == {11, 12, 13, 14}  # without weight: not asked


def test_rounds_go_on_from_the_last_mean():
    grid = Grid(NODES, lambda node, arrays, config: [a + config["step"] for a in arrays])
    weights = dict.fromkeys(NODES, 0.2)
    found = secure_average(grid, context(), weights, start(), num_rounds=3, config={"step": 0.5})
    np.testing.assert_allclose(found[0], 1.5, atol=1e-3)


def test_no_answer_holds_the_numbers_of_a_site():
    mine = vectors(NODES)
    grid = Grid(NODES, lambda node, arrays, config: mine[node])
    secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())
    for node, content in grid.answers:
        assert not any(len(record) for record in content.array_records.values())
        for record in content.config_records.values():
            for value in record.values():
                for item in value if isinstance(value, list) else [value]:
                    if isinstance(item, bytes):
                        assert mine[node][0].tobytes() not in item


def test_a_site_lost_on_the_way_leaves_the_mean_of_the_others():
    mine = vectors(NODES)
    lost = [(12, "collect_masked_vectors")]
    grid = Grid(NODES, lambda node, arrays, config: mine[node], silent=lost)
    found = secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())
    expected = weighted_mean(mine, dict.fromkeys([11, 13, 14, 15], 0.25))
    np.testing.assert_allclose(found[0], expected[0], atol=1e-4)


def test_too_few_answers_are_one_sentence():
    silent = [(node, "share_keys") for node in NODES[1:]]
    grid = Grid(NODES, lambda node, arrays, config: arrays, silent=silent)
    with pytest.raises(ValueError, match=module.FAILED.format(round=1)):
        secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())


def test_a_secure_sum_needs_three_sites():
    grid = Grid(NODES[:2], lambda node, arrays, config: arrays)
    with pytest.raises(ValueError, match="3 sites with a weight, and 2 of them"):
        secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())


def test_another_weight_than_the_one_that_was_sent_is_refused(monkeypatch):
    honest = module._Trained.fit

    def boasting(self, parameters, config):
        arrays, _, metrics = honest(self, parameters, config)
        return arrays, 10**6, metrics

    monkeypatch.setattr(module._Trained, "fit", boasting)
    grid = Grid(NODES, lambda node, arrays, config: arrays)
    with pytest.raises(ValueError, match="applied the weight 1000000, not 1000"):
        secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())


def test_sums_that_are_no_model_are_refused():
    grid = Grid(NODES, lambda node, arrays, config: [np.zeros(7), np.zeros(2)])
    with pytest.raises(ValueError, match="secure sum of round 1"):
        secure_average(grid, context(), dict.fromkeys(NODES, 0.2), start())
