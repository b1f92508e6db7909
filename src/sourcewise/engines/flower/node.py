"""A site as a node of Flower: it asks a SuperLink for questions and answers them itself.

Flower's own node fetches the code of a run and starts it. This one never loads, unpacks or writes
any, and opens no port. Of Flower it uses the connection: keys, certificates, heartbeats, formats.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from flwr.app import Error, Message, RecordDict
from flwr.supercore.address import parse_address
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.inflatable.inflatable_utils import (
    pull_and_inflate_object_from_tree,
    push_objects,
)
from flwr.supercore.run import RunNotRunningException
from flwr.supernode.fleet_http_connection import http_request_response

from sourcewise.engines.flower.client import Site
from sourcewise.engines.flower.ledger import CANNOT_WRITE, REFUSED, CannotWrite, Entry, Ledger
from sourcewise.engines.flower.policy import read_site_file
from sourcewise.engines.flower.project import brings_code

try:
    import fcntl
except ImportError:  # on Windows, where two processes may share a ledger
    fcntl = None  # type: ignore[assignment]

POLL = 0.25  # seconds between two looks for a question

IN_USE = "another process writes it"
NO_TABLE = "There is no table {path}, which the site file {file} names."
BAD_ADDRESS = "{address!r} is not an address such as 127.0.0.1:8000."
CANNOT_CONNECT = "The SuperLink {address} is not there, or does not let this site in: {why}."
LOST = "The connection to the SuperLink {address} is lost: {why}."
BAD_KEY = "{path} is not a private key as `ssh-keygen -t ecdsa -b 384` makes it."
NO_CERTIFICATE = "The certificate {path} cannot be read: {why}."

# What a server is told; with the run, the same stands in the ledger.
CODE_SENT = "site {name!r} runs what it has installed, and this project brings code of its own"
NOT_A_QUERY = "site {name!r} answers queries, not messages of the kind {kind!r}"
TOO_LARGE = "site {name!r} does not look at more than {most} bytes"
FAILED = "site {name!r} could not answer; its owner can see why"


@dataclass(frozen=True)
class SuperLink:
    """Where questions come from."""

    address: str  # ``host:port``
    certificates: Path | None = None  # of the authority that vouches for it; None: the system's
    key: Path | None = None  # this site's private key, whose public part the SuperLink knows
    insecure: bool = False  # not encrypted

    def options(self) -> dict[str, Any]:
        """Return what Flower's connection takes."""
        if not parse_address(self.address):
            raise ValueError(BAD_ADDRESS.format(address=self.address))
        return {
            "server_address": self.address,
            "insecure": self.insecure,
            "root_certificates": self._certificates(),
            "authentication_keys": self._keys(),
        }

    def _certificates(self) -> bytes | None:
        try:
            return None if self.certificates is None else self.certificates.read_bytes()
        except OSError as error:
            why = NO_CERTIFICATE.format(path=self.certificates, why=error.strerror)
            raise ValueError(why) from error

    def _keys(self) -> tuple[Any, Any] | None:
        if self.key is None:
            return None
        try:
            private = load_ssh_private_key(self.key.read_bytes(), None)
        except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise ValueError(BAD_KEY.format(path=self.key)) from error
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError(BAD_KEY.format(path=self.key))
        return private, private.public_key()


@dataclass(frozen=True)
class Connection:
    """What Flower gives a node, in its order: functions that talk to the SuperLink."""

    node: int
    receive: Callable[[], Any]
    send: Callable[..., tuple[set[str], str]]
    run: Callable[[int], Any]
    bundle: Callable[[str, int], Any]
    pull: Callable[[int, str], bytes]
    push: Callable[[int, str, str, bytes], None]
    confirm: Callable[[int, str], None]


class Refused(Exception):
    """A message that gets a sentence instead of an answer."""


class Node:
    """Answers messages by a site file that is read anew for each, and tells its owner of them."""

    def __init__(self, file: Path, tell: Callable[[str], None] = print):
        self.file, self.tell = file, tell
        found = read_site_file(file)
        if not found.data.exists():
            raise ValueError(NO_TABLE.format(path=found.data, file=file))
        self.site = Site.of_file(found)
        self.ledger = self._ledger()
        self._sent_code: dict[int, bool] = {}

    def _ledger(self) -> Ledger:
        """Open the ledger that the site file names; two processes would not see each other's."""
        path = self.site.policy.log
        if path is not None and fcntl is not None:
            try:
                lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until this process ends
            except BlockingIOError as error:
                raise CannotWrite(CANNOT_WRITE.format(path=path, why=IN_USE)) from error
            except OSError as error:
                raise CannotWrite(CANNOT_WRITE.format(path=path, why=error.strerror)) from error
        ledger = Ledger(path)
        ledger.check()
        return ledger

    def serve(self, link: SuperLink, max_retries: int | None = None) -> None:
        """Answer whatever comes, until interrupted."""
        problem: Exception | None = None
        try:
            with http_request_response(**link.options(), max_retries=max_retries) as parts:
                try:  # Flower swallows what happens inside
                    self.tell(f"Site {self.site.name!r} waits for questions of {link.address}.")
                    while True:
                        if not self._step(Connection(*parts)):
                            time.sleep(POLL)
                except Exception as error:
                    problem = error
        except SystemExit as end:
            why = CANNOT_CONNECT.format(address=link.address, why="its words are above")
            raise ValueError(why) from end
        if problem is None or isinstance(problem, CannotWrite):
            raise problem or SystemExit
        why = " ".join(str(problem).split()).rstrip(".") or type(problem).__name__
        raise ValueError(LOST.format(address=link.address, why=why)) from problem

    def _step(self, connection: Connection) -> bool:
        """Answer one message; says whether there was one."""
        try:
            received = connection.receive()
            if received is None:
                return False
            head, tree = received
            head.metadata.__dict__["_message_id"] = tree.object_id
            run = int(head.metadata.run_id)

            def sent_code() -> bool:
                return brings_code(connection.bundle(connection.run(run).fab_hash, run).content)

            reply = self.reply(head, partial(_pull, connection, tree, run), sent_code)
            _push(connection, reply)
        except RunNotRunningException:  # it has ended meanwhile
            pass
        return True

    def reply(
        self,
        head: Message,
        pull: Callable[[int], Message],
        sent_code: Callable[[], bool],
    ) -> Message:
        """Answer a message, or say in a sentence why not.

        Of it the head is known; ``pull`` fetches the rest, of so many bytes at most, once
        ``sent_code`` has said that the run's project brings no code for sites.
        """
        run = int(head.metadata.run_id)
        try:
            return Message(self._answer(head, run, pull, sent_code), reply_to=head)
        except Refused as refusal:
            why = str(refusal)
        except CannotWrite:
            raise
        except Exception as error:  # the server learns no more than that
            self.tell(f"Run {run}: {type(error).__name__}: {error}")
            why = FAILED.format(name=self.site.name)
        self.tell(f"Run {run} is refused: {why}.")
        self.ledger.write(Entry(run, "all", REFUSED, why=why))
        return Message(Error(0, f"{why}."), reply_to=head)

    def _answer(
        self,
        head: Message,
        run: int,
        pull: Callable[[int], Message],
        sent_code: Callable[[], bool],
    ) -> RecordDict:
        site = self.site = Site.of_file(read_site_file(self.file))
        if self.ledger.path != site.policy.log:
            self.ledger = self._ledger()
        kind, most = str(head.metadata.message_type), site.policy.most_bytes
        if kind != "query":
            raise Refused(NOT_A_QUERY.format(name=site.name, kind=kind[:40]))
        if run not in self._sent_code:
            self._sent_code[run] = sent_code()
        if self._sent_code[run]:
            raise Refused(CODE_SENT.format(name=site.name))
        try:
            message = pull(most)
        except OverflowError:
            raise Refused(TOO_LARGE.format(name=site.name, most=most)) from None
        return site.answer(message.content, run, self.ledger)


def _pull(connection: Connection, tree: Any, run: int, most: int) -> Message:
    sizes: list[int] = []  # Flower fetches parts in several threads

    def pull(name: str) -> bytes:
        found = connection.pull(run, name)
        sizes.append(len(found))
        if sum(sizes) > most:
            raise OverflowError
        return found

    found: Message = pull_and_inflate_object_from_tree(
        tree, pull, partial(connection.confirm, run), return_type=Message
    )
    return found


def _push(connection: Connection, reply: Message) -> None:
    reply.metadata.__dict__["_message_id"] = reply.object_id
    run = int(reply.metadata.run_id)
    with no_object_id_recompute():
        objects = get_all_nested_objects(reply)
        wanted, session = connection.send(reply, get_object_tree(reply), 0.0)
        push_objects(objects, partial(connection.push, run, session), object_ids_to_push=wanted)
