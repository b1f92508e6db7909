"""The client's side: who asks what, whether the owner allows it, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from sourcewise.core.data import SourceData
from sourcewise.engines.flower import wire
from sourcewise.engines.flower.guards import into_range
from sourcewise.engines.flower.policy import (
    Policy,
    SiteFile,
    protect,
    read_site_file,
    write_log,
)
from sourcewise.engines.flower.questions import QUESTIONS, TRAVELLERS, Description, name_of
from sourcewise.engines.flower.setup import SETUP_CLASSES, Setup, read_site

SETUP, SITE, REFUSED = "setup", "site", "refused"

# What a server is told; the details stay in the owner's log.
REFUSALS = {
    "not-allowed": "its owner does not allow the question {question!r}",
    "too-few-rows": "it has fewer rows than its owner answers for",
    "bad-rows": "its rows could not be read by the reference's rules (its own log says why)",
    "bad-question": "it could not make sense of the question {question!r}",
}


class Refusal(Exception):
    """A question that is not answered: a reason for the server, details for the owner."""

    def __init__(self, reason: str, details: str = ""):
        super().__init__(reason)
        self.reason, self.details = reason, details


@dataclass(frozen=True)
class Site:
    """A source that answers from rows of its own.

    Attributes
    ----------
    name : str
    rows : callable
        Features and labels as they are, by the server's `Setup`.
    policy : Policy

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.engines.flower import Policy, Site
    >>> X, y = np.zeros((60, 2)), np.zeros(60, dtype=int)
    >>> site = Site.of_arrays("north", X, y, Policy(least_rows=50))
    >>> site.name, site.policy.least_rows
    ('north', 50)
    """

    name: str
    rows: Callable[[Setup], tuple[np.ndarray, np.ndarray]]
    policy: Policy = Policy()

    @classmethod
    def of_arrays(cls, name: str, X: Any, y: Any, policy: Policy | None = None) -> Site:
        """Make a site of rows in memory."""
        rows = np.asarray(X), np.asarray(y)
        return cls(name, lambda setup: rows, policy or Policy())

    @classmethod
    def of_file(cls, file: SiteFile) -> Site:
        """Make a site of a table, read anew for every message."""
        return cls(file.name, lambda setup: read_site(file.data, setup, file.columns), file.policy)

    def answer(self, content: RecordDict) -> RecordDict:
        """Answer all questions of a message, or refuse them one by one."""
        reply = RecordDict({SITE: ConfigRecord({"name": self.name})})
        log: list[dict[str, Any]] = []
        try:
            wire.check_bytes(content, self.policy.most_bytes)
            asked = _questions_in(content)
        except wire.BadMessage as error:
            asked = []
            reply[f"{REFUSED}.all"] = ConfigRecord({"why": "bad-question"})
            log.append({"question": "all", "outcome": "refused", "why": str(error)})
        data: SourceData | None = None
        for question in asked:
            entry: dict[str, Any] = {"question": question}
            try:
                if question not in self.policy.questions:
                    raise Refusal("not-allowed")
                if data is None:
                    data = self._data(content)
                answered = self._answer(question, content, data)
                reply.update(answered)
                entry |= {"outcome": "answered", "bytes": wire.n_bytes(RecordDict(answered))}
            except Refusal as refusal:
                reply[f"{REFUSED}.{question}"] = ConfigRecord({"why": refusal.reason})
                entry |= {"outcome": "refused", "why": refusal.details or refusal.reason}
            log.append(entry)
        write_log(self.policy, log)
        return reply

    def _data(self, content: RecordDict) -> SourceData:
        try:
            setup = wire.unpack(content, SETUP, SETUP_CLASSES)
            if not isinstance(setup, Setup):
                raise wire.BadMessage("the setup is not one")
        except (wire.BadMessage, TypeError, AttributeError) as error:
            raise Refusal("bad-question", str(error)) from error
        try:
            X, y = self.rows(setup)
            if len(y) < self.policy.least_rows:
                raise Refusal("too-few-rows", f"{len(y)} rows")
            return setup.apply(X, y, self.name)
        except (ValueError, TypeError, OSError) as error:
            raise Refusal("bad-rows", str(error)) from error

    def _answer(self, question: str, content: RecordDict, data: SourceData) -> dict[str, Any]:
        try:
            message = wire.unpack(content, question, TRAVELLERS)
            if type(message) is not QUESTIONS.get(question):
                raise wire.BadMessage(f"it is not a question {question!r}")
            # A message may be made of sound parts that do not fit each other.
            found = message.answer(data, [self.name])
        except (
            wire.BadMessage,
            ArithmeticError,
            AttributeError,
            IndexError,
            MemoryError,
            TypeError,
            ValueError,
        ) as error:
            raise Refusal("bad-question", f"{type(error).__name__}: {error}") from error
        if question != name_of(message):
            raise Refusal("bad-question")
        if isinstance(found, Description):  # told as it is, with what is added to all else
            return wire.pack(replace(found, noise=np.array([self.policy.noise])), question)
        return wire.pack(self._protected(found, message, content), question)

    def _protected(self, found: Any, message: Any, content: RecordDict) -> Any:
        """Clip, add noise, and keep numbers in the range that they have by nature."""
        if not (self.policy.clip or self.policy.noise):
            return found
        moved = wire.map_arrays(found, lambda arrays: protect(arrays, self.policy))
        setup: Setup = wire.unpack(content, SETUP, SETUP_CLASSES)
        return into_range(moved, message, setup.longest)


def _questions_in(content: RecordDict) -> list[str]:
    ending = f".{wire.NUMBERS}"
    names = [name.removesuffix(ending) for name in content.config_records if name.endswith(ending)]
    return [name for name in names if name != SETUP]


def client_app() -> ClientApp:
    """Make the Flower client: each node's configuration names its site file, ``site="..."``.

    Returns
    -------
    app : flwr.clientapp.ClientApp

    Examples
    --------
    The module that a Flower project names as its ``clientapp``:

    >>> from sourcewise.engines.flower import client_app
    >>> app = client_app()
    >>> type(app).__name__
    'ClientApp'
    """
    app = ClientApp()

    @app.query()
    def query(message: Message, context: Context) -> Message:
        file = read_site_file(Path(str(context.node_config.get("site", "site.toml"))))
        return Message(Site.of_file(file).answer(message.content), reply_to=message)

    return app
