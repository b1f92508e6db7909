"""``sourcewise fit``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sourcewise import save
from sourcewise.audit import fit_table
from sourcewise.cli import options as o
from sourcewise.cli.fitting_options import FittingOptions, with_fitting_options
from sourcewise.cli.notes import table_notes, wrapped
from sourcewise.cli.on_cluster import fit_on_cluster, on_cluster, sources_on_cluster
from sourcewise.cli.output import (
    MODEL,
    WEIGHTS,
    check_output,
    outputs,
    print_json,
    prints_itself,
    say,
    source_weights,
)
from sourcewise.cli.progress_lines import progress_of_cluster
from sourcewise.progress_bars import progress_bars
from sourcewise.report.verdict import verdict
from sourcewise.safe_text import csv_text
from sourcewise.tables.training import read_training

SAME_OUTPUT = "--output and --weights name the same file {path}; give two names."


@with_fitting_options
def fit(
    given: FittingOptions,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Model file to write (.skops).",
            show_default=False,
            rich_help_panel=o.OUTPUT,
        ),
    ],
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write a CSV of sources, their weights, and how much each row counts.",
            show_default=False,
            rich_help_panel=o.OUTPUT,
        ),
    ] = None,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Train a model that uses every good source and is not hurt by the bad ones.

    Example: sourcewise fit data.csv --label y --source vendor --reference gold -o model.skops
    """
    check_output(output, MODEL, given.data, given.reference_file)
    check_output(weights, WEIGHTS, given.data, given.reference_file)
    quiet = prints_itself(as_json, weights) or quiet
    if weights is not None and weights.resolve() == output.resolve():
        raise ValueError(SAME_OUTPUT.format(path=output))
    settings = given.settings()
    if on_cluster(given):
        with progress_of_cluster(quiet, as_json), sources_on_cluster(given) as sources:
            model = fit_on_cluster(sources, settings)
    else:
        with progress_bars(quiet):
            training = read_training(given.table_request())
            model = fit_table(training, settings, label=given.label, source=given.source)
    report = model.report()
    with outputs(output, weights) as temporary:
        save(model, temporary[0])
        if weights is not None:
            temporary[1].write_bytes(csv_text(source_weights(report)).encode())
    if as_json:
        print_json(
            {
                "model": str(output),
                "trade_off": report.trade_off,
                "cutoff": report.cutoff,
                "shares": report.to_dict()["shares"],
                "sources": source_weights(report),
                "skipped": [asdict(item) for item in model.skipped_],
            }
        )
    elif not quiet:
        notes = table_notes(model)
        said = wrapped(str(verdict(report)), "")
        say("\n".join([said, "", str(report), "", *notes, f"Model: {output}"]))
        if weights is not None:
            say(f"Weights: {weights}")
