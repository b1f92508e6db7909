"""``sourcewise tables`` and ``sourcewise figures``: what a file of results comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sourcewise.cli import options as o
from sourcewise.cli.fit import wrapped
from sourcewise.cli.output import say, write_folder
from sourcewise.experiments.figures import draw_figures
from sourcewise.experiments.layout import FORMATS, as_text
from sourcewise.experiments.study_errors import read_studies
from sourcewise.experiments.tables import build_sheets
from sourcewise.progress import progress_bars

ResultsFile = Annotated[Path, o.given("RESULTS", "File that sourcewise reproduce has written.")]


def tables(
    results: ResultsFile,
    output: Annotated[
        Path | None,
        o.output(
            "FOLDER",
            "Folder for the tables as Markdown, CSV and LaTeX.",
            show_default="RESULTS-tables",
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Print the paper's tables from results, and write them as Markdown, CSV and LaTeX.

    Example: sourcewise tables animals.sqlite -o tables
    """
    with progress_bars(quiet):
        studies = read_studies(results)
    sheets = build_sheets(studies)
    folder = _beside(results, "tables") if output is None else output
    write_folder(
        folder,
        {
            f"{sheet.name}.{ending}": lay_out(sheet).encode()
            for sheet in sheets
            for ending, lay_out in FORMATS.items()
        },
        results,
    )
    if not quiet:
        for sheet in sheets:
            say(as_text(sheet))
        say(f"Tables: {folder}")


def figures(
    results: ResultsFile,
    output: Annotated[
        Path | None,
        o.output(
            "FOLDER", "Folder for the figures as PNG and SVG.", show_default="RESULTS-figures"
        ),
    ] = None,
    target: Annotated[
        str | None,
        o.told(
            "NAME",
            "Attribute to show in figure 2. Default: black, as in the paper, or the first.",
        ),
    ] = None,
    share: Annotated[
        float | None,
        o.told(
            "P",
            "Share of a bad source's rows that is corrupted, in figure 2. Default: largest.",
            None,
            "--p",
        ),
    ] = None,
    quiet: o.Quiet = False,
) -> None:
    """Draw the paper's figures from results, as PNG and SVG.

    Example: sourcewise figures animals.sqlite -o figures
    """
    with progress_bars(quiet):
        studies = read_studies(results)
    pictures = draw_figures(studies, target=target, share=share)
    folder = _beside(results, "figures") if output is None else output
    write_folder(
        folder,
        {
            f"{picture.name}.{ending}": content
            for picture in pictures
            for ending, content in picture.files.items()
        },
        results,
    )
    if quiet:
        return
    for picture in pictures:
        say(f"{folder / picture.name}.png, .svg")
        say(wrapped(picture.caption, width=78))


def _beside(results: Path, what: str) -> Path:
    """Name a folder after the results."""
    return results.with_name(f"{results.stem}-{what}")
