"""The site's API reference lists what is public, and its pages ask for nothing from outside."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import sourcewise
from sourcewise import baselines, corruption, report

DOCS = Path(__file__).parent.parent / "docs"
LISTED = re.findall(r"^   ([\w.]+)$", (DOCS / "api.rst").read_text("utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("module", [sourcewise, baselines, corruption, report])
def test_every_public_name_is_in_the_reference(module):
    prefix = module.__name__.removeprefix("sourcewise").lstrip(".")
    names = {f"{prefix}.{name}" if prefix else name for name in module.__all__}
    assert names - {"report.SourceReport"} <= set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_what_the_reference_lists_has_a_docstring_with_an_example(name):
    module, _, last = name.rpartition(".")
    thing = getattr(importlib.import_module(f"sourcewise.{module}".rstrip(".")), last)
    assert thing.__doc__
    assert ">>>" in thing.__doc__, f"{name} has no example"


def test_every_page_is_on_the_site():
    pages = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    linked = set(re.findall(r"^([\w-]+)$", (DOCS / "index.md").read_text("utf-8"), re.MULTILINE))
    assert pages <= linked
