"""One server's talk with its sites: who is there, what each has answered, what it has cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import RecordDict

from sourcewise.core.data import SourceData
from sourcewise.core.engine import Arrays, Message, SourcesChanged
from sourcewise.engines.flower import wire
from sourcewise.engines.flower.carriers import Carrier
from sourcewise.engines.flower.client import REFUSALS, REFUSED, SETUP, SITE
from sourcewise.engines.flower.guards import check_ranges
from sourcewise.engines.flower.questions import LEARNERS, describe, name_of
from sourcewise.engines.flower.setup import Setup

OTHER_NAME = "it calls itself {found!r} now"
NAMELESS = "it has no name"
NAME_TWICE = "there are several sites of this name"
REFERENCE_NAME = "it has the name of the reference"
BAD_ANSWER = "its answer cannot be used: {why}"
NO_REASON = "it refused the question {question!r}"
BAD_COUNT = "it says that it has {rows} rows"
TOO_LATE = "it came after the first question"
TOO_FEW_SITES = (
    "{found} of {known} sites can be used, and at least {least} are wanted; left out: {why}."
)
NO_SITES = "No site is connected; start the sites first, or wait longer for them."
SITES_LOST = "Sites have been left out: {why}."

ROOM = 65_536  # bytes that an answer may take beside its arrays
LONGEST_NAME = 200
MOST_TOLD = 5  # sites that a sentence names


@dataclass(frozen=True)
class Round:
    """One round of messages."""

    questions: tuple[str, ...]
    sites: int
    down: int  # bytes of all messages together
    up: int
    seconds: float


class Session:
    """Asks sites, checks their answers, remembers them, and leaves out whoever cannot be used.

    A site has ``timeout`` seconds for an answer, and with fewer than ``least_sites`` there is no
    result. Every `Round` is told to ``on_round``; ``on_expected`` is told about how many are coming
    before a choice of the trade-off that asks for each.
    """

    def __init__(
        self,
        carrier: Carrier,
        timeout: float,
        least_sites: int,
        on_round: Callable[[Round], None] | None = None,
        on_expected: Callable[[int], None] | None = None,
    ):
        self.on_expected = on_expected
        self.carrier, self.timeout, self.least_sites = carrier, timeout, least_sites
        self.on_round = on_round
        self.node_of: dict[str, int] = {}
        self.described: dict[str, Arrays] = {}
        self.left_out: dict[str, str] = {}
        self.rounds: list[Round] = []
        self._nodes: list[int] = []
        self._answers: dict[tuple[str, str], Any] = {}
        self._setup: dict[str, Any] = {}
        self._probe: SourceData | None = None
        self._longest = float("inf")
        self._like: dict[int, tuple[Message, Arrays]] = {}

    @property
    def names(self) -> list[str]:
        """Sites that are taken part, in alphabetical order."""
        return sorted(name for name in self.node_of if name not in self.left_out)

    # -- the beginning -----------------------------------------------------------------------

    def begin(self, setup: Setup, probe: SourceData, reference: object) -> None:
        """Tell the sites the rules and ask who they are; ``probe`` shows what answers look like."""
        packed = wire.pack(setup, SETUP)
        self._longest = setup.longest
        known = bool(self._setup) and wire.digest(packed) == wire.digest(self._setup)
        self._probe = probe
        if known:
            return
        self._setup, self._answers = packed, {}
        nodes = self._nodes = list(self.carrier.nodes())
        if not nodes:
            raise ValueError(NO_SITES)
        message = Message(describe, {})
        replies = self._exchange({node: [message] for node in nodes})
        self.node_of, self.described = {}, {}
        found: dict[str, list[int]] = {}
        for node, reply in replies.items():
            found.setdefault(_name_in(reply) or f"node {node}", []).append(node)
        for name, mine in found.items():
            self.node_of[name] = mine[0]
            why = _not_a_name(name, mine, replies, reference)
            answer = why or self._read(replies[mine[0]], [message], None)[0]
            if isinstance(answer, dict) and not _sound_counts(answer):
                answer = BAD_COUNT.format(rows=float(answer["rows"][0]))
            if isinstance(answer, str):
                self.left_out.setdefault(name, answer)
            else:
                self.described[name] = answer
        self._enough()

    def expect(self, rounds: int) -> None:
        """Tell whoever listens how many rounds are coming."""
        if self.on_expected is not None:
            self.on_expected(rounds)

    def late(self) -> list[int]:
        """Nodes that have come since."""
        return [node for node in self.carrier.nodes() if node not in self._nodes]

    # -- questions ---------------------------------------------------------------------------

    def ask(self, asked: Mapping[str, Sequence[Message]]) -> dict[str, list[Arrays]]:
        """Ask sites by name, each its own messages; what is known already is not asked again.

        Sites that fail are left out, and `SourcesChanged` is raised once all others have answered.
        """
        self._like = {}
        keys = {name: [_key(m) for m in messages] for name, messages in asked.items()}
        todo: dict[str, list[int]] = {}
        for name, mine in keys.items():
            new = [k for k, key in enumerate(mine) if (name, key) not in self._answers]
            if new:
                todo[name] = new
        if todo:
            replies = self._exchange(
                {self.node_of[n]: [asked[n][k] for k in new] for n, new in todo.items()}
            )
            for name, new in todo.items():
                reply = replies[self.node_of[name]]
                answers = self._read(reply, [asked[name][k] for k in new], name)
                for k, answer in zip(new, answers, strict=True):
                    if isinstance(answer, str):
                        self.left_out.setdefault(name, answer)
                    else:
                        self._answers[name, keys[name][k]] = answer
            self._stop_if_changed(asked)
        return {name: [self._answers[name, key] for key in mine] for name, mine in keys.items()}

    def leave_out(self, reasons: Mapping[str, str]) -> None:
        """Leave sites out, and say so by `SourcesChanged` if there are any."""
        for name, why in reasons.items():
            self.left_out.setdefault(name, why)
        self._stop_if_changed(reasons)

    def _stop_if_changed(self, names: Any) -> None:
        lost = [name for name in names if name in self.left_out]
        if lost:
            self._enough()
            raise SourcesChanged(SITES_LOST.format(why=self._why(lost)))

    def _enough(self) -> None:
        if len(self.names) < self.least_sites:
            raise ValueError(
                TOO_FEW_SITES.format(
                    found=len(self.names),
                    known=len(self.node_of),
                    least=self.least_sites,
                    why=self._why(sorted(self.left_out)),
                )
            )

    def _why(self, names: Sequence[str]) -> str:
        told = [f"{name!r}, because {self.left_out[name]}" for name in names[:MOST_TOLD]]
        if len(names) > MOST_TOLD:
            told.append(f"and {len(names) - MOST_TOLD} more")
        return "; ".join(told) or "none"

    # -- messages ----------------------------------------------------------------------------

    def _exchange(self, messages: Mapping[int, Sequence[Message]]) -> dict[int, RecordDict | str]:
        contents = {}
        packed: dict[int, dict[str, Any]] = {}
        for node, asked in messages.items():
            content = dict(self._setup)
            for message in asked:
                if id(message) not in packed:  # most are the same for all
                    packed[id(message)] = wire.pack(message.sent, name_of(message))
                content |= packed[id(message)]
            contents[node] = RecordDict(content)
        begin = time.monotonic()
        replies = self.carrier.exchange(contents, self.timeout)
        names = {name_of(message): None for asked in messages.values() for message in asked}
        made = Round(
            tuple(names),
            len(messages),
            sum(wire.n_bytes(content) for content in contents.values()),
            sum(wire.n_bytes(r) for r in replies.values() if not isinstance(r, str)),
            time.monotonic() - begin,
        )
        self.rounds.append(made)
        if self.on_round is not None:
            self.on_round(made)
        return replies

    def _read(
        self, reply: RecordDict | str, asked: Sequence[Message], name: str | None
    ) -> list[Any]:
        """Return the answers to some questions; where there is none, the reason in words."""
        if isinstance(reply, str):
            return [reply] * len(asked)
        expected = [self._expected(message) for message in asked]
        try:
            arrays = [array for answer in expected for array in answer.values()]
            wire.check_bytes(reply, ROOM + 2 * sum(a.nbytes + 128 for a in arrays))
        except wire.BadMessage as error:
            return [BAD_ANSWER.format(why=error)] * len(asked)
        if name is not None and _name_in(reply) != name:
            return [OTHER_NAME.format(found=_name_in(reply))] * len(asked)
        return [
            _read_one(reply, m, like, self._longest)
            for m, like in zip(asked, expected, strict=True)
        ]

    def _expected(self, message: Message) -> Arrays:
        """Return what an answer looks like: that of the reference's own rows."""
        key = id(message)
        if key not in self._like:
            assert self._probe is not None
            self._like[key] = message, message.answer(self._probe, ["probe"])
        return self._like[key][1]


def _read_one(reply: RecordDict, message: Message, expected: Arrays, longest: float) -> Any:
    question = name_of(message)
    try:
        refused = _refusal(reply, question)
        if refused is not None:
            return refused
        answer = wire.unpack(reply, question, LEARNERS)
        wire.check_like(answer, expected, question)
        check_ranges(answer, message, longest)
    except (wire.BadMessage, TypeError, AttributeError, KeyError) as error:
        return BAD_ANSWER.format(why=str(error).rstrip("."))
    return answer


def _refusal(reply: RecordDict, question: str) -> str | None:
    for asked in (question, "all"):
        record = reply.config_records.get(f"{REFUSED}.{asked}")
        if record is not None:
            reason = REFUSALS.get(str(record.get("why")), NO_REASON)
            return reason.format(question=question)
    return None


def _name_in(reply: RecordDict | str) -> str:
    if isinstance(reply, str):
        return ""
    record = reply.config_records.get(SITE)
    name = "" if record is None else record.get("name", "")
    return (
        name if isinstance(name, str) and name.isprintable() and len(name) <= LONGEST_NAME else ""
    )


def _not_a_name(
    name: str, nodes: Sequence[int], replies: Mapping[int, RecordDict | str], reference: object
) -> str | None:
    """Say what is wrong with a site's name."""
    first = replies[nodes[0]]
    if isinstance(first, str):
        return first
    if not _name_in(first):
        return NAMELESS
    if name == reference:
        return REFERENCE_NAME
    return NAME_TWICE if len(nodes) > 1 else None


def _sound_counts(found: Arrays) -> bool:
    rows, size = float(found["rows"][0]), float(found["sizes"][0])
    sound = rows >= 1.0 and rows == np.floor(rows) and 0.0 < size <= rows * (1.0 + 1e-9)
    return sound and float(found["noise"][0]) >= 0.0


def _key(message: Message) -> str:
    return wire.digest(wire.pack(message.sent, name_of(message)))
