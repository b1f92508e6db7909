"""Federated averaging of any model, with the trust weights as the weights.

Flower's own strategy weighs a client by a number that the client sends: one that claims a thousand
million rows owns the model. Here the weights are set on the server, and what a client claims
changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg

from sourcewise.engines.flower import wire

NO_WEIGHT = "No client has any weight; the reference alone is left, which needs no averaging."
BAD_WEIGHT = "The weight of node {node} must be a number that is not negative; got {value!r}."
NOBODY_LEFT = "No contribution to round {round} can be used: {why}."
NO_ANSWER = "it did not answer"
HARMFUL = "it raises the loss on the reference from {before:.3f} to {after:.3f}"

Judge = Callable[[ArrayRecord], float]


class TrustedFedAvg(FedAvg):
    """FedAvg whose weights are those of the sources.

    Parameters
    ----------
    weights : dict
        Weight of each node, as :meth:`FlowerSources.node_weights` gives them. Nodes without one are
        not asked.
    judge : callable, optional
        Loss on the reference of a model, given as an ``ArrayRecord``. A contribution that is worse
        than what was sent by more than ``most_harm`` is left out of its round.
    most_harm : float
        In units of the judge.
    **options
        Those of :class:`flwr.serverapp.strategy.FedAvg`. Clients are not asked for evaluations
        unless ``fraction_evaluate`` says so: these would be weighted by what clients claim.

    Attributes
    ----------
    left_out : dict
        By round and node, why a contribution was left out.

    Examples
    --------
    >>> from sourcewise.engines.flower import TrustedFedAvg
    >>> strategy = TrustedFedAvg({11: 0.75, 12: 0.25, 13: 0.0})
    >>> strategy.weights
    {11: 0.75, 12: 0.25}

    In a server app, with the weights of a fitted model::

        strategy = TrustedFedAvg(sources.node_weights(model), judge=loss_on_the_reference)
        strategy.start(grid=grid, initial_arrays=arrays, num_rounds=20)
    """

    def __init__(
        self,
        weights: Mapping[int, float],
        *,
        judge: Judge | None = None,
        most_harm: float = 0.05,
        **options: Any,
    ):
        self.weights = checked_weights(weights)
        super().__init__(**{"fraction_evaluate": 0.0, **options})
        self.judge, self.most_harm = judge, most_harm
        self.left_out: dict[tuple[int, int], str] = {}
        self._sent: ArrayRecord | None = None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Send the model to every node that has a weight."""
        self._sent = arrays
        config["server-round"] = server_round
        record = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: config})
        there = set(grid.get_node_ids())
        for node in self.weights:
            if node not in there:
                self.left_out[server_round, node] = NO_ANSWER
        return self._construct_messages(record, sorted(there & set(self.weights)), "train")

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Average what can be used, under our own weights."""
        found: dict[int, dict[str, np.ndarray]] = {}
        assert self._sent is not None
        before = None if self.judge is None else self.judge(self._sent)
        for reply in replies:
            node = reply.metadata.src_node_id
            try:
                if reply.has_error():
                    raise wire.BadMessage(NO_ANSWER)
                arrays = self._checked(reply.content)
                self._check_harm(arrays, before)
            except wire.BadMessage as error:
                self.left_out[server_round, node] = str(error)
                continue
            if node in self.weights:
                found[node] = arrays
        if not found:
            why = "; ".join(w for (r, _), w in self.left_out.items() if r == server_round)
            raise ValueError(NOBODY_LEFT.format(round=server_round, why=why or NO_ANSWER))
        return _as_record(self._average(found), self._sent), MetricRecord()

    def _average(self, found: Mapping[int, Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
        total = sum(self.weights[node] for node in found)
        names = next(iter(found.values()))
        shares = np.array([self.weights[node] / total for node in sorted(found)])
        return {
            name: np.einsum("i,i...->...", shares, [found[node][name] for node in sorted(found)])
            for name in names
        }

    def _checked(self, content: RecordDict) -> dict[str, np.ndarray]:
        """Read arrays of the names and shapes that were sent, all numbers finite."""
        assert self._sent is not None
        records = list(content.array_records.values())
        expected = {name: array.numpy() for name, array in self._sent.items()}
        wire.check_bytes(content, 65_536 + 2 * sum(a.nbytes + 128 for a in expected.values()))
        if len(records) != 1 or set(records[0]) != set(expected):
            raise wire.BadMessage("it sends other arrays than it was sent")
        found = {name: wire.read_array(array, name) for name, array in records[0].items()}
        for name, value in found.items():
            wire.check_like(value.astype(np.float64), expected[name].astype(np.float64), name)
        return found

    def _check_harm(self, arrays: Mapping[str, np.ndarray], before: float | None) -> None:
        if self.judge is None or before is None or self._sent is None:
            return
        after = self.judge(_as_record(arrays, self._sent))
        if not after <= before + self.most_harm:
            raise wire.BadMessage(HARMFUL.format(before=before, after=after))


def checked_weights(weights: Mapping[int, float]) -> dict[int, float]:
    """Return the weights of the nodes that have one."""
    for node, value in weights.items():
        if not (np.isfinite(value) and value >= 0.0):
            raise ValueError(BAD_WEIGHT.format(node=node, value=value))
    found = {node: float(value) for node, value in weights.items() if value > 0.0}
    if not found:
        raise ValueError(NO_WEIGHT)
    return found


def _as_record(arrays: Mapping[str, np.ndarray], like: ArrayRecord) -> ArrayRecord:
    """Arrays in the order, and of the types, of what was sent."""
    kinds = {name: array.numpy().dtype for name, array in like.items()}
    return ArrayRecord({name: Array(np.asarray(arrays[name], kinds[name])) for name in like})
