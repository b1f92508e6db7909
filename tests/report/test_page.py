from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from made_up import WEIRD, made_up_audit, made_up_report

import sourcewise as sw
from sourcewise.report.html import render
from sourcewise.report.html.parts import DIRECTION, embedded, nice_ceiling


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


@pytest.fixture(scope="module")
def page():
    return render(made_up_audit())


def test_sections_come_in_the_promised_order(page):
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert titles == [
        "What you gain",
        "The sources, ranked",
        "The trust path",
        "Sources that disagree",
        "Is your reference large enough?",
        "For those who want it",
    ]
    assert page.index("<h1>") < page.index("What you gain")


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
    assert len(scripts) == 2
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
    assert len(page.encode()) < 1.5e6
    assert "sources of least weight are not shown" in page


def test_report_of_a_model_is_a_page_too(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    sources = np.repeat(["gold", "a", "b"], 100)
    model = sw.SourceWeightedClassifier(reference="gold", trade_off="theory", random_state=0)
    model.fit(X, X[:, 0] > 0, sources=sources)
    text = model.report().to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == text
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", text)
    assert "The trust path" in titles
    assert "What you gain" not in titles
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_a_bare_report_has_a_page():
    bare = made_up_report(["gold", "a", "b"], context=None)
    assert "The sources, ranked" in render(bare)


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
