"""The page in a real browser, its network switched off."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from made_up import WEIRD, made_up_audit, plain_audit

from sourcewise.core.weights import solve_weights
from sourcewise.report.html import render
from sourcewise.safe_text import shortened, visible

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


CASES = {
    "3 sources": (3, "two classes"),
    "30 sources": (30, "two classes"),
    "300 sources": (300, "two classes"),
    "six classes": (12, "six classes"),
    "regression": (12, "regression"),
}


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    """Return how many sources a case has, and its page."""
    size, kind = CASES[request.param]
    file = tmp_path_factory.mktemp("case") / "report.html"
    file.write_text(render(plain_audit(size, kind)), encoding="utf-8")
    return size, file


@pytest.fixture
def open_page(browser, path):
    """Open the page and insist on silence: no message, no error, no request, no dialog."""
    noise, contexts = [], []

    def opened(width=1280, scheme="light", path=path, **how):
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
    table = page.locator("table.sources").first
    head = table.locator("thead th").nth(2)

    def rows():
        cells = table.locator("tr.source td:nth-child(3)")
        return [int(v) for v in cells.evaluate_all("all => all.map(c => c.dataset.value)")]

    before = sorted(rows())
    head.get_by_role("button").click()
    assert rows() == before[::-1]
    assert head.get_attribute("aria-sort") == "descending"
    head.get_by_role("button").click()
    assert rows() == before
    assert head.get_attribute("aria-sort") == "ascending"
    assert table.locator("thead th[aria-sort]").count() == 1
    # An open card stays with its source.
    assert "aside" in page.locator("tr.source:has(+ .card-row)").get_attribute("class")


def test_names_sort_as_text_by_keyboard(open_page):
    page = open_page()
    page.locator("table.sources thead button").first.focus()
    page.keyboard.press("Enter")
    names = (
        page.locator("table.sources")
        .first.locator("tr.source > th")
        .evaluate_all("all => all.map(c => c.textContent)")
    )
    shown = {shortened(visible(name)) for name in WEIRD}
    assert len(names) > 2 and set(names) <= shown
    assert names == page.evaluate("names => [...names].sort((a, b) => a.localeCompare(b))", names)


def test_slider_recomputes_the_weights(open_page):
    page = open_page()
    report = made_up_audit().report
    d = np.array([row.discrepancy for row in report.sources])
    m = np.array(report.context.sizes)
    page.locator("#path summary").click()
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
    page.locator("#path summary").click()
    assert "λ = 4.44 was chosen" in page.locator("#mu-words").inner_text()
    assert not page.locator("#lambda").is_visible()


def test_tables_read_without_scripts(open_page, case):
    size, path = case
    page = open_page(path=path, java_script_enabled=False)
    assert not page.locator("#search").is_visible()
    for group in page.locator("details.group > summary").all():
        group.click()
    for box in page.locator(".all input").all():
        box.check()
    lines = page.locator("tr.source")
    assert lines.count() == size
    assert all(line.is_visible() for line in lines.all()[:: max(size // 20, 1)])
    assert "label bias" in lines.first.inner_text()
    assert "needs JavaScript" in page.locator("#all-sources").inner_text()


def test_names_are_text_on_cards_too(open_page):
    page = open_page()
    for button in page.locator("button.more:visible").all():
        if button.get_attribute("aria-expanded") == "false":
            button.click()
    cards = page.locator(".card-row")
    assert cards.count() == len(made_up_audit().verdict.set_aside)
    assert "<script>alert(1)</script>" in cards.first.inner_text()
    assert page.locator(".card-row :is(script, img)").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_every_case_fits(open_page, case, width):
    size, path = case
    page = open_page(width, path=path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    height = page.evaluate("document.documentElement.scrollHeight")
    assert height <= (5 if width == 1280 else 7) * 900
    for group in page.locator("details").all():
        group.evaluate("d => { d.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    folder = os.environ.get("SOURCEWISE_SCREENSHOTS")
    if folder:
        page.screenshot(path=f"{folder}/{path.parent.name}-{size}-{width}.png", full_page=True)


@pytest.mark.parametrize("width", [1280, 390])
def test_cards_open_and_close(open_page, case, width):
    page = open_page(width, path=case[1])
    assert page.locator(".card").count() == 1
    button = page.locator("button.more").first
    assert button.get_attribute("aria-expanded") == "true"
    button.click()
    assert page.locator(".card").count() == 0
    button.press("Enter")
    card = page.locator(".card")
    assert card.is_visible()
    text = card.inner_text()
    name = button.inner_text()
    assert f"Have {name} label twenty of your trusted rows." in text
    assert "does clearly worse on your reference" in text
    assert "higher" in text and "yours never changes" in text
    if case[0] == 12 and "mean" in text:
        assert "479,100" in text and "217,700 yours" in text


def test_search_and_filter(open_page, case):
    size, path = case
    page = open_page(path=path)
    search = page.locator("#search")
    if size < 6:
        assert search.count() == 0
        return
    bad = size // 5

    def visible_lines():
        return page.locator("tr.source:visible").count()

    search.fill("vendor 002")
    assert visible_lines() == 1
    assert page.locator("#found").inner_text() == "1 source fits."
    search.fill("LABEL BIAS")
    assert visible_lines() == bad
    search.fill("nobody")
    assert visible_lines() == 0
    assert page.locator(".card:visible").count() == 0
    search.fill("")
    assert page.locator("#found").inner_text() == ""
    page.locator("[data-filter=agree]").click()
    assert page.locator("[data-filter=agree]").get_attribute("aria-pressed") == "true"
    assert page.locator("tr.source.aside:visible").count() == 0
    assert visible_lines() == min(size - bad, 10 if size - bad > 12 else 12)
    search.fill("vendor")
    assert visible_lines() == size - bad
    search.fill("")
    page.locator("[data-filter=aside]").click()
    assert page.locator("tr.source.agree:visible").count() == 0
    page.locator("[data-filter='']").click()
    shown = visible_lines()
    if page.locator(".group.aside .all").count():
        page.locator(".group.aside .all").click()
        assert visible_lines() == shown + bad - 10


def test_it_prints(open_page):
    page = open_page()
    page.emulate_media(media="print")
    assert not page.locator("#lambda").is_visible()
    assert page.locator("h1").is_visible()
    assert len(page.pdf()) > 10_000
