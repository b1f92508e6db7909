"""Options that several commands share, and what becomes of them."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sourcewise.audit import Settings
from sourcewise.tables.training import TableRequest

BAD_TRADE_OFF = "--trade-off must be cv, theory or a number that is not negative; got {value!r}."

TABLE, FITTING, OUTPUT = "The table", "How to fit", "Output"


class Task(StrEnum):
    """What the labels are."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Discrepancy(StrEnum):
    """How far a source lies from the reference."""

    local = "local"
    cross_fit = "cross-fit"
    plug_in = "plug-in"


class Protocol(StrEnum):
    """Whose choices to follow."""

    paper = "paper"


Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV file, Parquet file, or folder of Parquet files.",
        show_default=False,
    ),
]
Label = Annotated[
    str,
    typer.Option(
        metavar="COLUMN",
        help="Column to predict: classes (text too) or numbers.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Source = Annotated[
    str,
    typer.Option(
        metavar="COLUMN",
        help="Column that says where a row came from.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Value of the source column that names the rows you trust.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
ReferenceFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A second table, of the rows you trust; instead of --reference.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to predict from, separated by commas. Default: all others.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to leave out (identifiers, dates).",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Columns to take as categories even if they hold numbers (post codes).",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
TaskOption = Annotated[
    Task,
    typer.Option(
        help="What the label is: auto, classification or regression.",
        rich_help_panel=TABLE,
        metavar="TASK",
    ),
]
MinRows = Annotated[
    int,
    typer.Option(
        metavar="N", min=1, help="Leave out sources with fewer rows.", rich_help_panel=TABLE
    ),
]
DiscrepancyOption = Annotated[
    Discrepancy,
    typer.Option(
        metavar="METHOD",
        help="How sources are compared: local, cross-fit or plug-in.",
        rich_help_panel=FITTING,
    ),
]
TradeOff = Annotated[
    str,
    typer.Option(
        metavar="LAMBDA",
        help="Lambda: cv (cross-validated), theory, or a number; 0 trusts the reference alone.",
        rich_help_panel=FITTING,
    ),
]
ProtocolOption = Annotated[
    Protocol | None,
    typer.Option(
        help="'paper' does exactly what the paper says.",
        show_default=False,
        rich_help_panel=FITTING,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=2**32 - 1, help="Deals the folds.", rich_help_panel=FITTING
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Parallel fits (results do not depend on it).",
        show_default=False,
        rich_help_panel=FITTING,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print nothing but errors.", rich_help_panel=OUTPUT),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the result as JSON.", rich_help_panel=OUTPUT),
]


def table_request(
    data: Path,
    label: str,
    source: str,
    reference: str | None,
    reference_file: Path | None,
    features: list[str] | None,
    drop: list[str] | None,
    categories: list[str] | None,
    task: Task,
    min_rows: int,
) -> TableRequest:
    """Collect what was said about the table."""
    return TableRequest(
        data,
        label,
        source,
        reference,
        reference_file,
        _listed(features),
        _listed(drop),
        _listed(categories),
        task.value,
        min_rows,
    )


def _listed(values: list[str] | None) -> tuple[str, ...]:
    parts = [part.strip() for value in values or [] for part in value.split(",")]
    return tuple(part for part in parts if part)


def fit_settings(
    discrepancy: Discrepancy,
    trade_off: str,
    protocol: Protocol | None,
    seed: int,
    jobs: int | None,
) -> Settings:
    """Collect what was said about fitting."""
    chosen: str | float = trade_off
    if trade_off not in ("cv", "theory"):
        try:
            chosen = float(trade_off)
        except ValueError:
            raise ValueError(BAD_TRADE_OFF.format(value=trade_off)) from None
        if not chosen >= 0:
            raise ValueError(BAD_TRADE_OFF.format(value=trade_off))
    return Settings(
        discrepancy.value, chosen, None if protocol is None else protocol.value, seed, jobs
    )


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["sourcewise", *sys.argv[1:]])
