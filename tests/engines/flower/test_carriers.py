"""Flower's own messages and apps at both ends; only the network between them is left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from flwr.app import Message, RecordDict
from made_up_grid import MadeUpGrid, be_a_task, context
from made_up_sites import classifier, federated, rows

from sourcewise import load
from sourcewise.engines.flower import (
    FlowerSources,
    GridCarrier,
    LocalCarrier,
    Site,
    carriers,
    read_site_file,
    server_app,
)
from sourcewise.engines.flower.client import SETUP, SITE
from sourcewise.engines.flower.ledger import Ledger
from sourcewise.engines.flower.node import Node
from sourcewise.engines.flower.session import TOO_LATE
from sourcewise.engines.flower.wire import pack

POOL = rows(n_sites=3, m=60, d=3, bad=("site-1",))


@pytest.fixture(autouse=True)
def task(monkeypatch):
    be_a_task(monkeypatch)


def write_tables(folder):
    """Write a table for everybody, and a site file for each site."""
    X, y, names = POOL
    files = []
    for name in dict.fromkeys(names.tolist()):
        mine = names == name
        lines = [
            "x0,x1,x2,y",
            *(f"{a},{b},{c},{k}" for (a, b, c), k in zip(X[mine], y[mine], strict=True)),
        ]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
        if name != "ours":
            files.append(folder / f"{name}.toml")
            files[-1].write_text(f"name = '{name}'\ndata = '{name}.csv'\n")
    return files


def grid_of(files, **options):
    apps = {10 + k: (app_of_file(file), context(10 + k)) for k, file in enumerate(files)}
    return MadeUpGrid(apps, **options)


def app_of_file(file):
    """Answer as a site's own process does, but for the network."""
    node = Node(file, lambda sentence: None)
    return lambda message, its: node.reply(message, lambda most: message, lambda: False)


def app_of_arrays(site):
    """Make a client app around rows in memory."""
    ledger = Ledger(None)
    return lambda message, its: Message(site.answer(message.content, 1, ledger), reply_to=message)


def carrier(**options):
    X, y, names = POOL
    sites = [
        Site.of_arrays(n, X[names == n], y[names == n]) for n in ("site-0", "site-1", "site-2")
    ]
    apps = {10 + k: (app_of_arrays(site), context(10 + k)) for k, site in enumerate(sites)}
    return GridCarrier(MadeUpGrid(apps, **options))


def question():
    return RecordDict(pack({}, "describe"))


def test_every_node_gets_its_own_message_and_the_answers_come_by_node():
    found = carrier().exchange({12: question(), 10: question()}, 5.0)
    assert set(found) == {10, 12}
    assert found[12][SITE]["name"] == "site-2"
    assert found[10][SITE]["name"] == "site-0"


def test_nodes_are_those_of_the_grid():
    assert list(carrier().nodes()) == [10, 11, 12]


def test_an_error_reply_is_told_in_words():
    found = carrier(failing=[11]).exchange({10: question(), 11: question()}, 5.0)
    assert found[11] == "its node failed or left (Node unavailable)"
    assert not isinstance(found[10], str)


class Clock:
    """Stands still but for sleeping."""

    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(carriers, "time", made)
    return made


def test_nodes_that_have_left_between_two_rounds_are_not_waited_for(clock):
    found = carrier(left=[10, 12]).exchange({10: question(), 11: question(), 12: question()}, 60.0)
    assert clock.now == 0.0
    assert found[10] == found[12] == "its node has left"
    assert not isinstance(found[11], str)


def test_a_node_that_never_answers_is_waited_for_no_longer_than_the_timeout(clock):
    found = carrier(silent=[12]).exchange({10: question(), 12: question()}, 40.0)
    assert clock.now == pytest.approx(40.0, abs=2 * carriers.POLL)
    assert found[12] == "it did not answer within 40 seconds"
    assert not isinstance(found[10], str)


def test_fits_over_a_grid_are_those_of_the_same_sites_here():
    X, y, names = POOL
    here, _ = federated(POOL, classifier())
    there, sources = federated(POOL, classifier(), carrier=carrier())
    np.testing.assert_allclose(there.source_weights_, here.source_weights_, atol=1e-12)
    assert sources.node_weights(there) == pytest.approx(
        dict(zip([10, 11, 12], there.source_weights_[1:], strict=True))
    )
    # A grid itself may be given as well.
    own = names == "ours"
    assert FlowerSources(carrier().grid, X[own], y[own]).session.carrier.nodes() == [10, 11, 12]


@pytest.mark.parametrize("how", ["silent", "failing", "left"])
def test_who_does_not_answer_over_a_grid_is_left_out_by_number(how, clock):
    found, sources = federated(POOL, classifier(), carrier=carrier(**{how: [12]}), timeout=9.0)
    assert found.sources_.tolist() == ["ours", "site-0", "site-1"]
    assert list(sources.facts.left_out) == ["node 12"]
    why = {"silent": "did not answer within 9 seconds", "failing": "failed or left (Node"}
    why["left"] = "has left"
    assert why[how] in sources.facts.left_out["node 12"]


def test_a_node_that_comes_later_over_a_grid_is_not_asked():
    mine = carrier()
    found, sources = federated(POOL, classifier(), carrier=mine)
    mine.grid.apps[99] = mine.grid.apps[10]
    assert sources.facts.left_out == {"node 99": TOO_LATE}
    assert found.sources_.tolist() == ["ours", "site-0", "site-1", "site-2"]


# -- the two apps ----------------------------------------------------------------------------------


def test_server_and_client_apps_fit_what_the_tables_hold(tmp_path, capsys):
    files = write_tables(tmp_path)
    config = {"reference": str(tmp_path / "ours.csv"), "label": "y", "output": str(tmp_path)}
    server = context(run_config={**config, "sites": 3, "timeout": 5.0})
    server_app()(grid_of(files), server)
    model = load(tmp_path / "model.skops")
    facts = json.loads((tmp_path / "federated.json").read_text())
    assert model.sources_.tolist() == ["reference", "site-0", "site-1", "site-2"]
    assert model.source_weights_[2] < 0.1 < model.source_weights_[1]
    assert facts["mode"] == "models-only"
    assert facts["rule"].startswith("approximate")
    report = json.loads((tmp_path / "report.json").read_text())
    assert any("models-only" in note and facts["rule"] in note for note in report["notes"])
    for text in (capsys.readouterr().out, (tmp_path / "report.html").read_text()):
        assert "approximate" in text
    direct = LocalCarrier([Site.of_file(read_site_file(file)) for file in files])
    assert len(direct.nodes()) == 3


def test_a_server_without_enough_sites_says_so_in_one_line(tmp_path, capsys):
    files = write_tables(tmp_path)
    config = {"reference": str(tmp_path / "ours.csv"), "label": "y", "output": str(tmp_path)}
    server = context(run_config={**config, "sites": 4, "wait": 0.1})
    with pytest.raises(ValueError, match="3 sites came within 0 seconds, and 4 are wanted"):
        server_app()(grid_of(files), server)
    assert "sourcewise: 3 sites came" in capsys.readouterr().out
    assert not (tmp_path / "model.skops").exists()


def test_a_site_whose_file_is_lost_fails_by_itself(tmp_path):
    files = write_tables(tmp_path)
    grid = grid_of(files)
    files[1].unlink()
    found = GridCarrier(grid).exchange({10: question(), 11: question()}, 2.0)
    assert found[11] == ("site 'site-1' could not answer; its owner can see why")
    assert SETUP not in found[10]  # none was sent
    assert found[10]["refused.describe"]["why"] == "bad-question"
