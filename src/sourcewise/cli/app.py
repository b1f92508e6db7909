"""All commands under one name."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sourcewise import __version__
from sourcewise.cli.audit import audit
from sourcewise.cli.demo import demo
from sourcewise.cli.entry import BAD_INPUT, INTERRUPT, INTERRUPTED, complain
from sourcewise.cli.export import export
from sourcewise.cli.federated import app as federated
from sourcewise.cli.fit import fit
from sourcewise.cli.images import images
from sourcewise.cli.predict import predict
from sourcewise.cli.reproduce import StudyInterrupted, reproduce
from sourcewise.cli.tables_and_figures import figures, tables

# typer brings click along or vendors it, depending on its version.
UsageProblem: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="sourcewise",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, audit, fit, predict, export, reproduce, tables, figures):
    app.command()(command)
app.add_typer(images, name="images")
app.add_typer(federated, name="federated")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sourcewise {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find out which data sources you can trust, and train on the good ones.

    You need a table, a column that says where each row came from, and rows that you trust.
    Start with [bold]sourcewise demo[/bold].
    """


def run(arguments: list[str]) -> int:
    """Run a command; what is wrong with its arguments becomes one sentence."""
    command = typer.main.get_command(app)
    try:
        code = command.main(arguments, prog_name="sourcewise", standalone_mode=False)
    except StudyInterrupted as stop:  # the others leave nothing behind
        return complain(str(stop), INTERRUPT)
    except typer.Exit as stop:
        code = stop.exit_code
    except typer.Abort:
        code = INTERRUPT
    except UsageProblem as error:
        message = error.format_message()
        if not message:  # no arguments at all: the help has been printed
            return BAD_INPUT
        return complain(f"{message.rstrip('.')} (sourcewise --help lists what there is).")
    # What an interruption becomes depends on typer's version; all of them end here.
    if code == INTERRUPT:
        return complain(INTERRUPTED, INTERRUPT)
    return code if isinstance(code, int) else 0
