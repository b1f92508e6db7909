"""The site's side: who asks what, whether the owner allows it, and the answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, RecordDict

from sourcewise.core.data import SourceData
from sourcewise.core.engine import Message
from sourcewise.engines.flower import wire
from sourcewise.engines.flower.guards import into_range
from sourcewise.engines.flower.ledger import ANSWERED, KEPT, Entry, Ledger
from sourcewise.engines.flower.ledger import REFUSED as REFUSED_ENTRY
from sourcewise.engines.flower.policy import Policy, SiteFile, protect
from sourcewise.engines.flower.questions import LEARNERS, QUESTIONS
from sourcewise.engines.flower.setup import SETUP_CLASSES, Setup, read_site

SETUP, SITE, REFUSED = "setup", "site", "refused"

# What a server is told; the details stay in the owner's log.
REFUSALS = {
    "not-allowed": "its owner does not allow the question {question!r}",
    "too-few-rows": "it has fewer rows than its owner answers for",
    "bad-rows": "its rows could not be read, or not answer that, by the reference's rules (its own "
    "log says why)",
    "bad-question": "it could not make sense of the question {question!r}",
    "asked-too-often": "its owner answers the question {question!r} no more often",
    "asked-too-much": "it has answered as many questions as its owner allows",
    "other-rules": "its owner does not let rows be read by yet other rules",
}
NO_QUESTION = "there is no question in it"
UNKNOWN_QUESTIONS = "there are questions in it that are not known here"


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
        return cls(file.name, lambda setup: read_site(file, setup), file.policy)

    def answer(self, content: RecordDict, run: int, ledger: Ledger) -> RecordDict:
        """Answer all questions of a message of a run, or refuse them one by one."""
        reply = RecordDict({SITE: ConfigRecord({"name": self.name})})
        asked: list[str] = []
        why = NO_QUESTION
        try:
            wire.check_bytes(content, self.policy.most_bytes)
            asked = _questions_in(content)
        except wire.BadMessage as error:
            why = str(error)
        if not asked:
            reply[f"{REFUSED}.all"] = ConfigRecord({"why": "bad-question"})
            ledger.write(Entry(run, "all", REFUSED_ENTRY, why=why))
        data: SourceData | None = None
        for question in asked:
            digest, rules = wire.digest(content, SETUP, question), wire.digest(content, SETUP)
            entry = Entry(run, question, hash=digest, rules=rules)
            try:
                if question not in self.policy.questions:
                    raise Refusal("not-allowed")
                found = ledger.kept(run, digest)
                entry.outcome = ANSWERED if found is None else KEPT
                if found is None:
                    message_in(content, question)  # what is no question is refused before
                    setup = _setup_in(content)
                    self._check_counts(ledger, digest, rules)
                    entry.looked = True  # from here on a refusal says something about rows, too
                    if data is None:
                        data = self._data(setup)
                    answered = self._answer(question, content, data)
                    found = answered, len(data.y), wire.n_bytes(RecordDict(answered))
                    ledger.keep(run, digest, *found)
                answered, entry.rows, entry.bytes = found
                ledger.write(entry)
                reply.update(answered)
            except Refusal as refusal:
                reply[f"{REFUSED}.{question}"] = ConfigRecord({"why": refusal.reason})
                entry.outcome, entry.why = REFUSED_ENTRY, refusal.details or refusal.reason
                ledger.write(entry)
        return reply

    def _check_counts(self, ledger: Ledger, digest: str, rules: str) -> None:
        policy = self.policy
        if ledger.times[digest] > policy.repeats:
            raise Refusal("asked-too-often", f"asked {ledger.times[digest]} times before")
        if policy.most_questions and ledger.looks >= policy.most_questions:
            raise Refusal("asked-too-much", f"{ledger.looks} questions before")
        if rules not in ledger.rules and len(ledger.rules) >= policy.most_rules:
            raise Refusal("other-rules", f"{len(ledger.rules)} other rules before")

    def _data(self, setup: Setup) -> SourceData:
        try:
            X, y = self.rows(setup)
            if len(y) < self.policy.least_rows:
                raise Refusal("too-few-rows", f"{len(y)} rows")
            data = setup.apply(X, y, self.name)
            return replace(data, X=without_small_groups(data.X, self.policy.least_group))
        except Refusal:
            raise
        except Exception as error:  # any other word, or none, would be one more thing to hear
            raise Refusal("bad-rows", f"{type(error).__name__}: {error}") from error

    def _answer(self, question: str, content: RecordDict, data: SourceData) -> dict[str, Any]:
        message = message_in(content, question)
        try:
            # A message may be made of sound parts that do not fit each other.
            found = message.answer(data, [self.name])
        except Exception as error:  # see above
            raise Refusal("bad-rows", f"{type(error).__name__}: {error}") from error
        if question == "describe":  # told as it is, with what is added to all else
            found["noise"] = np.array([self.policy.noise])
        elif self.policy.clip or self.policy.noise:  # and still where such numbers can be
            moved = protect(found, self.policy)
            found = into_range(moved, message, _setup_in(content).longest)
        return wire.pack(found, question)


def _questions_in(content: RecordDict) -> list[str]:
    ending = f".{wire.NUMBERS}"
    names = [name.removesuffix(ending) for name in content.config_records if name.endswith(ending)]
    asked = [name for name in names if name != SETUP]
    if not set(asked) <= set(QUESTIONS):
        raise wire.BadMessage(UNKNOWN_QUESTIONS)
    return asked


def _setup_in(content: RecordDict) -> Setup:
    try:
        setup = wire.unpack(content, SETUP, SETUP_CLASSES)
        if not isinstance(setup, Setup):
            raise wire.BadMessage("the setup is not one")
    except (wire.BadMessage, TypeError, AttributeError) as error:
        raise Refusal("bad-question", str(error)) from error
    return setup


def message_in(content: RecordDict, question: str) -> Message:
    """Read a question of a message, if it is one."""
    function = QUESTIONS[question]
    try:
        sent = wire.given(function, wire.unpack(content, question, LEARNERS))
    except (
        wire.BadMessage,
        ArithmeticError,
        AttributeError,
        IndexError,
        TypeError,
        ValueError,
    ) as error:
        raise Refusal("bad-question", str(error)) from error
    return Message(function, sent)


def without_small_groups(X: np.ndarray, least: int) -> np.ndarray:
    """Let a column say nothing about fewer rows than these: they get what nearly all others have.

    A category of one row, a word that one row has, a number cut off for all rows but one: sums over
    such a column are that row's.
    """
    if least < 2 or len(X) < 2:
        return X
    usual = np.partition(X, len(X) // 2, axis=0)[len(X) // 2]  # of nearly all, if there is any
    others = usual != X
    few = np.flatnonzero(others.any(axis=0) & (others.sum(axis=0) < least))
    if len(few):
        X = X.copy()
        X[:, few] = usual[few]
    return X
