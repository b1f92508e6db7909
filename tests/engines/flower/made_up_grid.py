"""Flower's grid without a network: messages go to client apps in this process."""

from __future__ import annotations

import copy
from itertools import count

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity


def be_a_task(monkeypatch):
    """Be what Flower's messages want to come from."""
    for name in ("_task_id", "_run_id", "_node_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def context(node=0, run_config=None, **node_config):
    return Context(
        run_id=1,
        node_id=node,
        node_config=node_config,
        state=RecordDict(),
        run_config=run_config or {},
    )


class MadeUpGrid:
    """Hands every message to its node's app; some never answer, others fail or have left.

    Parameters
    ----------
    apps : dict
        By node, a pair of client app and context.
    silent, failing, left : sequence of int
    """

    def __init__(self, apps, silent=(), failing=(), left=()):
        self.apps, self.silent, self.failing, self.left = apps, silent, failing, left
        self.sent: dict[str, Message] = {}
        self._ids = count()

    def get_node_ids(self):
        return list(self.apps)

    def push_messages(self, messages):
        ids = []
        for message in messages:
            gone = message.metadata.dst_node_id in self.left
            ids.append("" if gone else f"message-{next(self._ids)}")
            message.metadata.__dict__["_message_id"] = ids[-1]
            if not gone:
                self.sent[ids[-1]] = message
        return ids

    def pull_messages(self, message_ids):
        assert all(message_ids)  # Flower answers for what was never sent in words of its own
        replies = [self._reply(self.sent.pop(m)) for m in list(message_ids) if m in self.sent]
        return [reply for reply in replies if reply is not None]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))

    def _reply(self, message):
        node = message.metadata.dst_node_id
        if node in self.silent:
            return None
        if node in self.failing:
            return Message(Error(code=5, reason="Node\nunavailable."), reply_to=message)
        app, its_context = self.apps[node]
        try:
            # A copy, as one over a network is.
            reply = app(copy.deepcopy(message), its_context)
        except Exception as error:  # as Flower's client process does
            return Message(Error(code=2, reason=str(error)), reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = node
        return reply
