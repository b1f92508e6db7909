"""The site's API reference lists what is public, and its pages ask for nothing from outside."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import sourcewise
from sourcewise import baselines, corruption, engines, images, report, tables
from sourcewise.engines import flower

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LISTED = re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text("utf-8"), flags=re.MULTILINE)


# Listed under `sourcewise`; and what nobody makes, but reads in `TablePreprocessor.rules_`.
ELSEWHERE = {"report.SourceReport", "tables.TableModel", "tables.ColumnRule"}
PUBLIC = [sourcewise, baselines, corruption, engines, flower, images, report, tables]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    prefix = module.__name__.removeprefix("sourcewise").lstrip(".")
    names = {f"{prefix}.{name}" if prefix else name for name in module.__all__}
    assert names - ELSEWHERE <= set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_what_the_reference_lists_has_a_docstring_with_an_example(name):
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(f"sourcewise.{module}".rstrip(".")), last)
    assert thing.__doc__
    assert ">>>" in thing.__doc__, f"{name} has no example"
    assert "+SKIP" not in thing.__doc__, f"the example of {name} does not run"


def test_every_page_is_on_the_site():
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    linked = set(re.findall(r"^([\w-]+)$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE))
    assert pages <= linked


def test_templates_and_styles_ask_for_nothing_from_outside():
    files = [*DOCS.glob("_templates/*"), *DOCS.glob("_static/*"), *DOCS.glob("*.svg")]
    assert len(files) >= 4
    for path in files:
        text = re.sub(r"http://www\.w3\.org/\S+|xmlns\S*", "", path.read_text("utf-8"))
        found = re.findall(r"(?:src|href|url|@import)\W{0,3}(?:https?:)?//[^\s\"')]+", text)
        assert not found, f"{path.name} asks for {found}"


def test_pages_show_pictures_of_their_own_only():
    for path in DOCS.glob("*.md"):
        shown = re.findall(
            r"!\[[^\]]*\]\(([^)\s]+)|<(?:img|script)\b[^>]*src=\"([^\"]+)", path.read_text("utf-8")
        )
        for picture in (one or other for one, other in shown):
            assert (DOCS / picture).resolve().is_file(), f"{path.name} shows {picture}"


def test_what_a_script_needs_is_known_where_the_gallery_is_made():
    """Such a script ends with exit code 77, which would end the making of the site."""
    needy = {
        path.stem
        for path in (ROOT / "examples").glob("plot_*.py")
        if "sys.exit(77)" in path.read_text("utf-8")
    }
    conf = (DOCS / "conf.py").read_text("utf-8")
    assert needy == set(re.findall(r"\"(plot_\w+)\":", conf))


def test_the_idea_is_told_on_a_page_with_two_pictures():
    text = (DOCS / "explained.md").read_text("utf-8")
    assert len(text.split()) <= 600
    assert len(re.findall(r"!\[[^\]]+\]\(", text)) == 2


def test_the_words_of_the_report_are_explained():
    terms = re.findall(r"^(\S[^\n]*)\n: ", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    assert terms == sorted(terms)
    assert set(terms) >= {"agreement", "cut-off", "discrepancy", "p-value", "pull", "reference"}
    assert set(terms) >= {"source", "trade-off", "weight"}
