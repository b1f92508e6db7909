"""A site runs nothing that it is sent, and says so; the network is left out."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from flwr.app import Message
from made_up_grid import be_a_task
from test_carriers import question, write_tables

from sourcewise.engines.flower import node as nodes
from sourcewise.engines.flower.ledger import CannotWrite
from sourcewise.engines.flower.node import Node, SuperLink
from sourcewise.engines.flower.project import brings_code, project_files


@pytest.fixture
def sites(tmp_path, monkeypatch):
    be_a_task(monkeypatch)
    return write_tables(tmp_path)


def message(kind="query", content=None):
    return Message(content or question(), dst_node_id=3, message_type=kind)


def reply_of(node, sent, code=False):
    return node.reply(sent, lambda most: sent, lambda: code)


def bundle(**changed):
    """Make a project as Flower sends it around."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as files:
        for path, text in (project_files("r.csv", "y", "out", 2) | changed).items():
            if text is not None:
                files.writestr(path, text)
    return made.getvalue()


CLIENT = "fedsources/client.py"


def test_only_a_project_that_brings_no_code_for_sites_is_ours():
    own = project_files("r.csv", "y", "out", 2)
    assert not brings_code(bundle())
    assert not brings_code(bundle(**{CLIENT: own[CLIENT].replace("\n", "\r\n")}))
    assert not brings_code(bundle(**{"fedsources/server.py": "the analyst's own"}))
    elsewhere = own["pyproject.toml"].replace("fedsources.client:app", "evil:app")
    for changed in (
        {CLIENT: own[CLIENT] + "import os\n"},
        {CLIENT: None},
        {"pyproject.toml": elsewhere, "evil.py": "app = 1"},
        {"pyproject.toml": "nonsense ="},
        {"pyproject.toml": '[tool]\nflwr = "none"'},
    ):
        assert brings_code(bundle(**changed))
    assert brings_code(b"no archive")
    assert brings_code(bundle()[:-30])


def test_a_project_that_unpacks_to_much_is_not_unpacked():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr("pyproject.toml", b"#" * 200_000_000)
    assert len(made.getvalue()) < 300_000
    assert brings_code(made.getvalue())


def test_what_brings_code_and_what_is_no_query_is_refused_in_a_sentence(tmp_path, sites):
    told = []
    node = Node(sites[0], told.append)
    for sent, code, why in (
        (message(), True, "runs what it has installed, and this project brings code of its own"),
        (message("train"), False, "answers queries, not messages of the kind 'train'"),
        (message("query.rows"), False, "answers queries, not messages of the kind"),
    ):
        reply = reply_of(node if not code else Node(sites[0], told.append), sent, code)
        assert why in reply.error.reason
        assert reply.error.reason.startswith("site 'site-0' ")
        assert why in told[-1]
    lines = [json.loads(line) for line in (tmp_path / "site-0.jsonl").read_text().splitlines()]
    assert {line["outcome"] for line in lines} == {"refused"}
    assert len(lines) == 3


def test_a_run_is_looked_at_once_and_its_content_fetched_only_if_it_is_ours(sites):
    node = Node(sites[0], lambda sentence: None)
    looked = []
    for _ in range(3):
        sent = message()
        reply = node.reply(sent, lambda most: pytest.fail("fetched"), lambda: not looked.append(1))
        assert reply.has_error()
    assert len(looked) == 1


def test_a_question_larger_than_the_owner_accepts_is_not_fetched_whole(tmp_path, sites):
    sites[0].write_text("name = 'n'\ndata = 'site-0.csv'\n[policy]\nmost_bytes = 1000\n")
    fetched = []

    def pull(run, name):
        fetched.append(name)
        return b"x" * 600

    tree = SimpleNamespace(object_id="0", children=[])
    for k in range(1, 50):
        tree.children.append(SimpleNamespace(object_id=str(k), children=[]))
    link = SimpleNamespace(pull=pull, confirm=lambda run, name: None)
    node = Node(sites[0], lambda sentence: None)
    reply = node.reply(message(), lambda most: nodes._pull(link, tree, 1, most), lambda: False)
    assert reply.error.reason == "site 'n' does not look at more than 1000 bytes."
    assert len(fetched) < 30


def test_a_server_learns_nothing_of_a_mistake_at_the_site(sites):
    told = []
    node = Node(sites[0], told.append)
    sites[0].write_text("name = 'site-0'\nsecret = 'patient 17'\n")
    reply = reply_of(node, message())
    assert reply.error.reason == "site 'site-0' could not answer; its owner can see why."
    assert "'secret', which means nothing" in told[0]


@dataclass
class MadeUpLink:
    """Flower's connection to a SuperLink that has these messages."""

    waiting: list

    def __call__(self, **options):
        self.options = options
        return self

    def __enter__(self):
        """Return Flower's functions."""
        return [1, self.receive, *[None] * 6]

    def __exit__(self, *problem):
        """Swallow what Flower's does."""
        return isinstance(problem[1], Exception)

    def receive(self):
        if not self.waiting:
            raise KeyboardInterrupt
        raise self.waiting.pop()


def test_a_ledger_that_cannot_be_written_stops_the_site(sites, monkeypatch):
    link = MadeUpLink([CannotWrite("The ledger is full.")])
    monkeypatch.setattr(nodes, "http_request_response", link)
    with pytest.raises(CannotWrite, match="full"):
        Node(sites[0], lambda sentence: None).serve(SuperLink("127.0.0.1:1", insecure=True))


def test_a_lost_connection_is_told_in_a_sentence(sites, monkeypatch):
    monkeypatch.setattr(nodes, "http_request_response", MadeUpLink([OSError("gone\nnow")]))
    with pytest.raises(ValueError, match="connection to the SuperLink h:1 is lost: gone now."):
        Node(sites[0], lambda sentence: None).serve(SuperLink("h:1", insecure=True))


def test_a_run_that_has_ended_meanwhile_is_passed_over(sites, monkeypatch):
    link = MadeUpLink([nodes.RunNotRunningException()])
    monkeypatch.setattr(nodes, "http_request_response", link)
    with pytest.raises(KeyboardInterrupt):
        Node(sites[0], lambda sentence: None).serve(SuperLink("h:1", insecure=True), 4)
    assert link.options["max_retries"] == 4


def test_keys_and_certificates_that_are_none_are_told_in_a_sentence(tmp_path):
    path = tmp_path / "key"
    path.write_text("nonsense")
    for key in (path, tmp_path / "none"):
        with pytest.raises(ValueError, match="is not a private key as"):
            SuperLink("h:1", key=key).options()
    with pytest.raises(ValueError, match="certificate .* cannot be read"):
        SuperLink("h:1", certificates=tmp_path / "none").options()


OTHER_PROCESS = """
import sys
from pathlib import Path
from sourcewise.engines.flower.node import Node
try:
    Node(Path(sys.argv[1]))
except ValueError as error:
    print(error)
"""


def test_two_processes_do_not_answer_with_one_ledger(tmp_path, sites):
    Node(sites[0])
    command = [sys.executable, "-c", OTHER_PROCESS, str(sites[0])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "another process writes it" in done.stdout


def test_a_ledger_that_can_never_be_written_is_noticed_at_the_start(tmp_path, sites):
    for log in ("no/such/answers.jsonl", "pipe"):
        os.mkfifo(tmp_path / "pipe") if log == "pipe" else None
        policy = f"[policy]\nlog = '{log}'\n"
        sites[0].write_text(f"name = 'site-0'\ndata = 'site-0.csv'\n{policy}")
        with pytest.raises(CannotWrite, match="cannot be written"):
            Node(sites[0])
