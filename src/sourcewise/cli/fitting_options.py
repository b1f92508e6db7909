"""The options of commands that fit a model to a table, in memory or on a cluster."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate

import typer

from sourcewise.audit import Settings
from sourcewise.cli.options import FITTING, Seed, flag, given, listed, told
from sourcewise.cli.output import check_outside
from sourcewise.core.discrepancy.methods import DISCREPANCIES
from sourcewise.progress import JsonLines, listening, progress_bars
from sourcewise.tables.request import TableRequest

if TYPE_CHECKING:
    from sourcewise.engines.dask.table_sources import TableSources

ONLY_ON_CLUSTER = "{option} is for --engine dask; add that, or leave it out."
TLS_TOGETHER = "--tls-ca, --tls-cert and --tls-key go together; give all three."
TLS_NEEDS_SCHEDULER = "--tls-ca, --tls-cert and --tls-key are for a --scheduler."
NO_TLS_FILE = "There is no file {path}, which {option} names."
BAD_TRADE_OFF = "--trade-off must be cv, theory or a number that is not negative; got {value!r}."

TABLE, CLUSTER = "The table", "A cluster"

# What the labels are, whose choices to follow, how features are scaled, and where the rows are.
Task = StrEnum("Task", ["auto", "classification", "regression"])
Protocol = StrEnum("Protocol", ["paper"])
Scaling = StrEnum("Scaling", ["auto", "standard", "keep"])
Place = StrEnum("Place", ["memory", "dask"])
# How far a source lies from the reference. The names are those that the estimators know, which a
# type checker cannot follow.
Discrepancy = StrEnum(  # type: ignore[misc]
    "Discrepancy", {name.replace("-", "_"): name for name in DISCREPANCIES}
)


def _tls_file(what: str) -> Any:
    return told("FILE", f"The {what}, for a scheduler that wants TLS.", CLUSTER)


@dataclass(frozen=True)
class FittingOptions:
    """What ``audit`` and ``fit`` are both given, in the order of their help."""

    data: Annotated[Path, given("DATA", "CSV file, Parquet file, or folder of Parquet files.")]
    label: Annotated[
        str, told("COLUMN", "Column to predict: classes (text too) or numbers.", TABLE)
    ]
    source: Annotated[str, told("COLUMN", "Column that says where a row came from.", TABLE)]
    reference: Annotated[
        str | None,
        told("VALUE", "Value of the source column that names the rows you trust.", TABLE),
    ] = None
    reference_file: Annotated[
        Path | None,
        told("FILE", "A second table, of the rows you trust; instead of --reference.", TABLE),
    ] = None
    features: Annotated[
        list[str] | None,
        told(
            "COLUMNS", "Columns to predict from, separated by commas. Default: all others.", TABLE
        ),
    ] = None
    drop: Annotated[
        list[str] | None, told("COLUMNS", "Columns to leave out (identifiers, dates).", TABLE)
    ] = None
    categories: Annotated[
        list[str] | None,
        told(
            "COLUMNS",
            "Columns to take as categories even if they hold numbers (post codes).",
            TABLE,
        ),
    ] = None
    text: Annotated[
        list[str] | None, told("COLUMNS", "Columns of free text, whose words are features.", TABLE)
    ] = None
    dates: Annotated[
        bool, flag("--dates", "Turn dates into numbers (days since 1970-01-01).", TABLE)
    ] = False
    skip_bad_rows: Annotated[
        bool,
        flag(
            "--skip-bad-rows",
            "Leave out rows with an unknown or empty label or rubbish in a number, and hold "
            "them against their source.",
            TABLE,
        ),
    ] = False
    task: Annotated[
        Task,
        told(
            "TASK",
            "What the label is: auto, classification or regression.",
            TABLE,
            show_default=True,
        ),
    ] = Task.auto
    min_rows: Annotated[
        int, told("N", "Leave out sources with fewer rows.", TABLE, min=1, show_default=True)
    ] = 1
    discrepancy: Annotated[
        Discrepancy,
        told(
            "METHOD",
            f"How sources are compared: {', '.join(list(DISCREPANCIES)[:-1])} or "
            f"{list(DISCREPANCIES)[-1]}.",
            FITTING,
            show_default=True,
        ),
    ] = Discrepancy(Settings.discrepancy)
    trade_off: Annotated[
        str,
        told(
            "LAMBDA",
            "Lambda: cv (cross-validated), theory, or a number; 0 trusts the reference alone.",
            FITTING,
            show_default=True,
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
        told(
            "HOW",
            "How features are scaled: auto (the reference decides), standard (all alike) or "
            "keep (in proportion).",
            FITTING,
            show_default=True,
        ),
    ] = Scaling(Settings.scaling)
    seed: Seed = 0
    jobs: Annotated[
        int | None, told("N", "Parallel fits (results do not depend on it).", FITTING)
    ] = None

    engine: Annotated[
        Place,
        told(
            "ENGINE",
            "Where the rows are: memory, or dask for a folder of Parquet files on a cluster.",
            CLUSTER,
            show_default=True,
        ),
    ] = Place.memory
    scheduler: Annotated[
        str | None,
        told(
            "ADDRESS",
            "Dask scheduler (tcp://host:8786). Default: workers on this machine.",
            CLUSTER,
        ),
    ] = None
    resume: Annotated[
        Path | None,
        told("FOLDER", "Keep what is found in a folder, and go on from what is there.", CLUSTER),
    ] = None
    tls_ca: Annotated[Path | None, _tls_file("authority's certificate")] = None
    tls_cert: Annotated[Path | None, _tls_file("client's certificate")] = None
    tls_key: Annotated[Path | None, _tls_file("client's key")] = None

    def table_request(self) -> TableRequest:
        """Collect what the options say about the table."""
        lists = ("features", "drop", "categories", "text")
        given = {each.name: getattr(self, each.name) for each in fields(TableRequest)}
        given |= {name: listed(given[name]) for name in lists}
        return TableRequest(**given | {"task": self.task.value})

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


# -- rows on a cluster ------------------------------------------------------------------------


def on_cluster(given: FittingOptions) -> bool:
    """Whether the rows are on a cluster; checks the options that are about one."""
    files = {"--tls-ca": given.tls_ca, "--tls-cert": given.tls_cert, "--tls-key": given.tls_key}
    if given.engine is not Place.dask:
        for option, value in {
            "--scheduler": given.scheduler, "--resume": given.resume, **files
        }.items():  # fmt: skip
            if value is not None:
                raise ValueError(ONLY_ON_CLUSTER.format(option=option))
        return False
    if given.resume is not None:
        check_outside(given.resume, given.data)
    if any(files.values()):
        if given.scheduler is None:
            raise ValueError(TLS_NEEDS_SCHEDULER)
        if not all(files.values()):
            raise ValueError(TLS_TOGETHER)
        for option, path in files.items():
            if path is not None and not path.is_file():
                raise ValueError(NO_TLS_FILE.format(path=path, option=option))
    return True


@contextmanager
def sources_on_cluster(given: FittingOptions) -> Iterator[TableSources]:
    """Connect to the cluster, or start one, and take the table there."""
    from sourcewise.engines.dask.sources import check_installed
    from sourcewise.engines.dask.table_sources import TableSources

    check_installed()
    request = given.table_request()
    with _client(given) as client, TableSources(request, client, given.resume) as sources:
        yield sources


def _client(given: FittingOptions) -> Any:
    from sourcewise.engines.dask.cluster import Tls, connected, local_cluster

    if given.scheduler is None:
        return local_cluster()
    if given.tls_ca is None or given.tls_cert is None or given.tls_key is None:
        return connected(given.scheduler)
    return connected(given.scheduler, Tls(given.tls_ca, given.tls_cert, given.tls_key))


def progress_of_cluster(quiet: bool, as_json: bool) -> AbstractContextManager[None]:
    """Bars for a person, lines for a log."""
    return listening(JsonLines()) if as_json and not quiet else progress_bars(quiet)
