"""``sourcewise tables``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sourcewise.cli import options as o
from sourcewise.cli.output import say, write_folder
from sourcewise.experiments.layout import FORMATS, as_text
from sourcewise.experiments.study_errors import read_studies
from sourcewise.experiments.tables import build_sheets
from sourcewise.progress_bars import progress_bars

ResultsFile = Annotated[
    Path,
    typer.Argument(
        metavar="RESULTS", help="File that sourcewise reproduce has written.", show_default=False
    ),
]


def tables(
    results: ResultsFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the tables as Markdown, CSV and LaTeX.",
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
    folder = beside(results, "tables") if output is None else output
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


def beside(results: Path, what: str) -> Path:
    """Name a folder after the results."""
    return results.with_name(f"{results.stem}-{what}")
