from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from sourcewise import extras

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PLAIN = [
    name
    for name, requirements in PROJECT["optional-dependencies"].items()
    if not any("[" in requirement for requirement in requirements)
]


def named(command: str) -> set[str]:
    return set(re.findall(r"'([A-Za-z0-9_-]+)", command))


@pytest.mark.parametrize("extra", PLAIN)
def test_the_command_names_what_the_extra_asks_for(extra):
    wanted = {re.match(r"[\w-]+", line)[0] for line in PROJECT["optional-dependencies"][extra]}
    assert named(extras.how_to_install(extra)) == wanted


def test_extras_inside_an_extra_are_named_too():
    assert named(extras.how_to_install("cli")) >= {"typer", "rich", "pyarrow", "skops"}
    assert "sourcewise" not in extras.how_to_install("cli")


def test_without_metadata_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(extras, "PACKAGE", "no-such-package")
    assert extras.how_to_install("save") == "install its extra 'save'"


def test_nothing_says_that_the_package_is_on_an_index():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    code = (ROOT / "src").rglob("*.py")
    false = re.compile(r"pip install[^\n]{0,20}'?sourcewise\b(?!-)")
    found = [path.name for path in [*pages, *code] if false.search(path.read_text("utf-8"))]
    assert not found
