"""``sourcewise figures``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from sourcewise.cli import options as o
from sourcewise.cli.output import say, write_folder
from sourcewise.cli.tables import ResultsFile, beside
from sourcewise.experiments.figures import draw_figures
from sourcewise.experiments.study_errors import read_studies
from sourcewise.progress_bars import progress_bars


def figures(
    results: ResultsFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Folder for the figures as PNG and SVG.",
            show_default="RESULTS-figures",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Attribute to show in figure 2. Default: black, as in the paper, or the first.",
            show_default=False,
        ),
    ] = None,
    share: Annotated[
        float | None,
        typer.Option(
            "--p",
            metavar="P",
            help="Share of a bad source's rows that is corrupted, in figure 2. Default: largest.",
            show_default=False,
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
    folder = beside(results, "figures") if output is None else output
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
        say(textwrap.fill(picture.caption, 78, initial_indent="  ", subsequent_indent="  "))
