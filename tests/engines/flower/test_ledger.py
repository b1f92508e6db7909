"""What has been asked is on the disk before the answer leaves, and limits hold ever after."""

from __future__ import annotations

import json
import stat
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from flwr.app import ConfigRecord, RecordDict
from made_up_sites import classifier, federated, rows, sites_of
from pyarrow import parquet

from sourcewise.core.feature_map import FeatureMap
from sourcewise.engines.flower import LocalCarrier, Policy, Site, read_site_file, wire
from sourcewise.engines.flower.client import SETUP, without_small_groups
from sourcewise.engines.flower.ledger import CannotWrite, Ledger
from sourcewise.engines.flower.setup import Setup, TableRules
from sourcewise.estimators.row_rules import RowRules
from sourcewise.tables.rules import ColumnRule

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
    paths = [tmp_path / f"{k}.jsonl" for k in range(2)]
    sites = [
        replace(site, policy=Policy(log=path))
        for site, path in zip(sites_of(*pool), paths, strict=True)
    ]
    _, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    found = [entry for path in paths for entry in entries(path)]
    path = paths[0]
    asked = [q for made in sources.facts.rounds for q in made.questions]
    assert sorted(e["question"] for e in found) == sorted(2 * asked)
    wanted = {"when", "run", "question", "hash", "rules", "outcome", "looked", "rows", "bytes"}
    assert {key for e in found for key in e} == {*wanted, "why"}
    assert all(e["looked"] and not e["why"] for e in found)
    assert {e["rows"] for e in found} == {60}
    assert all(len(e["hash"]) == 64 and e["bytes"] > 0 for e in found)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_same_question_of_the_same_run_gets_the_answer_that_was_kept(questions):
    noisy, ledger = site(noise=1.0), Ledger(None)
    look = questions[1]  # and derivatives
    first, again = (noisy.answer(look, 5, ledger) for _ in range(2))
    other = noisy.answer(look, 6, ledger)
    assert wire.digest(first) == wire.digest(again) != wire.digest(other)
    assert ledger.looks == 4


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
    assert Ledger(path).looks == 1
    assert path.read_text() == whole


@pytest.mark.parametrize(
    "line", ["nonsense\n", "[1]\n", '{"looked": 3, "hash": "a"}\n', "\xff\n", "[" * 90000 + "\n"]
)
def test_a_damaged_ledger_is_told_in_a_sentence_with_its_line(tmp_path, line):
    path = tmp_path / "answers.jsonl"
    whole = '{"looked": true, "hash": "a", "rules": "b"}\n'
    path.write_text(whole + line, encoding="latin-1")
    with pytest.raises(ValueError, match="line 2 is not one of ours. Mend it, or move it away"):
        Ledger(path)


def test_questions_that_differ_anywhere_are_different(questions):
    setup = {k: v for k, v in questions[0].items() if k.startswith(f"{SETUP}.")}
    packed = [wire.pack({"n": n}, "describe") for n in (2, 3)]
    digests = {wire.digest(RecordDict(setup | each), SETUP, "describe") for each in packed}
    digests |= {wire.digest(RecordDict(each), SETUP, "describe") for each in packed}
    assert len(digests) == 4
    noise = RecordDict(setup | packed[0] | wire.pack({"noise": np.ones(1)}, "other"))
    assert wire.digest(noise, SETUP, "describe") in digests  # what is beside it does not matter


def test_a_message_without_a_question_is_refused_and_written_down(tmp_path):
    path = tmp_path / "answers.jsonl"
    reply = site(log=path).answer(RecordDict(), 7, Ledger(path))
    assert refusals(reply) == {"refused.all": "bad-question"}
    (entry,) = entries(path)
    assert (entry["run"], entry["outcome"]) == (7, "refused")


# -- what a curious server may not find out --------------------------------------------------------


def table_site(folder, text="", rows=120):
    """Make a site of a table with an identifier and a name for each row, by its file."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=rows)
    names = [f"P{n}" for n in rng.permutation(90_000)[:rows] + 10_000]
    towns = ["rare" if k == 7 else "here" if k % 2 else "there" for k in range(rows)]
    columns = {"x": x, "town": towns, "patient": names, "number": np.arange(rows) + 11_435}
    labels = ["ill" if value > 0 else "well" for value in x]
    parquet.write_table(pa.table({**columns, "y": labels}), folder / "rows.parquet")
    path = folder / "site.toml"
    path.write_text(f"name = 'north'\ndata = 'rows.parquet'\n{text}")
    return Site.of_file(read_site_file(path)), columns, labels


def asked(rules, question="gradients", label="y", classes=("ill", "well")):
    """One question, with rules that a server is free to choose."""
    table = TableRules(tuple(rules), "float64", label, "category")
    d = table.preprocessor.n_features_out_
    features = FeatureMap(np.zeros(d), np.ones(d), False, 1e9)
    setup = Setup(RowRules("ours", features, None, d, np.array(classes)), table)
    sent = {"gradients": {"points": np.zeros((1, 1, d))}, "describe": {}}[question]
    return RecordDict(wire.pack(setup, SETUP) | wire.pack(sent, question))


def test_identifiers_are_not_read_through_categories(tmp_path):
    site, columns, _ = table_site(tmp_path)
    levels = tuple(columns["patient"][:20])
    reply = site.answer(asked([ColumnRule("patient", "category", levels=levels)]), 1, Ledger(None))
    found = reply.array_records["gradients.arrays"]
    values = np.concatenate([array.numpy().ravel() for array in found.values()])
    assert not values[:20].any()  # nobody's identifier can be told from anybody else's
    many = tuple(f"P{n}" for n in range(10_000, 10_040))
    ledger = Ledger(tmp_path / "found.jsonl")
    reply = site.answer(asked([ColumnRule("patient", "category", levels=many)]), 1, ledger)
    assert refusals(reply) == {"refused.gradients": "bad-rows"}
    assert "more than 30 categories" in entries(ledger.path)[0]["why"]


def test_only_columns_that_the_owner_names_are_read(tmp_path):
    site, _, _ = table_site(tmp_path, "features = ['x', 'town']\nlabel = 'y'\n")
    ledger = Ledger(None)
    assert not refusals(site.answer(asked([ColumnRule("x", "number")]), 1, ledger))
    for rules, label in (
        ([ColumnRule("number", "number")], "y"),
        ([ColumnRule("x", "number")], "town"),
        ([ColumnRule("x", "number"), ColumnRule("x", "number")], "y"),
    ):
        reply = site.answer(asked(rules, label=label), 1, ledger)
        assert refusals(reply) == {"refused.gradients": "bad-rows"}


def test_rules_made_up_to_ask_by_refusals_run_out(tmp_path):
    site, columns, _ = table_site(tmp_path, "[policy]\nquestions = ['describe']\nmost_rules = 3\n")
    ledger = Ledger(tmp_path / "found.jsonl")
    heard = []
    for k in range(6):  # is there a label beyond these? The answer would be one bit each time
        content = asked([ColumnRule("x", "number")], "describe", classes=("ill", f"well-{k}"))
        heard += refusals(site.answer(content, 1, ledger)).values()
    assert heard == 3 * ["bad-rows"] + 3 * ["other-rules"]
    again = refusals(site.answer(content, 1, Ledger(ledger.path))).values()
    assert list(again) == ["other-rules"]


def test_refusals_that_have_looked_at_rows_count(tmp_path):
    site, _, _ = table_site(tmp_path, "[policy]\nmost_questions = 2\n")
    ledger = Ledger(None)
    content = asked([ColumnRule("x", "number")], "describe", classes=("ill", "other"))
    heard = [*(refusals(site.answer(content, run, ledger))["refused.describe"] for run in range(3))]
    assert heard == ["bad-rows", "bad-rows", "asked-too-much"]


@pytest.mark.parametrize("kind", [KeyError, OverflowError, RecursionError, NotImplementedError])
def test_whatever_rows_end_in_is_told_by_one_word_and_counts(tmp_path, questions, kind):
    def rows(setup):
        raise kind("row 7")

    ledger = Ledger(tmp_path / "found.jsonl")
    reply = replace(site(), rows=rows).answer(questions[0], 1, ledger)
    assert set(refusals(reply).values()) == {"bad-rows"}
    assert ledger.looks == 1


def test_what_few_rows_have_is_not_seen(tmp_path):
    X = np.array([[1.0, 0.0, 2.0]] * 20)
    X[3, 1] = 1.0  # one row's own
    X[:6, 2] = 5.0  # enough of them
    found = without_small_groups(X, 5)
    assert not found[:, 1].any()
    assert np.array_equal(found[:, [0, 2]], X[:, [0, 2]])
    assert X[3, 1] == 1.0
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(50, 4))
    assert without_small_groups(numbers, 5) is numbers
    assert without_small_groups(X, 0) is X


def test_many_unknown_questions_are_one_line(tmp_path, questions):
    ledger = Ledger(tmp_path / "found.jsonl")
    content = RecordDict(
        {f"unknown-{k}.numbers": ConfigRecord({"a": k}) for k in range(300)} | dict(questions[0])
    )
    reply = site().answer(content, 1, ledger)
    assert refusals(reply) == {"refused.all": "bad-question"}
    assert len(entries(ledger.path)) == 1
