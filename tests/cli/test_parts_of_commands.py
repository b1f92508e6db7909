"""What commands are made of, asked without a command line."""

from __future__ import annotations

import csv
import json
import runpy
import sys

import numpy as np
import pytest

import sourcewise as sw
from cli.running import run_here
from sourcewise.cli import app, entry
from sourcewise.cli.demo import _table
from sourcewise.cli.export import Format
from sourcewise.cli.images import _kinds
from sourcewise.cli.options import listed
from sourcewise.cli.predict import NAME_TAKEN, NOT_A_TABLE_MODEL
from sourcewise.datasets import vendor_digits


@pytest.mark.parametrize("given", [["a,b", "c"], ["a, b ,,c"], ["a", "b", " c"], [",a", "b,c,"]])
def test_values_are_split_at_commas_however_often_an_option_is_given(given):
    assert listed(given) == ("a", "b", "c")
    assert listed(None) == listed([" , "]) == ()


@pytest.mark.parametrize(
    ("asked", "kinds"),
    [
        (None, []),
        (["rgb-swap,blur"], ["blur", "rgb-swap"]),
        (["swap_channels", "rgb-swap"], ["rgb-swap"]),
        (["all", "blur"], ["blur", "dead-pixels", "rgb-swap"]),
    ],
)
def test_corruptions_come_once_in_the_order_of_the_studies(asked, kinds):
    assert _kinds(asked) == kinds


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), entry.INTERRUPT, entry.INTERRUPTED),
        (MemoryError(), entry.BAD_INPUT, entry.NO_MEMORY),
        (ValueError("two\nlines"), entry.BAD_INPUT, "two lines"),
        (OSError(28, "No space left", "a.csv"), entry.BAD_INPUT, "a.csv: No space left."),
    ],
)
def test_every_failure_is_a_sentence_and_a_code(error, code, said, monkeypatch, capsys):
    def fails(arguments):
        raise error

    monkeypatch.setattr(app, "run", fails)
    assert entry.main([]) == code
    assert capsys.readouterr() == ("", f"sourcewise: {said}\n")


def test_a_mistake_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(app, "run", lambda arguments: {}["no"])
    with pytest.raises(KeyError):
        entry.main([])


def test_python_runs_the_package_as_the_command(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["sourcewise", "--version"])
    with pytest.raises(SystemExit) as stop:
        runpy.run_module("sourcewise.cli.__main__", run_name="__main__")
    assert (stop.value.code, capsys.readouterr().out) == (0, f"sourcewise {sw.__version__}\n")


def test_the_table_of_the_demo_is_the_digits():
    digits = vendor_digits(random_state=0)
    rows = list(csv.DictReader(_table(digits).splitlines()))
    pixels = [[float(v) for k, v in row.items() if k.startswith("pixel")] for row in rows]
    np.testing.assert_array_equal(pixels, digits.X)
    assert [row["parity"] == "odd" for row in rows] == digits.y.tolist()
    assert [row["vendor"] for row in rows] == digits.vendor.tolist()


@pytest.mark.parametrize("kind", list(Format))
def test_weights_for_other_software_are_those_of_the_model(fitted, kind):
    found = json.loads(run_here("export", fitted[1], "--to", kind).out)
    weights = sw.load(fitted[1]).source_weights_
    names = found.get("aggregation_weights") or {r["source"]: r["weight"] for r in found["sources"]}
    np.testing.assert_allclose(list(names.values()), weights)


def test_predictions_need_a_model_of_tables_and_names_of_their_own(fitted, table, tmp_path):
    rng = np.random.default_rng(0)
    X, names = rng.normal(size=(60, 2)), np.repeat(["reference", "other"], 30)
    bare = sw.SourceWeightedClassifier(trade_off=1.0).fit(X, X[:, 0] > 0, sources=names)
    sw.save(bare, tmp_path / "bare.skops")
    done = run_here("predict", tmp_path / "bare.skops", table, "-o", tmp_path / "p.csv")
    kind = "SourceWeightedClassifier"
    said = NOT_A_TABLE_MODEL.format(path=tmp_path / "bare.skops", kind=kind)
    assert (done.code, done.err) == (2, f"sourcewise: {said}\n")
    text = table.read_text().replace("vendor", "prediction", 1)
    (tmp_path / "new.csv").write_text(text)
    asked = ("predict", fitted[1], tmp_path / "new.csv", "--keep", "prediction")
    done = run_here(*asked, "-o", tmp_path / "p.csv")
    assert (done.code, done.err) == (2, f"sourcewise: {NAME_TAKEN.format(name='prediction')}\n")
    assert not (tmp_path / "p.csv").exists()
