"""``sourcewise fit``, and what is said about its table."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from sourcewise import save
from sourcewise.audit import fit_table
from sourcewise.cli import options as o
from sourcewise.cli.fitting_options import (
    FittingOptions,
    on_cluster,
    progress_of_cluster,
    sources_on_cluster,
    with_fitting_options,
)
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
from sourcewise.progress import progress_bars
from sourcewise.report.verdict import verdict
from sourcewise.safe_text import csv_text
from sourcewise.tables.bad_rows import UNNAMED, UNREADABLE
from sourcewise.tables.model import TableModel
from sourcewise.tables.training import read_training

MOST = 12
LEFT_OUT_TEXT = (
    "Column {name!r} looks like free text and was left out; --text {option} makes features of its "
    "words."
)
LEFT_OUT = "Column {name!r} was left out: hardly any two rows share a value."
SAME_OUTPUT = "--output and --weights name the same file {path}; give two names."


@with_fitting_options
def fit(
    given: FittingOptions,
    *,
    output: Annotated[Path, o.output("FILE", "Model file to write (.skops).", o.OUTPUT)],
    weights: Annotated[
        Path | None,
        o.told(
            "FILE",
            "Also write a CSV of sources, their weights, and how much each row counts.",
            o.OUTPUT,
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
            from sourcewise.audit.on_cluster import fit_on_cluster

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


# -- what the terminal says about a table besides the result -----------------------------------


def table_notes(fitted: TableModel) -> list[str]:
    """Return paragraphs, each with an empty line behind it."""
    return [*skipped_rows(fitted), *left_out_columns(fitted)]


def skipped_rows(fitted: TableModel) -> list[str]:
    """Return lines on rows that could not be used, the sources with most first."""
    skipped = fitted.skipped_
    if not skipped:
        return []
    total = sum(item.rows for item in skipped)
    sources = len({item.source for item in skipped})
    rows = "1 row was" if total == 1 else f"{total:,} rows were"
    of = "1 source" if sources == 1 else f"{sources} sources"
    lines = [f"{rows} left out, of {of}:", *(wrapped(str(item)) for item in skipped[:MOST])]
    if len(skipped) > MOST:
        lines.append(f"  ... and {len(skipped) - MOST} more (in the report)")
    kept = set(fitted.sources_.tolist())
    gone = [
        name
        for name in dict.fromkeys(item.source for item in skipped)
        if name not in {*kept, UNNAMED, UNREADABLE}
    ]
    if gone:
        lines.append(wrapped(f"Too little is left of {', '.join(gone[:MOST])}."))
    return [*lines, ""]


def left_out_columns(fitted: TableModel) -> list[str]:
    """Return lines on columns that no model sees, though nobody asked for that."""
    rules = [rule for rule in fitted.preprocessor_.rules_ if rule.kind == "left out"]
    lines = [
        wrapped(
            (LEFT_OUT_TEXT if rule.wordy else LEFT_OUT).format(
                name=rule.name, option=f"'{rule.name}'" if " " in rule.name else rule.name
            ),
            indent="",
        )
        for rule in rules[:MOST]
    ]
    if len(rules) > MOST:
        lines.append(f"... and {len(rules) - MOST} more columns")
    return [*lines, ""] if lines else []


def wrapped(text: str, indent: str = "  ", width: int = 79) -> str:
    """Fit a sentence into 80 columns."""
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=indent)
