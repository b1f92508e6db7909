"""The page in a real browser, its network switched off."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from made_up import WEIRD, made_up_audit

from sourcewise.core.weights import solve_weights
from sourcewise.report.html import render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytest.importorskip("playwright", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("there is no Chromium (apt-get install chromium)", allow_module_level=True)


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(render(made_up_audit()), encoding="utf-8")
    return file


@pytest.fixture
def open_page(browser, path):
    """Open the page and insist on silence: no message, no error, no request, no dialog."""
    noise, contexts = [], []

    def opened(width=1280, scheme="light", **how):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **how
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: noise.append(message.text))
        page.on("pageerror", lambda error: noise.append(str(error)))
        page.on("dialog", lambda dialog: noise.append(dialog.message))
        page.on("request", lambda r: r.url.startswith("file:") or noise.append(r.url))
        page.goto(path.as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [n for n in noise if not n.startswith("data:")] == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_and_nothing_sticks_out(open_page, width, scheme):
    page = open_page(width, scheme)
    assert page.locator("h1").inner_text() == str(made_up_audit().verdict)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    folder = os.environ.get("SOURCEWISE_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/report-{width}-{scheme}.png", full_page=True)


def test_columns_sort_both_ways(open_page):
    page = open_page()
    head = page.locator("table.sources thead th").nth(4)

    def rows():
        cells = page.locator("table.sources tbody td[data-label=Rows]")
        return [int(v) for v in cells.evaluate_all("all => all.map(c => c.dataset.value)")]

    before = sorted(rows())
    head.get_by_role("button").click()
    assert rows() == before[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert rows() == before
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("thead th[aria-sort]").count() == 1


def test_names_sort_as_text_by_keyboard(open_page):
    page = open_page()
    page.locator("table.sources thead button").first.focus()
    page.keyboard.press("Enter")
    names = page.locator("table.sources tbody th").evaluate_all("a => a.map(c => c.dataset.value)")
    assert sorted(names) == sorted(
        n.replace("\x1b", "\ufffd").replace("\u202e", "\ufffd") for n in WEIRD
    )
    assert names == page.evaluate("names => [...names].sort((a, b) => a.localeCompare(b))", names)


def test_slider_recomputes_the_weights(open_page):
    page = open_page()
    report = made_up_audit().report
    d = np.array([row.discrepancy for row in report.sources])
    m = np.array(report.context.sizes)
    slider = page.locator("#lambda")

    def shown():
        return [
            float(text.removesuffix(" %"))
            for text in page.locator("#weights-now li span").all_inner_texts()
        ]

    def expected(trade_off):
        return sorted((100 * solve_weights(d, m, trade_off)).tolist(), reverse=True)

    assert shown() == pytest.approx([w for w in expected(4.44) if w > 1e-7], abs=0.051)
    assert "λ = 4.44" in page.locator("#mu-words").inner_text()
    move = "(s, v) => { s.value = v; s.dispatchEvent(new Event('input')); }"
    slider.evaluate(move, 1000)
    assert shown() == pytest.approx(expected(np.inf)[:10], abs=0.051)
    assert "Every row counts the same" in page.locator("#mu-words").inner_text()
    slider.evaluate(move, 0)
    assert shown() == [100.0]
    slider.evaluate(move, 640)
    text = page.locator("#mu-words").inner_text()
    trade_off = float(text.split("λ = ")[1].split(". ")[0])
    assert shown() == pytest.approx([w for w in expected(trade_off) if w > 1e-7][:10], abs=0.3)
    cutoff = solve_weights(d, m, trade_off, return_cutoff=True)[1]
    assert float(text.split("below ")[1].split(" ")[0]) == pytest.approx(cutoff, rel=0.02)
    page.locator("#reset").click()
    assert "λ = 4.44" in page.locator("#mu-words").inner_text()


def test_it_reads_without_scripts(open_page):
    page = open_page(java_script_enabled=False)
    assert "λ = 4.44 was chosen" in page.locator("#mu-words").inner_text()
    assert not page.locator("#lambda").is_visible()


def test_it_prints(open_page):
    page = open_page()
    page.emulate_media(media="print")
    assert not page.locator("#lambda").is_visible()
    assert page.locator("h1").is_visible()
    assert len(page.pdf()) > 10_000
