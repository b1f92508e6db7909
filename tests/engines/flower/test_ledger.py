"""What has been asked is on the disk before the answer leaves, and limits hold ever after."""

from __future__ import annotations

import json
import stat

import numpy as np
import pytest
from flwr.app import RecordDict
from made_up_sites import classifier, federated, rows, sites_of

from sourcewise.engines.flower import LocalCarrier, Policy, Site, wire
from sourcewise.engines.flower.client import SETUP
from sourcewise.engines.flower.ledger import CannotWrite, Ledger
from sourcewise.engines.flower.questions import DescribeMessage, Description

X, Y, NAMES = rows(n_sites=1, bad=())


class Listening(LocalCarrier):
    """Keeps what is sent, to send it again."""

    def exchange(self, messages, timeout):
        self.sent = [*getattr(self, "sent", []), *messages.values()]
        return super().exchange(messages, timeout)


@pytest.fixture(scope="module")
def questions():
    """All messages that a fit sends to a site."""
    carrier = Listening(sites_of(X, Y, NAMES))
    federated((X, Y, NAMES), classifier(), carrier=carrier)
    return carrier.sent


def site(**policy):
    own = NAMES == "site-0"
    return Site.of_arrays("site-0", X[own], Y[own], Policy(**policy))


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def refusals(reply):
    return {name: record["why"] for name, record in reply.config_records.items() if "why" in record}


def test_a_line_a_question_says_what_was_asked_and_no_value_of_any_row(tmp_path):
    pool = rows(n_sites=2, bad=())
    path = tmp_path / "answers.jsonl"
    sites = sites_of(*pool, policy=Policy(log=path))
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    found = entries(path)
    asked = [q for made in sources.facts.rounds for q in made.questions]
    assert sorted(e["question"] for e in found) == sorted(2 * asked)
    wanted = {"when", "run", "question", "hash", "outcome", "rows", "bytes"}
    assert {key for e in found for key in e} == wanted
    assert {e["rows"] for e in found} == {60}
    assert all(len(e["hash"]) == 64 and e["bytes"] > 0 for e in found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_same_question_of_the_same_run_gets_the_answer_that_was_kept(questions):
    noisy, ledger = site(noise=1.0), Ledger(None)
    look = questions[1]  # and derivatives
    first, again = (noisy.answer(look, 5, ledger) for _ in range(2))
    other = noisy.answer(look, 6, ledger)
    assert wire.digest(first) == wire.digest(again) != wire.digest(other)
    assert ledger.answered == 4


def test_what_is_asked_again_in_other_runs_is_refused_beyond_the_limit(tmp_path, questions):
    path = tmp_path / "answers.jsonl"
    careful = site(repeats=2)
    replies = []
    for run in range(4):
        ledger = Ledger(path)  # the site is started anew
        replies.append(refusals(careful.answer(questions[1], run, ledger)))
    assert replies[:3] == [{}, {}, {}]
    assert set(replies[3].values()) == {"asked-too-often"}
    assert [e["outcome"] for e in entries(path)] == 6 * ["answered"] + 2 * ["refused"]
    assert not refusals(careful.answer(questions[2], 9, Ledger(path)))  # another question


def test_a_limit_on_all_questions_survives_a_restart(tmp_path, questions):
    path = tmp_path / "answers.jsonl"
    careful = site(most_questions=3)
    replies = [refusals(careful.answer(q, 0, Ledger(path))) for q in questions[:4]]
    assert replies[:2] == [{}, {}]
    assert {why for found in replies[2:] for why in found.values()} == {"asked-too-much"}


def test_answers_that_are_kept_take_bounded_memory(questions, monkeypatch):
    monkeypatch.setattr("sourcewise.engines.flower.ledger.MOST_KEPT", 1_000)
    ledger = Ledger(None)
    for run in range(30):
        ledger.keep(run, "digest", {}, 60, 100)
    assert [ledger.kept(run, "digest") is None for run in range(30)] == 20 * [True] + 10 * [False]


def test_nothing_is_answered_that_cannot_be_written_down(tmp_path, questions):
    folder = tmp_path / "gone"
    with pytest.raises(CannotWrite, match="cannot be written, so that nothing is answered"):
        site().answer(questions[0], 1, Ledger(folder / "answers.jsonl"))


def test_a_line_torn_by_a_power_cut_is_cut_off_and_others_count(tmp_path, questions):
    path = tmp_path / "answers.jsonl"
    site().answer(questions[0], 1, Ledger(path))
    whole = path.read_text()
    path.write_text(whole + whole[: len(whole) // 2])
    assert Ledger(path).answered == 1
    assert path.read_text() == whole


@pytest.mark.parametrize("line", ["nonsense\n", "[1]\n", '{"outcome": 3, "hash": "a"}\n', "\xff\n"])
def test_a_damaged_ledger_is_told_in_a_sentence_with_its_line(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    path.write_text('{"outcome": "answered", "hash": "a"}\n' + line, encoding="latin-1")
    with pytest.raises(ValueError, match="line 2 is not one of ours. Mend it, or move it away"):
        Ledger(path)


def test_questions_that_differ_anywhere_are_different(questions):
    setup = {k: v for k, v in questions[0].items() if k.startswith(f"{SETUP}.")}
    packed = [wire.pack(DescribeMessage(n), "describe") for n in (2, 3)]
    digests = {wire.digest(RecordDict(setup | each), SETUP, "describe") for each in packed}
    digests |= {wire.digest(RecordDict(each), SETUP, "describe") for each in packed}
    assert len(digests) == 4
    noise = RecordDict(setup | packed[0] | wire.pack(Description(*3 * [np.ones(1)]), "other"))
    assert wire.digest(noise, SETUP, "describe") in digests  # what is beside it does not matter


def test_a_message_without_a_question_is_refused_and_written_down(tmp_path):
    path = tmp_path / "answers.jsonl"
    reply = site(log=path).answer(RecordDict(), 7, Ledger(path))
    assert refusals(reply) == {"refused.all": "bad-question"}
    (entry,) = entries(path)
    assert (entry["run"], entry["outcome"]) == (7, "refused")
