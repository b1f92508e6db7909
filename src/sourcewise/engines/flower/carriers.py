"""How messages get to the sites and back: over Flower's grid, or by a call in this process."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid

from sourcewise.engines.flower.client import Site
from sourcewise.engines.flower.ledger import Ledger

REFUSED_CODE = 0  # of an error that is a site's own sentence, not Flower's
POLL = 0.1  # seconds between two looks for answers; Flower's own way waits 3
NO_ANSWER = "it did not answer within {seconds:.0f} seconds"
GONE = "its node failed or left ({why})"
LEFT = "its node has left"

Replies = dict[int, RecordDict | str]


class Carrier(Protocol):
    """Takes messages to nodes."""

    def nodes(self) -> Sequence[int]:
        """Nodes that are there now."""

    def exchange(self, messages: Mapping[int, RecordDict], timeout: float) -> Replies:
        """Send a message to each node; returns the reply, or in words why there is none."""


class GridCarrier:
    """Sites behind Flower's SuperLink.

    Parameters
    ----------
    grid : flwr.serverapp.Grid
        What a server app is given.

    Examples
    --------
    A grid is what a server app is given; this one has two nodes and nothing else.

    >>> from types import SimpleNamespace
    >>> from sourcewise.engines.flower import GridCarrier
    >>> grid = SimpleNamespace(get_node_ids=lambda: [7, 3])
    >>> GridCarrier(grid).nodes()
    [3, 7]
    """

    def __init__(self, grid: Grid):
        self.grid = grid

    def nodes(self) -> Sequence[int]:
        """Nodes that are connected."""
        return sorted(self.grid.get_node_ids())

    def exchange(self, messages: Mapping[int, RecordDict], timeout: float) -> Replies:
        """Push, and pull until all have answered or the time is up."""
        begin = time.monotonic()
        sent = [
            Message(content, dst_node_id=node, message_type="query", ttl=timeout + 60.0)
            for node, content in messages.items()
        ]
        replies: Replies = {node: NO_ANSWER.format(seconds=timeout) for node in messages}
        waiting: dict[str, int] = {}
        numbers: Iterable[str | None] = self.grid.push_messages(sent)
        for number, node in zip(numbers, messages, strict=True):
            if number:
                waiting[number] = node
            else:  # the SuperLink does not know the node any more
                replies[node] = LEFT
        while waiting:
            for reply in self.grid.pull_messages(list(waiting)):
                asked = str(reply.metadata.reply_to_message_id)
                if asked in waiting:
                    replies[waiting.pop(asked)] = _content_of(reply)
            if time.monotonic() - begin > timeout:
                break
            if waiting:
                time.sleep(POLL)
        return replies


def _content_of(reply: Message) -> RecordDict | str:
    if not reply.has_error():
        return reply.content
    reason = " ".join(str(reply.error.reason or f"code {reply.error.code}").split())
    if reply.error.code == REFUSED_CODE:
        return reason[:200].rstrip(".")
    return GONE.format(why=reason.partition(". ")[0][:200].rstrip("."))


class LocalCarrier:
    """Sites in this process, for tests and for trying things out.

    Parameters
    ----------
    sites : sequence of Site

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.engines.flower import LocalCarrier, Site
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    >>> sites = [Site.of_arrays("north", X[:30], y[:30]), Site.of_arrays("south", X[30:], y[30:])]
    >>> list(LocalCarrier(sites).nodes())
    [0, 1]
    """

    def __init__(self, sites: Sequence[Site]):
        self.sites = list(sites)
        self._ledgers: dict[int, Ledger] = {}

    def nodes(self) -> Sequence[int]:
        """Positions of the sites."""
        return range(len(self.sites))

    def exchange(self, messages: Mapping[int, RecordDict], timeout: float) -> Replies:
        """Let every site answer."""
        for node in messages:
            if node not in self._ledgers:
                self._ledgers[node] = Ledger(self.sites[node].policy.log)
        return {
            node: self.sites[node].answer(content, 0, self._ledgers[node])
            for node, content in messages.items()
        }
