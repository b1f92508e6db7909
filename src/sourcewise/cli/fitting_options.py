"""The options of commands that fit a model to a table, and what becomes of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Concatenate

import typer

from sourcewise.audit import Settings
from sourcewise.cli.options import FITTING, Seed, listed
from sourcewise.core.discrepancy.methods import DISCREPANCIES
from sourcewise.tables.request import TableRequest

BAD_TRADE_OFF = "--trade-off must be cv, theory or a number that is not negative; got {value!r}."

TABLE, CLUSTER = "The table", "A cluster"


class Task(StrEnum):
    """What the labels are."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


# How far a source lies from the reference. The names are those that the estimators know, which a
# type checker cannot follow.
Discrepancy = StrEnum(  # type: ignore[misc]
    "Discrepancy", {name.replace("-", "_"): name for name in DISCREPANCIES}
)


class Protocol(StrEnum):
    """Whose choices to follow."""

    paper = "paper"


class Scaling(StrEnum):
    """How the default learner's features are scaled."""

    auto = "auto"
    standard = "standard"
    keep = "keep"


class Place(StrEnum):
    """Where the rows are."""

    memory = "memory"
    dask = "dask"


def _tls_file(what: str) -> Any:
    return typer.Option(
        metavar="FILE",
        help=f"The {what}, for a scheduler that wants TLS.",
        show_default=False,
        rich_help_panel=CLUSTER,
    )


@dataclass(frozen=True)
class FittingOptions:
    """What ``audit`` and ``fit`` are both given, in the order of their help."""

    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="CSV file, Parquet file, or folder of Parquet files.",
            show_default=False,
        ),
    ]
    label: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Column to predict: classes (text too) or numbers.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ]
    source: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="Column that says where a row came from.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ]
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="Value of the source column that names the rows you trust.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    reference_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A second table, of the rows you trust; instead of --reference.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to predict from, separated by commas. Default: all others.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    drop: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to leave out (identifiers, dates).",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    categories: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns to take as categories even if they hold numbers (post codes).",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    text: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Columns of free text, whose words are features.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None
    dates: Annotated[
        bool,
        typer.Option(
            "--dates",
            help="Turn dates into numbers (days since 1970-01-01).",
            rich_help_panel=TABLE,
        ),
    ] = False
    skip_bad_rows: Annotated[
        bool,
        typer.Option(
            "--skip-bad-rows",
            help="Leave out rows with an unknown or empty label or rubbish in a number, and hold "
            "them against their source.",
            rich_help_panel=TABLE,
        ),
    ] = False
    task: Annotated[
        Task,
        typer.Option(
            help="What the label is: auto, classification or regression.",
            rich_help_panel=TABLE,
            metavar="TASK",
        ),
    ] = Task.auto
    min_rows: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Leave out sources with fewer rows.", rich_help_panel=TABLE
        ),
    ] = 1
    discrepancy: Annotated[
        Discrepancy,
        typer.Option(
            metavar="METHOD",
            help=f"How sources are compared: {', '.join(list(DISCREPANCIES)[:-1])} or "
            f"{list(DISCREPANCIES)[-1]}.",
            rich_help_panel=FITTING,
        ),
    ] = Discrepancy(Settings.discrepancy)
    trade_off: Annotated[
        str,
        typer.Option(
            metavar="LAMBDA",
            help="Lambda: cv (cross-validated), theory, or a number; 0 trusts the reference alone.",
            rich_help_panel=FITTING,
        ),
    ] = "cv"
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            help="'paper' does exactly what the paper says.",
            show_default=False,
            rich_help_panel=FITTING,
        ),
    ] = None
    scaling: Annotated[
        Scaling,
        typer.Option(
            metavar="HOW",
            help="How features are scaled: auto (the reference decides), standard (all alike) or "
            "keep (in proportion).",
            rich_help_panel=FITTING,
        ),
    ] = Scaling(Settings.scaling)
    seed: Seed = 0
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Parallel fits (results do not depend on it).",
            show_default=False,
            rich_help_panel=FITTING,
        ),
    ] = None

    engine: Annotated[
        Place,
        typer.Option(
            metavar="ENGINE",
            help="Where the rows are: memory, or dask for a folder of Parquet files on a cluster.",
            rich_help_panel=CLUSTER,
        ),
    ] = Place.memory
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler (tcp://host:8786). Default: workers on this machine.",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Keep what is found in a folder, and go on from what is there.",
            show_default=False,
            rich_help_panel=CLUSTER,
        ),
    ] = None
    tls_ca: Annotated[Path | None, _tls_file("authority's certificate")] = None
    tls_cert: Annotated[Path | None, _tls_file("client's certificate")] = None
    tls_key: Annotated[Path | None, _tls_file("client's key")] = None

    def table_request(self) -> TableRequest:
        """Collect what the options say about the table."""
        return TableRequest(
            data=self.data,
            label=self.label,
            source=self.source,
            reference=self.reference,
            reference_file=self.reference_file,
            features=listed(self.features),
            drop=listed(self.drop),
            categories=listed(self.categories),
            task=self.task.value,
            min_rows=self.min_rows,
            text=listed(self.text),
            dates=self.dates,
            skip_bad_rows=self.skip_bad_rows,
        )

    def settings(self) -> Settings:
        """Collect what the options say about fitting."""
        return Settings(
            discrepancy=self.discrepancy.value,
            trade_off=_trade_off(self.trade_off),
            protocol=None if self.protocol is None else self.protocol.value,
            scaling=self.scaling.value,
            seed=self.seed,
            n_jobs=self.jobs,
        )


def _trade_off(text: str) -> str | float:
    if text in ("cv", "theory"):
        return text
    try:
        number = float(text)
    except ValueError:
        raise ValueError(BAD_TRADE_OFF.format(value=text)) from None
    if not number >= 0:
        raise ValueError(BAD_TRADE_OFF.format(value=text))
    return number


def with_fitting_options(
    command: Callable[Concatenate[FittingOptions, ...], None],
) -> Callable[..., None]:
    """Give a command an option for each field of its first argument, before its own options."""

    @functools.wraps(command)
    def expanded(**values: Any) -> None:
        shared = {field.name: values.pop(field.name) for field in fields(FittingOptions)}
        command(FittingOptions(**shared), **values)

    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = inspect.signature(FittingOptions, eval_str=True).parameters.values()
    by_name = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in [*shared, *own]]
    # typer reads the options off the signature.
    expanded.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]
    return expanded
