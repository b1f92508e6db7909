"""What the documents show is what the code does."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROSE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

OUTPUT = "<!-- output -->"
DEMO_OUTPUT = "<!-- output of make demo -->"
FENCED = re.compile(
    r"^(?:(?P<mark><!-- output[^\n]*-->)\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LINK = re.compile(r"\]\((?P<path>[^)#:\s]*)(?:#(?P<heading>[^)\s]*))?\)")
DECIMAL = re.compile(r"\d+\.\d+")
HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: its mark, its language, the line its text starts on, and the text."""

    mark: str | None
    language: str
    line: int
    text: str


def blocks_of(page: Path) -> list[Block]:
    content = page.read_text(encoding="utf-8")
    return [
        Block(
            match["mark"],
            match["language"],
            content.count("\n", 0, match.start("text")) + 1,
            match["text"],
        )
        for match in FENCED.finditer(content)
    ]


def agree(shown: str, printed: str) -> bool:
    """Whether two texts are equal but for the last digit of decimals.

    Solvers stop at a tolerance and linear algebra libraries round differently, so the last digit
    may be off by two. Whole numbers, words and layout may not.
    """
    if DECIMAL.sub("#", shown) != DECIMAL.sub("#", printed):
        return False
    pairs = zip(DECIMAL.findall(shown), DECIMAL.findall(printed), strict=True)
    return all(
        len(a) == len(b) and abs(float(a) - float(b)) < 2.5 * 10.0 ** (a.index(".") + 1 - len(a))
        for a, b in pairs
    )


def run_page(page: Path) -> None:
    """Run all Python blocks in one namespace; compare what they print with what is shown."""
    namespace: dict[str, object] = {"__name__": page.stem}
    printed = None
    for block in blocks_of(page):
        if block.language == "python":
            # Blank lines in front make a traceback point into the page.
            code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(code, namespace)
            printed = stream.getvalue()
        elif block.mark == OUTPUT:
            assert printed is not None, f"{page.name}:{block.line}: output of no Python block"
            assert agree(block.text, printed), (
                f"{page.name}:{block.line}: not what the code prints, which is\n{printed}"
            )
            printed = None


def names(pages: list[Path]) -> list[str]:
    return [page.name for page in pages]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_python_blocks_run_and_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_page(page)


def test_the_demo_prints_what_the_readme_shows_and_says_where_the_report_is(tmp_path):
    shown = [block.text for block in blocks_of(PAGES[0]) if block.mark == DEMO_OUTPUT]
    assert len(shown) == 1
    assert max(map(len, shown[0].splitlines())) <= 80
    command = [sys.executable, "-m", "sourcewise.cli", "demo", "-o", "elsewhere"]
    done = subprocess.run(
        command, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=300
    )
    printed = done.stdout.replace("elsewhere/", "sourcewise-demo/")  # the folder it would choose
    assert agree(shown[0], printed), f"the demo prints\n{printed}"
    assert done.stderr == ""
    written = {path.name for path in (tmp_path / "elsewhere").iterdir()}
    assert written == {"digits.csv", "model.skops", "report.html"}


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_marks_are_known_and_stand_on_text_blocks(page):
    written = re.findall(r"<!-- output.*", page.read_text(encoding="utf-8"))
    found = [block for block in blocks_of(page) if block.mark]
    assert [block.mark for block in found] == written
    assert {block.mark for block in found} <= {OUTPUT, DEMO_OUTPUT}
    assert {block.language for block in found} <= {"text"}


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    content = FENCED.sub("", page.read_text(encoding="utf-8"))
    titles = [match["title"].lower() for match in HEADING.finditer(content)]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PROSE, ids=names(PROSE))
def test_links_lead_somewhere(page):
    content = FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in LINK.finditer(content):
        target = (page.parent / link["path"]).resolve() if link["path"] else page
        assert target.exists(), f"{page.name} links to {link['path']}, which is not there"
        if link["heading"]:
            assert link["heading"] in anchors(target), f"{page.name}: no heading {link[0]}"


class TestTheRunnerItself:
    def page(self, tmp_path, shown):
        page = tmp_path / "page.md"
        page.write_text(f"```python\nprint(2, 0.250)\n```\n\n{OUTPUT}\n```text\n{shown}\n```\n")
        return page

    @pytest.mark.parametrize("shown", ["2 0.25", "2 0.26", "2 0.23"])
    def test_accepts_true_output_up_to_the_last_digit(self, tmp_path, shown):
        run_page(self.page(tmp_path, shown))

    @pytest.mark.parametrize("shown", ["3 0.25", "2 0.28", "2  0.25", "2 0.250", "2 0.25 more", ""])
    def test_refuses_false_output(self, tmp_path, shown):
        with pytest.raises(AssertionError, match=r"page\.md:7: not what the code prints"):
            run_page(self.page(tmp_path, shown))
