from __future__ import annotations

import json
import sys
from dataclasses import replace
from types import NoneType

import numpy as np
import pytest

from sourcewise import SourceReport, SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.result import NO_WITNESS, Witness
from sourcewise.datasets import vendor_digits
from sourcewise.report.reasons import LABELS, MODEL


def make_report(names=("gold", "vendor-7", "scraped"), trade_off=4.44, cutoff=0.3, **columns):
    n = len(names)
    given = {
        "values": np.linspace(0.0, 0.4, n),
        "standard_errors": np.linspace(0.0, 0.02, n),
        "p_values": np.linspace(1.0, 0.001, n),
        **columns,
    }
    witness = Witness("reference model", "source")
    return SourceReport.from_results(
        names=list(names),
        weights=np.linspace(1.0, 0.0, n) / max(n / 2, 1),
        discrepancies=Discrepancies(**given, witnesses=(NO_WITNESS, *(witness,) * (n - 1))),
        rows=np.arange(n) * 1000 + 60,
        reference=0,
        reference_gain=0.2,
        expected_errors=np.zeros(n),
        trade_off=trade_off,
        cutoff=cutoff,
    )


def test_lambdas_that_all_leave_the_reference_alone_are_no_average():
    shares = ((2.0, 0.6), (4.44, 0.4))
    report = replace(make_report(), shares=shares)
    assert report.averaged and "the likeliest" in str(report)
    alone = tuple(replace(row, weight=float(row.source == "gold")) for row in report.sources)
    report = replace(report, sources=alone)
    assert not report.averaged and "the likeliest" not in str(report)


def strict(text):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def test_frame_has_a_row_per_source():
    report = make_report()
    frame = report.to_frame()
    assert frame.columns.tolist() == [
        "source",
        "weight",
        "discrepancy",
        "standard_error",
        "p_value",
        "rows",
        "reason",
        "copies",
        "missed",
    ]
    assert frame["source"].tolist() == ["gold", "vendor-7", "scraped"]
    assert frame["rows"].tolist() == [60, 1060, 2060]
    assert frame["discrepancy"].tolist() == [0.0, 0.2, 0.4]
    assert frame["reason"].tolist() == [row.reason for row in report.sources]


def test_frame_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install 'matplotlib"):
        make_report().to_frame()


def test_dict_holds_plain_values():
    report = make_report()
    content = report.to_dict()
    assert content["trade_off"] == 4.44
    assert content["cutoff"] == 0.3
    assert [row["source"] for row in content["sources"]] == ["gold", "vendor-7", "scraped"]
    for row in content["sources"]:
        assert all(type(value) in (str, float, int, NoneType) for value in row.values())


def test_json_is_the_dict():
    report = make_report()
    assert strict(report.to_json()) == report.to_dict()


def test_json_has_no_infinity():
    p_values = np.array([1.0, np.nan, 0.5])
    report = make_report(trade_off=np.inf, cutoff=np.inf, p_values=p_values)
    content = strict(report.to_json())
    assert content["trade_off"] is None
    assert content["cutoff"] is None
    assert [row["p_value"] for row in content["sources"]] == [1.0, None, 0.5]


def test_json_names():
    names = ["gold", 7, ("lab", 2), "Ærø \n"]
    content = strict(make_report(names).to_json())
    assert [row["source"] for row in content["sources"]] == ["gold", 7, ["lab", 2], "Ærø \n"]


def test_json_file(tmp_path):
    path = tmp_path / "report.json"
    text = make_report(["gold", "Ærø"]).to_json(path)
    assert path.read_text(encoding="utf-8") == text + "\n"
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_failed_write_leaves_nothing(tmp_path):
    with pytest.raises(OSError):
        make_report().to_json(tmp_path / "missing" / "report.json")
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError):
        make_report().to_json(tmp_path / "taken")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def test_text():
    text = str(make_report())
    header, rule, *lines, last = text.splitlines()
    assert header.split() == ["source", "weight", "discr.", "s.e.", "p", "rows", "reason"]
    assert set(rule) == {"-"}
    assert lines[0].split() == [
        "gold",
        "0.667",
        "0.000",
        "0.000",
        "1.000",
        "60",
        "the",
        "reference",
    ]
    # The worst first.
    assert lines[1].startswith("scraped ") and lines[1].endswith("labels disagree")
    assert lines[2].endswith("agrees")
    assert last == "lambda = 4.44: a source counts if its discrepancy is below 0.3."


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"values": np.array([0.0, 123456.789, 1e12]), "standard_errors": np.array([0, 5e4, 1e9])},
        {"p_values": np.array([1.0, np.nan, 1e-300])},
    ],
)
def test_text_fits_into_80_columns(columns):
    names = ("gold", "a source with a very long name indeed", "line\nbreak")
    text = str(make_report(names, trade_off=1e-5, cutoff=1.23456789e-7, **columns))
    lines = text.splitlines()
    assert len(lines) == 6
    assert max(map(len, lines)) <= 80
    # Columns stay in line and apart.
    assert all(line[17] == " " for line in lines[2:5])
    assert all(len(line.split()) >= 7 for line in lines[2:5])


def test_of_five_thousand_sources_the_worst_twenty_are_shown():
    names = ["gold", *(f"v{k}" for k in range(5000))]
    p_values = np.full(5001, 0.9)
    p_values[100:130] = 1e-9
    values = np.full(5001, 0.1)
    values[100:130] = np.linspace(15.0, 16.0, 30)
    report = make_report(names, p_values=p_values, values=values, cutoff=12.0)
    lines = str(report).splitlines()
    assert lines[2].startswith("gold ")
    assert [line.split()[0] for line in lines[3:23]] == [f"v{k}" for k in range(128, 108, -1)]
    assert lines[23].startswith("... and 4,980 more of 5,000 sources: ")
    assert max(map(len, lines)) <= 80


def test_in_a_notebook_it_is_a_page_that_cannot_reach_the_notebook():
    shown = make_report(["gold", '"><script>alert(1)</script>', "c"])._repr_html_()
    assert shown.count("<") == 2  # the frame alone
    assert 'sandbox="allow-scripts"' in shown


def test_text_of_many_rows():
    report = make_report()
    big = SourceReport(
        tuple(type(row)(**{**vars(row), "rows": 10**11}) for row in report.sources), 1.0, 0.1
    )
    assert max(map(len, str(big).splitlines())) <= 80


def test_all_data_is_said_in_words():
    assert str(make_report(trade_off=np.inf, cutoff=np.inf)).endswith(
        "lambda = inf: every source counts by its rows."
    )


def test_report_of_a_fitted_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    y = X[:, 0] + 0.1 * rng.normal(size=160)
    y[80:] *= -1
    sources = np.repeat([5, 9, 1], [40, 40, 80])
    model = SourceWeightedRegressor(reference=5, random_state=0).fit(X, y, sources=sources)
    report = model.report()
    assert [row.source for row in report.sources] == [5, 9, 1]
    assert [row.weight for row in report.sources] == model.source_weights_.tolist()
    assert [row.discrepancy for row in report.sources] == model.discrepancies_.tolist()
    assert [row.rows for row in report.sources] == [40, 40, 80]
    # Turning the sign is as bad for either model; chance decides which shows it more clearly.
    assert report.sources[2].reason in (LABELS, MODEL)
    assert report.trade_off == model.trade_off_
    assert report.cutoff == model.cutoff_
    assert strict(report.to_json()) == report.to_dict()


def test_agreement_comes_with_what_would_have_been_missed():
    digits = vendor_digits()
    model = SourceWeightedClassifier(reference="gold", random_state=0)
    report = model.fit(digits.X, digits.y, sources=digits.vendor).report()
    known = {row.source: row.missed for row in report.sources}
    assert known.pop("gold") is None
    assert all(0.0 < share <= 1.0 for share in known.values())
    assert "agrees: no difference found; up to about" in str(report)
    assert "random labels could be missed." in report.to_html()


def test_what_is_missed_grows_with_noise_and_with_the_cut_off():
    def missed(cutoff, error):
        given = {"cutoff": cutoff, "standard_errors": np.array([0.0, error, error])}
        return make_report(**given).sources[1].missed

    assert missed(np.inf, 0.01) == pytest.approx(0.14)
    assert missed(np.inf, 0.02) == pytest.approx(0.28)
    assert missed(0.1, 0.01) == pytest.approx(0.54)
    assert missed(np.inf, 0.2) == 1.0
    assert make_report().sources[0].missed is None
