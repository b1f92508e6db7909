"""``sourcewise federated``: sources whose rows may not leave their owners."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from sourcewise.cli import options as o
from sourcewise.cli.output import write_folder
from sourcewise.extras import how_to_install
from sourcewise.safe_text import visible

app = typer.Typer(
    name="federated",
    no_args_is_help=True,
    help="Learn from sites whose rows may not leave them, over Flower.",
)

FOLDER_EXISTS = "{path} exists already; name a new folder."
NO_TABLE = "There is no table {path}; --reference names the rows that you trust."
NO_FLOWER = "Federated fits need {name}, which is not installed: {how}."
NEXT = """\
Project:  {folder}/pyproject.toml       what the server does; edit its configuration
Site:     {folder}/site.toml            one for each site, kept there by its owner
Flower:   {folder}/flower/config.toml   where the SuperLink is, for flwr run

Next (between machines, with keys and certificates instead of --insecure:
docs/federated-administrator.md). At the server, with Flower's own programs:
  export FLWR_HOME={home} FLWR_TELEMETRY_ENABLED=0 FLWR_DISABLE_UPDATE_CHECK=1
  flower-superlink --insecure --host 127.0.0.1 --disable-runtime-dependency-installation
At each site, where nothing that is sent is ever run:
  sourcewise federated site site.toml --superlink {address} --insecure
At the server, once the sites are there:
  flwr run {folder} --stream"""
EXAMPLE_REFERENCE = "/path/to/reference.csv"


@app.command()
def demo(quiet: o.Quiet = False) -> None:
    """See it work: a SuperLink and three sites on this machine, one with bad labels."""
    _check_flower()
    from sourcewise.engines.flower.demo import run_demo

    if not quiet:
        print("Starting a SuperLink and three sites on 127.0.0.1; half a minute ...", flush=True)
    with tempfile.TemporaryDirectory(prefix="sourcewise-federated-") as folder:
        result = run_demo(Path(folder))
    if not quiet:
        print(f"\n{result}\n\nFor your own sites: sourcewise federated init DIR")


@app.command()
def site(
    file: Annotated[Path, o.given("SITE.TOML", "The site's own file.")],
    superlink: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where the questions come from.")
    ] = "127.0.0.1:8000",
    root_certificates: Annotated[
        Path | None, o.told("FILE", "Of the authority that signed the server's.")
    ] = None,
    key: Annotated[
        Path | None, o.told("FILE", "This site's private key, if nodes register.")
    ] = None,
    insecure: Annotated[bool, o.flag("--insecure", "Without encryption.")] = False,
    max_retries: Annotated[
        int | None, o.told("N", "Give up after so many.", min=0, show_default="never")
    ] = None,
) -> None:
    """Answer questions about a table that stays here, as far as its owner allows.

    Nothing that is sent is ever run, and no port is opened.
    """
    _check_flower()
    from sourcewise.engines.flower.node import Node, SuperLink

    def tell(sentence: str) -> None:
        print(visible(sentence), flush=True)

    node = Node(file, tell)
    try:
        node.serve(SuperLink(superlink, root_certificates, key, insecure), max_retries)
    except KeyboardInterrupt:
        print(f"Site {node.site.name!r} has stopped.")


@app.command()
def init(
    directory: Annotated[Path, o.given("DIR", "Folder to make.")],
    reference: Annotated[
        Path | None, o.told("FILE", "Table of rows that you trust, CSV or Parquet.")
    ] = None,
    label: Annotated[
        str, typer.Option(metavar="COLUMN", help="Column of the labels, at every site.")
    ] = "label",
    sites: Annotated[
        int, typer.Option(metavar="N", min=1, help="No result from fewer sites than this.")
    ] = 2,
) -> None:
    """Write a Flower project for your own sites.

    Each site reads a CSV or Parquet of its own, by a file that only its owner writes.
    """
    _check_flower()
    from sourcewise.engines.flower.project import ADDRESS, FLOWER_HOME, project_files
    from sourcewise.tables.reading import open_table

    if directory.exists():
        raise ValueError(FOLDER_EXISTS.format(path=directory))
    if reference is not None and not reference.exists():
        raise ValueError(NO_TABLE.format(path=reference))
    table = str(reference.resolve()) if reference is not None else EXAMPLE_REFERENCE
    features: list[str] = []
    if reference is not None:
        found = open_table(reference)
        found.check_columns([label])
        features = [name for name in found.schema.names if name != label]
    texts = project_files(table, label, str(directory.resolve()), sites, features=features)
    _write_project(directory, texts)
    print(NEXT.format(folder=directory, home=directory.resolve() / FLOWER_HOME, address=ADDRESS))


def _check_flower() -> None:
    # Read by Flower when it is imported.
    os.environ.update(FLWR_TELEMETRY_ENABLED="0", FLWR_DISABLE_UPDATE_CHECK="1")
    try:
        import flwr  # noqa: F401
    except ModuleNotFoundError as error:
        how = how_to_install("flower")
        raise ImportError(NO_FLOWER.format(name=error.name, how=how)) from error


def _write_project(directory: Path, texts: dict[str, str]) -> None:
    folders: dict[Path, dict[str, bytes]] = {}
    for path, text in texts.items():
        where = directory / path
        folders.setdefault(where.parent, {})[where.name] = text.encode()
    for folder, contents in folders.items():
        write_folder(folder, contents)
