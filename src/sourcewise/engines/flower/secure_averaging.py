"""Federated averaging of which the server sees nothing but the sum: Flower's SecAgg+.

What is hidden from the server cannot be checked by it. Behind a secure sum no site's contribution
can be held against the reference, and the site itself applies the weight that it is told: use it
with sites that may be careless, not with sites that may lie. Where lies are possible, use
:class:`~sourcewise.engines.flower.TrustedFedAvg`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.client import Client, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import FitIns, Parameters, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import Grid

from sourcewise.core.data import FloatArray
from sourcewise.engines.flower.averaging import checked_weights

LEAST_SITES = 3  # a sum of two tells each of them what the other has sent
FINENESS = 1000  # Flower counts weights in whole numbers; the largest becomes this one
WEIGHT = "trust-weight"

TOO_FEW = (
    "A secure sum needs {least} sites with a weight, and {found} of them are there; with fewer "
    "it would hide nothing."
)
FAILED = (
    "Round {round} of the secure sum was not finished: too few sites answered all four messages."
)
OTHER_WEIGHT = (
    "Node {node} says that it applied the weight {got}, not {sent}; within a secure sum its part "
    "cannot be taken out, so nothing is returned."
)
BAD_SUM = "The secure sum of round {round} is not what was sent in shape, or not finite."

Train = Callable[[list[FloatArray], dict[str, Any]], Sequence[FloatArray]]


def secure_client_app(train: Train) -> ClientApp:
    """Return a client app that hides its answers in a sum, under the weight that it is told.

    Parameters
    ----------
    train : callable
        Takes the model's arrays and the configuration of the round, returns arrays of the same
        shapes.

    Returns
    -------
    app : flwr.clientapp.ClientApp

    Examples
    --------
    The module that a Flower project names as its ``clientapp``:

    >>> from sourcewise.engines.flower import secure_client_app
    >>> def train(arrays, config):
    ...     return [array + config["step"] for array in arrays]
    >>> app = secure_client_app(train)
    >>> type(app).__name__
    'ClientApp'
    """

    def client_fn(context: Context) -> Client:
        return _Trained(train).to_client()

    return ClientApp(client_fn=client_fn, mods=[secaggplus_mod])


class _Trained(NumPyClient):
    def __init__(self, train: Train):
        self.train = train

    def fit(
        self, parameters: list[FloatArray], config: dict[str, Any]
    ) -> tuple[list[FloatArray], int, dict[str, Any]]:
        """Train; the number of rows that Flower asks for is the weight that we were told."""
        return list(self.train(parameters, config)), int(config[WEIGHT]), {}


def secure_average(
    grid: Grid,
    context: Context,
    weights: Mapping[int, float],
    arrays: Sequence[FloatArray],
    *,
    num_rounds: int = 1,
    clipping_range: float = 8.0,
    timeout: float | None = 600.0,
    config: Mapping[str, Any] | None = None,
) -> list[FloatArray]:
    """Average a model over the sites by SecAgg+, under the weights of the sources.

    No check of a single site is possible here, and the sites apply their weights themselves.

    Parameters
    ----------
    grid, context
        What Flower gives a server app.
    weights : dict
        Weight of each node, as :meth:`FlowerSources.node_weights` gives them.
    arrays : sequence of array
        The model to begin with.
    num_rounds : int
        Of four messages each.
    clipping_range : float
        Weighted parameters beyond this number are cut off by the sites.
    timeout : float, optional
        Seconds to wait for the answers to a message.
    config : dict, optional
        What else the sites' ``train`` is given.

    Returns
    -------
    arrays : list of array

    Examples
    --------
    With fewer than three sites a sum would hide nothing, and none is asked for:

    >>> from types import SimpleNamespace
    >>> from sourcewise.engines.flower import secure_average
    >>> grid = SimpleNamespace(get_node_ids=lambda: [11, 12])
    >>> secure_average(grid, None, {11: 0.5, 12: 0.5}, [])
    Traceback (most recent call last):
    ...
    ValueError: A secure sum needs 3 sites with a weight, and 2 of them are there; ...

    In a server app, with the weights of a fitted model::

        arrays = secure_average(grid, context, sources.node_weights(model), arrays, num_rounds=3)
    """
    told = _whole_weights(checked_weights(weights))
    there = set(grid.get_node_ids())
    if len(there & set(told)) < LEAST_SITES:
        raise ValueError(TOO_FEW.format(least=LEAST_SITES, found=len(there & set(told))))
    strategy = _ToldWeights(told, [np.asarray(array) for array in arrays], dict(config or {}))
    legacy = LegacyContext(context, ServerConfig(num_rounds=num_rounds), strategy)
    summing = SecAggPlusWorkflow(
        num_shares=1.0,
        reconstruction_threshold=0.5,
        max_weight=float(FINENESS),
        clipping_range=clipping_range,
        timeout=timeout,
    )
    DefaultWorkflow(fit_workflow=summing)(grid, legacy)
    if strategy.problem:
        raise ValueError(strategy.problem)
    if strategy.rounds < num_rounds:
        raise ValueError(FAILED.format(round=strategy.rounds + 1))
    return strategy.arrays


class _ToldWeights(FedAvg):
    """Asks every node that has a weight, and tells it its own."""

    def __init__(self, told: Mapping[int, int], arrays: list[FloatArray], config: dict[str, Any]):
        super().__init__(fraction_evaluate=0.0, initial_parameters=ndarrays_to_parameters(arrays))
        self.told, self.arrays, self.config = told, arrays, config
        self.rounds = 0
        # Said when the workflow has ended: it leaves a thread behind if it is interrupted.
        self.problem = ""

    def configure_fit(
        self, server_round: int, parameters: Parameters, client_manager: Any
    ) -> list[tuple[Any, FitIns]]:
        """Send the model with the node's weight."""
        if self.problem:
            return []
        return [
            (proxy, FitIns(parameters, {**self.config, WEIGHT: self.told[proxy.node_id]}))
            for proxy in client_manager.all().values()
            if proxy.node_id in self.told
        ]

    def aggregate_fit(
        self, server_round: int, results: Any, failures: Any
    ) -> tuple[Parameters | None, dict[str, Any]]:
        """Take the sum as it is: all results hold the same one."""
        summed: Parameters = results[0][1].parameters
        found = parameters_to_ndarrays(summed)
        self.problem = self._problem(server_round, results, found)
        if self.problem:
            return None, {}
        kinds = [array.dtype for array in self.arrays]
        self.arrays = [a.astype(kind) for a, kind in zip(found, kinds, strict=True)]
        self.rounds += 1
        return ndarrays_to_parameters(self.arrays), {}

    def _problem(self, server_round: int, results: Any, found: list[FloatArray]) -> str:
        for proxy, result in results:
            got, sent = result.num_examples, self.told[proxy.node_id]
            if got != sent:
                return OTHER_WEIGHT.format(node=proxy.node_id, got=got, sent=sent)
        shapes = [array.shape for array in self.arrays]
        if [a.shape for a in found] != shapes or not all(np.isfinite(a).all() for a in found):
            return BAD_SUM.format(round=server_round)
        return ""


def _whole_weights(weights: Mapping[int, float]) -> dict[int, int]:
    """Weights as whole numbers; what rounds to nothing is left out."""
    most = max(weights.values())
    whole = {node: round(FINENESS * value / most) for node, value in weights.items()}
    return {node: value for node, value in whole.items() if value}
