from __future__ import annotations

import numpy as np
import pytest
from made_up_sites import classifier, federated, rows, sites_of

from sourcewise.engines.flower import LocalCarrier, Policy, read_site_file
from sourcewise.engines.flower.policy import LEAST_ROWS, protect
from sourcewise.engines.flower.project import project_files, site_file
from sourcewise.engines.flower.questions import QUESTIONS


def write(folder, text):
    path = folder / "site.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_site_file_is_read_relative_to_itself(tmp_path):
    file = read_site_file(
        write(
            tmp_path,
            "name = 'north'\ndata = 'rows.csv'\n[columns]\nage = 'alter'\n"
            "[policy]\nquestions = ['describe', 'look']\nleast_rows = 50\nnoise = 1\n"
            "log = 'answers.jsonl'\n",
        )
    )
    assert file.name == "north"
    assert file.data == tmp_path / "rows.csv"
    assert file.columns == {"age": "alter"}
    assert file.policy.questions == ("describe", "look")
    assert (file.policy.least_rows, file.policy.noise) == (50, 1)
    assert file.policy.log == tmp_path / "answers.jsonl"


def test_without_a_word_everything_is_answered_from_enough_rows(tmp_path):
    policy = read_site_file(write(tmp_path, "name = 'n'\ndata = 'd'\n")).policy
    assert policy.questions == tuple(QUESTIONS)
    assert (policy.least_rows, policy.clip, policy.noise) == (LEAST_ROWS, 0.0, 0.0)
    assert policy.log == tmp_path / "site.jsonl"  # there is always a ledger


def test_the_file_that_init_writes_can_be_read(tmp_path):
    file = read_site_file(write(tmp_path, site_file("north")))
    assert set(file.policy.questions) == set(QUESTIONS)
    assert (file.features, file.label) == (None, None)
    assert (file.policy.least_group, file.policy.most_rules) == (5, 5)
    named = project_files("r.csv", "y", "out", 2, features=["age", 'a "b"'])["site.toml"]
    assert named == site_file("my-site", ["age", 'a "b"'], "y")
    file = read_site_file(write(tmp_path, named))
    assert (file.features, file.label) == (("age", 'a "b"'), "y")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("name = 'n'", "it has no 'data'"),
        ("name = 'n'\ndata = 'd'\nport = 1", "'port', which means nothing"),
        ("name = 1\ndata = 'd'", "'name' must be a text"),
        ("name = 'n'\ndata = 'd'\n[policy]\nnoise = -1.0", "not negative"),
        ("name = 'n'\ndata = 'd'\n[policy]\nleast_rows = 2.5", "whole number"),
        ("name = 'n'\ndata = 'd'\n[policy]\nclip = true", "'clip' must be a number"),
        ("name = 'n'\ndata = 'd'\n[policy]\nquestions = ['rows']", "'rows', which does not exist"),
        ("name = ", "is not a site file"),
    ],
)
def test_mistakes_in_a_site_file_are_told_in_a_sentence(tmp_path, text, why):
    with pytest.raises(ValueError, match=why):
        read_site_file(write(tmp_path, text))


def test_a_missing_site_file_is_told_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="no site file"):
        read_site_file(tmp_path / "none.toml")


def test_clipping_and_noise_are_those_of_the_policy():
    arrays = {"a": np.full(100, 3.0), "count": np.array([7])}
    clipped = protect(arrays, Policy(clip=6.0))
    assert np.linalg.norm(clipped["a"]) == pytest.approx(6.0)
    noisy = protect({"a": np.zeros(20_000)}, Policy(noise=0.5))["a"]
    assert noisy.std() == pytest.approx(0.5, rel=0.05)
    again = protect({"a": np.zeros(20_000)}, Policy(noise=0.5))["a"]
    assert not np.array_equal(noisy, again)
    assert clipped["count"][0] == 7


def test_a_little_noise_leaves_a_usable_model():
    pool = rows(m=200, n_ref=100)
    sites = sites_of(*pool, policy=Policy(noise=1e-3))
    found, sources = federated(pool, classifier(), carrier=LocalCarrier(sites))
    assert not sources.facts.left_out
    X, y, names = pool
    honest = names != "site-3"
    assert found.score(X[honest], y[honest]) > 0.8
