"""Take the picture of a report that README.md and the site's first page show.

``sourcewise demo``, then
``python -m benchmarks.page_picture sourcewise-demo/report.html docs/report.png``: the top of the
page, down to the end of its first section. It needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

WIDTH, MARGIN = 1100, 18


def take(page: Path, picture: Path, section: str) -> None:
    """Open the page without a network and write what is above the end of a section."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(
            viewport={"width": WIDTH, "height": 900}, color_scheme="light", offline=True
        )
        tab = context.new_page()
        tab.goto(page.resolve().as_uri())
        box = tab.locator(section).first.bounding_box()
        height = box["y"] + box["height"] + MARGIN
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
        tab.screenshot(path=picture, clip=clip, full_page=True)
        browser.close()


def main(arguments: list[str] | None = None) -> None:
    """Take the picture."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--section", default="section[aria-labelledby=gain]", help="last one shown")
    options = parser.parse_args(arguments)
    take(options.page, options.picture, options.section)


if __name__ == "__main__":
    main()
