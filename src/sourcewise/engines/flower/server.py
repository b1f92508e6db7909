"""The server's side as a Flower app: wait for sites, fit, write the model and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from sourcewise import SourceReport, SourceWeightedClassifier, SourceWeightedRegressor, save
from sourcewise.engines.flower.carriers import Carrier, GridCarrier
from sourcewise.engines.flower.session import Round
from sourcewise.engines.flower.setup import labels_of, learn_table
from sourcewise.engines.flower.sources import FederatedFacts, FlowerSources
from sourcewise.files import staged
from sourcewise.tables.model import TableModel
from sourcewise.tables.reading import open_table

UNKNOWN_SETTING = "The run's configuration has {name!r}, which means nothing; there are {known}."
BAD_SETTING = "The run's configuration needs {name!r} to be {what}; it is {value!r}."
NO_LABEL = 'Name the column of the labels: label="..." in the run\'s configuration.'
NO_REFERENCE = 'Name the table of rows that you trust: reference="..." in the configuration.'
NO_FOLDER = "The folder {path} for the results does not exist; create it first."
TOO_FEW_CAME = "{found} sites came within {seconds:.0f} seconds, and {least} are wanted."

MODEL, REPORT, PAGE, FACTS = "model.skops", "report.json", "report.html", "federated.json"
SECONDS_A_ROUND = 8.0  # of nodes that ask for work every 3 seconds
MOST_CLASSES = 20  # whole numbers with more values among the trusted rows are quantities


@dataclass(frozen=True)
class RunSettings:
    """What ``flwr run --run-config`` may set; see the comments that ``federated init`` writes.

    Attributes
    ----------
    reference : str
        Table of the trusted rows.
    label : str
        Its column of labels.
    output : str
        Folder for the results.
    name : str
        What the reference is called in the report.
    mode, discrepancy : str
        As for :class:`FlowerSources` and :class:`~sourcewise.SourceWeightedClassifier`.
    task : {"auto", "classification", "regression"}
    sites : int
        No result from fewer.
    wait, timeout : float
        Seconds to wait for sites, and for an answer.
    exact_selection : bool
    seed : int

    Examples
    --------
    >>> from sourcewise.engines.flower import RunSettings
    >>> found = RunSettings.of({"reference": "trusted.csv", "label": "sick", "sites": 3})
    >>> found.sites, found.mode
    (3, 'models-only')
    """

    reference: str = ""
    label: str = ""
    output: str = "."
    name: str = "reference"
    mode: str = "models-only"
    discrepancy: str = "combined"
    task: str = "auto"
    sites: int = 1
    wait: float = 60.0
    timeout: float = 600.0
    exact_selection: bool = False
    show_rows: int = 0
    seed: int = 0

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> RunSettings:
        """Read Flower's configuration, whose names have dashes."""
        found: dict[str, Any] = {}
        known = {name: type(value) for name, value in asdict(cls()).items()}
        for key, value in config.items():
            name = key.replace("-", "_")
            if name not in known:
                raise ValueError(UNKNOWN_SETTING.format(name=key, known=", ".join(known)))
            wanted = known[name]
            if wanted is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not wanted:
                what = {str: "a text", int: "a whole number", bool: "true or false"}
                raise ValueError(
                    BAD_SETTING.format(name=key, what=what.get(wanted, "a number"), value=value)
                )
            found[name] = value
        settings = cls(**found)
        if not settings.label:
            raise ValueError(NO_LABEL)
        if not settings.reference:
            raise ValueError(NO_REFERENCE)
        return settings


def server_app() -> ServerApp:
    """Make the Flower server: fits one model, by the run's configuration, and writes it.

    Returns
    -------
    app : flwr.serverapp.ServerApp

    Examples
    --------
    The module that a Flower project names as its ``serverapp``:

    >>> from sourcewise.engines.flower import server_app
    >>> app = server_app()
    >>> type(app).__name__
    'ServerApp'
    """
    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            run_server(GridCarrier(grid), RunSettings.of(context.run_config))
        except ValueError as error:
            # What Flower prints of an error is long; this line says what to do.
            print(f"sourcewise: {' '.join(str(error).split())}", flush=True)
            raise

    return app


def run_server(carrier: Carrier, settings: RunSettings) -> TableModel:
    r"""Fit a model to the reference's table and the sites, and write all that came of it.

    Parameters
    ----------
    carrier : GridCarrier or LocalCarrier
    settings : RunSettings

    Returns
    -------
    TableModel

    Examples
    --------
    >>> import contextlib, io, tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sourcewise.engines.flower import LocalCarrier, RunSettings, Site, run_server
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(120, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> north = Site.of_arrays("north", X[40:80], y[40:80])
    >>> south = Site.of_arrays("south", X[80:], y[80:])
    >>> rows = [f"{a},{b},{label}" for (a, b), label in zip(X[:40], y[:40])]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = Path(folder, "trusted.csv")
    ...     size = table.write_text("\n".join(["a,b,label", *rows]), encoding="utf-8")
    ...     settings = RunSettings(reference=str(table), label="label", output=folder)
    ...     with contextlib.redirect_stdout(io.StringIO()):
    ...         model = run_server(LocalCarrier([north, south]), settings)
    ...     written = sorted(path.name for path in Path(folder).iterdir())
    >>> model.sources_.tolist()
    ['reference', 'north', 'south']
    >>> written
    ['federated.json', 'model.skops', 'report.html', 'report.json', 'trusted.csv']
    """
    folder = Path(settings.output)
    if not folder.is_dir():
        raise ValueError(NO_FOLDER.format(path=folder))
    table = _read_reference(Path(settings.reference), settings.label)
    rules = learn_table(table, settings.label)
    y, classes = _targets(labels_of(table, rules), settings.task)
    preprocessor = rules.preprocessor
    X = preprocessor.transform(table.drop_columns([settings.label]))
    wait_for_sites(carrier, settings.sites, settings.wait)
    sources = FlowerSources(
        carrier,
        X,
        y,
        mode=settings.mode,
        exact_selection=settings.exact_selection,
        table=rules,
        least_sites=settings.sites,
        timeout=settings.timeout,
        show_rows=settings.show_rows or None,
        on_round=_tell,
        on_expected=_warn,
    )
    kind: Any = SourceWeightedClassifier if classes else SourceWeightedRegressor
    protocol = "paper" if settings.discrepancy == "paper" else None
    model = kind(
        reference=settings.name,
        discrepancy="plug-in" if protocol else settings.discrepancy,
        protocol=protocol,
        random_state=settings.seed,
        keep_data=False,
    )
    model.fit_sources(sources)
    fitted = TableModel(settings.label, "site", settings.name).take(preprocessor, model)
    report = report_of(fitted, sources.facts)
    _write(folder, fitted, report, sources.facts)
    print(f"\n{report}\n\n{cost_in_words(sources.facts)}", flush=True)
    return fitted


def wait_for_sites(carrier: Carrier, least: int, seconds: float) -> None:
    """Wait until so many nodes are connected."""
    begin = time.monotonic()
    while (found := len(carrier.nodes())) < least:
        if time.monotonic() - begin > seconds:
            raise ValueError(TOO_FEW_CAME.format(found=found, seconds=seconds, least=least))
        time.sleep(0.2)


def report_of(fitted: TableModel, facts: FederatedFacts) -> SourceReport:
    """Return the model's report, which says how the fit came about."""
    report = fitted.report()
    new = [note for note in facts.notes if note not in report.notes]
    return replace(report, notes=(*report.notes, *new))


def cost_in_words(facts: FederatedFacts) -> str:
    """Say what the fit has cost, in a line."""
    return (
        f"{len(facts.rounds)} rounds, {facts.seconds:.0f} s, {_size(facts.bytes_down)} sent to the "
        f"sites and {_size(facts.bytes_up)} received."
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 1e5 else f"{n_bytes / 1e3:.1f} kB"


def _tell(made: Round) -> None:
    print(
        f"asked {made.sites} sites for {' and '.join(made.questions)}: {made.seconds:.1f} s, "
        f"{_size(made.down)} sent, {_size(made.up)} received",
        flush=True,
    )


def _warn(rounds: int) -> None:
    minutes = rounds * SECONDS_A_ROUND / 60.0
    print(
        f"choosing the trade-off exactly will take about {rounds} rounds, {minutes:.0f} minutes at "
        f"{SECONDS_A_ROUND:.0f} s a round",
        flush=True,
    )


def _read_reference(path: Path, label: str) -> Any:
    import pyarrow as pa

    table = open_table(path)
    table.check_columns([label])
    return pa.Table.from_batches([batch for _, batch in table.batches(table.schema.names)])


def _targets(y: np.ndarray, task: str) -> tuple[np.ndarray, bool]:
    """Return the targets, and whether they are classes."""
    if task not in ("auto", "classification", "regression"):
        what = "auto, classification or regression"
        raise ValueError(BAD_SETTING.format(name="task", what=what, value=task))
    classes = task == "classification"
    if task == "auto":
        classes = y.dtype.kind != "f" and len(np.unique(y)) <= MOST_CLASSES
        classes = classes or y.dtype.kind in "bU"
    return (y, True) if classes else (y.astype(np.float64), False)


def _write(folder: Path, fitted: TableModel, report: SourceReport, facts: FederatedFacts) -> None:
    """Write the model, its report and the facts: all files, or none."""
    paths = [folder / name for name in (MODEL, REPORT, PAGE, FACTS)]
    with staged(*paths) as (model, text, page, told):
        save(fitted, model)
        report.to_json(text)
        report.to_html(page)
        content = {
            "mode": facts.mode,
            "rule": facts.rule,
            "rounds": [asdict(made) for made in facts.rounds],
            "bytes_down": facts.bytes_down,
            "bytes_up": facts.bytes_up,
            "seconds": facts.seconds,
            "left_out": facts.left_out,
            "capped": facts.capped,
            "sites": {
                str(name): float(weight)
                for name, weight in zip(fitted.sources_, fitted.source_weights_, strict=True)
            },
        }
        told.write_text(json.dumps(content, indent=2), encoding="utf-8")
