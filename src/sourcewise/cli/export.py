"""``sourcewise export``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from sourcewise import load
from sourcewise.cli import options as o
from sourcewise.cli.output import DATA, STDOUT, check_output, outputs, source_weights
from sourcewise.safe_text import json_text

# For whom weights are written.
Format = StrEnum("Format", ["json", "nvflare"])


def export(
    model: o.ModelFile,
    to: Annotated[
        Format,
        typer.Option(help="nvflare: the aggregation_weights of its aggregators; json: all of it."),
    ] = Format.json,
    per_step: Annotated[
        bool,
        o.flag(
            "--per-step",
            "For nvflare: weights that are right after the aggregator has multiplied them by "
            "a site's local steps (weigh_by_local_iter), if those grow with its rows.",
        ),
    ] = False,
    output: Annotated[
        Path, o.output("FILE", "File to write (.json).", show_default="- (standard output)")
    ] = STDOUT,
) -> None:
    """Print the weights of the sources for other software.

    Example: sourcewise export model.skops --to nvflare
    """
    check_output(output, DATA, model)
    report = load(model).report()
    lines = source_weights(report)
    content: dict[str, Any]
    if to is Format.nvflare:
        key = "row_weight" if per_step else "weight"
        content = {"aggregation_weights": {str(row["source"]): row[key] for row in lines}}
    else:
        content = {**report.to_dict(), "sources": lines}
    with outputs(output) as (temporary,):
        temporary.write_text(json_text(content), encoding="utf-8")
