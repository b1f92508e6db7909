from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pytest
from made_up import WEIRD, made_up_audit, made_up_errors, made_up_report, plain_audit

import sourcewise as sw
from sourcewise.audit import Expected
from sourcewise.report.html.fine_print import STEPS, position
from sourcewise.report.html.gain import gain
from sourcewise.report.html.numbers import counted, in_unit, nice_ceiling
from sourcewise.report.html.page import environment, render
from sourcewise.report.html.sources import MOST_OTHERS, group_sources, sources
from sourcewise.report.verdict import verdict
from sourcewise.safe_text import DIRECTION, embedded


class Thumbnail(NamedTuple):
    name: str
    label: str
    uri: str


class Reader(HTMLParser):
    """All text of a page, and all its elements; an unclosed one is an error."""

    VOID = frozenset(["meta", "link", "input", "col", "rect", "line", "img"])

    def __init__(self, page):
        super().__init__()
        self.text, self.elements, self.open = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)


def cards_of(page):
    block = re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(block)["cards"]


def text_of(page):
    return " ".join("".join(Reader(page).text).split())


@pytest.fixture(scope="module")
def page():
    return render(made_up_audit())


def test_sections_come_in_the_promised_order(page):
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert titles == [
        "What you gain",
        "The sources, worst first",
        "Is your reference large enough?",
        "For those who want it",
    ]
    assert page.index("<h1>") < page.index("What you gain")


def test_all_ways_of_a_learner_are_shown_and_the_two_ends_are_named_first():
    audit = made_up_audit()
    told = Expected("source as a feature", 0.2, 0.15, 0.27)
    clearly = replace(told, error=-0.12, low=-0.2, high=-0.07)
    errors = audit.comparison
    errors = replace(
        errors,
        methods=(*errors.methods, told),
        differences=(*errors.differences, clearly),
    )
    text = text_of(render(replace(audit, comparison=errors)))
    lead = text[text.index("That is") : text.index("train on your trusted rows alone")]
    assert "reference alone" in lead and "source as a feature" not in lead
    assert "train on all rows, and tell the learner their sources" in text
    assert "“Clearly better than with the source as a feature”" in text


def test_names_are_shown_literally(page):
    text = "".join(Reader(page).text)
    for name in WEIRD[:3]:
        assert name in text
    assert "🦊🧪 vendor" in text
    assert "ספק אמין" in text
    assert "x" * 400 + "…" in text
    assert "x" * 401 not in text
    assert "\x1b" not in page


def test_names_make_no_elements(page):
    elements = Reader(page).elements
    scripts = [attrs for tag, attrs in elements if tag == "script"]
    assert len(scripts) == 3
    assert not any(tag == "img" for tag, _ in elements)
    assert not any(name.startswith("on") for _, attrs in elements for name in attrs)


def test_no_request_can_leave_the_page(page):
    policy = next(a["content"] for t, a in Reader(page).elements if "http-equiv" in a)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    for attrs in (a for _, a in Reader(page).elements):
        assert "src" not in attrs
        assert attrs.get("href", "data:,") == "data:,"


def test_data_of_the_slider_survives_the_names(page):
    block = re.search(r'id="path-data">(.*?)</script>', page, re.DOTALL)[1]
    data = json.loads(block)
    assert data["names"][2] == WEIRD[2]
    assert len(data["d"]) == len(data["m"]) == len(WEIRD)


@pytest.mark.parametrize("trade_off", [0.0, 1.0, np.inf])
def test_any_trade_off_can_be_drawn(trade_off):
    Reader(render(made_up_report(["gold", "a", "b"], trade_off=trade_off)))


def test_hundreds_of_sources_stay_below_the_limit():
    page = render(made_up_audit(["gold", *(f"site-{k:05d}" for k in range(2000))]))
    assert len(page.encode()) < 1.7e6
    assert "The report as JSON has those of 1,501 more sources." in page
    assert page.count('<tr class="source aside"') == len(cards_of(page)) > 1000


def test_of_thousands_that_agree_not_all_are_shown():
    page = render(plain_audit(2000))
    assert len(page.encode()) < 0.8e6
    assert "1,100 more sources of small difference are not shown" in page
    assert len(cards_of(page)) == 400


def test_report_of_a_model_is_a_page_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    sources = np.repeat(["gold", "a", "b"], 100)
    model = sw.SourceWeightedClassifier(reference="gold", trade_off="theory", random_state=0)
    model.fit(X, X[:, 0] > 0, sources=sources)
    text = model.report().to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert "The sources, worst first" in titles
    assert "The trust path" in text
    assert "What you gain" not in titles
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_bare_report_has_a_page():
    bare = made_up_report(["gold", "a", "b"], context=None)
    assert "The sources, worst first" in render(bare)


def test_embedded_json_cannot_end_its_script():
    text = embedded({"a": "</script><!--", "b": "\u2028&"})
    assert not set(text) & set("<>&\u2028")
    assert json.loads(text) == {"a": "</script><!--", "b": "\u2028&"}


@pytest.mark.parametrize(
    ("value", "expected"), [(0.41, 0.5), (0.5, 0.5), (7.2, 8), (0.0, 1.0), (np.inf, 1.0)]
)
def test_round_numbers(value, expected):
    assert nice_ceiling(value) == pytest.approx(expected)


def test_data_tell_sources_that_were_set_aside_from_those_that_keep_some_weight():
    names = ["gold", *"abcdef"]
    weights = np.array([0.2, 0.3, 0.3, 0.0, 0.0, 0.0, 0.2])
    content = made_up_audit(names, weights=weights).to_dict()
    for key in ("set_aside", "doubted"):
        cards = {card["source"] for card in content[key]}
        assert cards == set(content["verdict"][key])
        assert cards


@pytest.mark.parametrize("control", DIRECTION)
def test_a_name_cannot_turn_the_direction_of_writing(control):
    page = made_up_report(["gold", f"a{control}b"]).to_html()
    assert control not in page
    assert "a\ufffdb" in page


def test_statistics_come_last():
    before, after = text_of(render(plain_audit(30))).split("For those who want it")
    for word in ("λ", "μ", "p-value", "cut-off", "power"):
        assert word not in before
        assert word in after


@pytest.mark.parametrize("n", [1, 30, 2000])
def test_every_source_is_shown_once_or_counted_as_hidden(n):
    report = plain_audit(n).report
    found = verdict(report)
    groups = group_sources(report, found)
    content = sources(report, groups, found.unused, {})
    shown = []
    for table in content["tables"]:
        mine = [line["at"] for line in table["lines"]]
        assert all(groups[i] == table["group"].style for i in mine)
        shown += mine
    assert len(set(shown)) == len(shown) == n - content["hidden"]
    assert content["total"] == n and groups.count("own") == 1 and 0 not in shown
    assert (content["hidden"] > 0) == (groups.count("agree") > MOST_OTHERS)


def test_lambdas_lie_on_a_logarithmic_axis_between_its_two_ends():
    assert position(0.0, 0.1, 10.0) == 0.0
    assert position(np.inf, 0.1, 10.0) == 1000.0
    assert position(1.0, 0.1, 10.0) == pytest.approx(500.0)
    assert position(1e-9, 0.1, 10.0) == 1000.0 / STEPS
    assert position(1e9, 0.1, 10.0) == 1000.0 - 1000.0 / STEPS


def test_equal_errors_are_the_same_and_small_differences_within_the_margin():
    errors = made_up_errors()
    content = gain(errors)
    assert [each["word"] for each in content["versus"]] == ["better than", "clearly better than"]
    assert [each["within"] for each in content["versus"]] == [True, False]
    assert not content["alike"] and content["ways"][2]["at"] == [125.0, 200.0, 325.0]
    equal = tuple(replace(method, error=0.08) for method in errors.methods)
    drawn = tuple(replace(each, error=0.0, low=-0.1, high=0.1) for each in errors.differences)
    content = gain(replace(errors, methods=equal, differences=drawn))
    assert {each["word"] for each in content["versus"]} == {"the same as"}
    assert content["alike"] and not any(each["within"] for each in content["versus"])


def test_sources_are_counted_without_the_reference():
    text = text_of(render(plain_audit(10)))
    assert "from 10 sources and your reference:" in text
    assert "11 sources" not in text


def test_errors_stand_in_the_users_unit_and_clearly_says_by_what():
    text = text_of(render(plain_audit(5, "regression")))
    assert "With weighted sources the expected error is 25,100." in text
    assert "“Clearly better than with all rows alike” compares the two row by row" in text
    assert "the error is lower by 69,000 (95 % interval 37,700 to 94,200)" in text
    assert "which overlap all the same" not in text
    apart = made_up_errors()
    methods = tuple(replace(m, low=0.0, high=0.5) for m in apart.methods)
    audit = replace(plain_audit(5), comparison=replace(apart, methods=methods))
    assert "That tells more than the bands, which overlap all the same." in text_of(render(audit))


def test_what_is_said_of_the_cut_off_is_true_of_the_weights():
    report = plain_audit(5).report
    rows = [replace(row, weight=0.01) if row.weight == 0 else row for row in report.sources]
    shares = ((4.44, 0.6), (9.0, 0.4))
    said = text_of(render(replace(report, sources=tuple(rows), shares=shares)))
    assert "an average over 2 values of λ" in said
    assert "so 1 source above it keeps some weight" in said
    assert "keeps some weight" not in text_of(render(replace(report, shares=shares)))


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([37660.295, 51105.2], ["37,700", "51,100"]),
        ([0.012345, 0.3], ["0.0123", "0.3000"]),
        ([9.871, 41.2], ["9.87", "41.20"]),
        ([1e-7, 5.0], ["0.0000", "5.0000"]),
        ([0.0], ["0.00"]),
    ],
)
def test_numbers_of_one_unit_stand_in_line(values, shown):
    assert [in_unit(values)(v) for v in values] == shown


def test_one_is_not_many():
    assert counted(1, "row") == "1 row" and counted(0.9, "row") == "1 row"
    assert counted(0, "row") == "0 rows"
    report = plain_audit(3).report
    rows = (replace(report.sources[0], rows=1), *report.sources[1:])
    assert "1 row of gold that you trust" in text_of(render(replace(report, sources=rows)))
    assert not re.search(r"\b1 rows", text_of(render(plain_audit(1))))


def test_without_jinja2_one_is_told_what_to_install(monkeypatch):
    environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    report = made_up_report(["gold", "<b>", "c"])
    with pytest.raises(ImportError, match=r"^A page needs jinja2: (pip install|install its extra)"):
        report.to_html()
    shown = report._repr_html_()
    assert shown.startswith("<pre>source ") and shown.count("<") == 2
    assert "&lt;b&gt;" in shown


def test_templates_are_in_the_package():
    found = {path.name for path in files("sourcewise.report.html").joinpath("templates").iterdir()}
    assert {"page.html", "sources.html", "card.html"} <= found


def test_pictures_are_data_of_their_card():
    audit = plain_audit(3)
    shown = Thumbnail('"><script>alert(1)</script>', "<b>", "data:image/jpeg;base64,AA==")
    page = render(replace(audit, strips={audit.cards[0].source: [shown]}))
    (card,) = cards_of(page).values()
    assert card["pictures"][0][0] == shown.uri
    assert '<b>"' not in page and "<script>alert" not in page
