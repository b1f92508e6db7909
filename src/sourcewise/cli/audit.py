"""``sourcewise audit``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from sourcewise.audit import Audit, run_audit
from sourcewise.audit.run import LINEAR, NAMES
from sourcewise.cli import options as o
from sourcewise.cli.fit import table_notes, wrapped
from sourcewise.cli.fitting_options import (
    FittingOptions,
    on_cluster,
    progress_of_cluster,
    sources_on_cluster,
    with_fitting_options,
)
from sourcewise.cli.output import (
    DATA,
    PAGE,
    STDOUT,
    check_output,
    facts,
    outputs,
    print_json,
    prints_itself,
    say,
)
from sourcewise.progress import progress_bars
from sourcewise.report.html import render
from sourcewise.report.html.numbers import in_unit
from sourcewise.safe_text import json_text
from sourcewise.tables.request import ONLY_IN_MEMORY
from sourcewise.tables.training import read_training

PICTURES = "Pictures"
NO_IMAGE = "{option} is for tables of pictures; say with --image which column holds their paths."

# What is trained. A type checker cannot follow the names.
Learner = StrEnum("Learner", {name: name for name in NAMES})  # type: ignore[misc]

DEFAULT_LEARNER = Learner(LINEAR)


@with_fitting_options
def audit(
    given: FittingOptions,
    *,
    output: Annotated[
        Path | None,
        o.output(
            "FILE",
            "Report to write: a page (.html), or data (.json; - for standard output).",
            o.OUTPUT,
        ),
    ] = None,
    learner: Annotated[
        Learner,
        o.told(
            "NAME",
            f"What is trained on the weighted rows: {', '.join(NAMES[:-1])} or {NAMES[-1]}.",
            o.FITTING,
            show_default=True,
        ),
    ] = DEFAULT_LEARNER,
    image: Annotated[
        str | None,
        o.told(
            "COLUMN", "Column of paths of pictures, from which features are computed.", PICTURES
        ),
    ] = None,
    image_folder: Annotated[
        Path | None,
        o.told("FOLDER", "Where those paths begin. Default: where the table is.", PICTURES),
    ] = None,
    image_size: Annotated[
        int,
        o.told(
            "PIXELS",
            "Bring pictures to squares of this side; smaller ones take less time.",
            PICTURES,
            min=32,
            show_default=True,
        ),
    ] = 224,
    show_images: Annotated[
        bool,
        o.flag(
            "--show-images",
            "Put small copies of the pictures that differ most into the page.",
            PICTURES,
        ),
    ] = False,
    skip_bad_pictures: Annotated[
        bool,
        o.flag("--skip-bad-pictures", "Leave out rows whose picture cannot be read.", PICTURES),
    ] = False,
    quiet: o.Quiet = False,
    as_json: o.Json = False,
) -> None:
    """Say how far each source can be trusted, and why, in a report.

    Example: sourcewise audit data.csv --label y --source vendor --reference gold -o report.html
    """
    content = DATA if output is not None and _is_data(output) else PAGE
    check_output(output, content, given.data, given.reference_file)
    quiet = prints_itself(as_json, output) or quiet
    settings = replace(given.settings(), learner=learner.value)
    about = facts(given.seed, o.command_line())
    pictures = None
    if on_cluster(given):
        if image is not None or image_folder is not None or show_images or skip_bad_pictures:
            raise ValueError(ONLY_IN_MEMORY.format(option="--image"))
        if learner != DEFAULT_LEARNER:
            raise ValueError(ONLY_IN_MEMORY.format(option="--learner"))
        with progress_of_cluster(quiet, as_json), sources_on_cluster(given) as sources:
            from sourcewise.audit.on_cluster import audit_on_cluster

            result, fitted = audit_on_cluster(sources, settings, about)
    else:
        asked = {"show": show_images, "skip_bad": skip_bad_pictures}
        with (
            progress_bars(quiet),
            _with_pictures(given.table_request(), image, image_folder, image_size, **asked) as (
                table,
                pictures,
            ),
        ):
            training = read_training(table)
            result, fitted = run_audit(
                training, settings, label=given.label, source=given.source, facts=about
            )
            if show_images:
                from sourcewise.images.audit_table import strips

                shown = strips(result, fitted, training, pictures)
                result = replace(result, strips=shown)
    left_out = [] if pictures is None else pictures.problems
    write_audit(result, output)
    if as_json:
        print_json(result.to_dict())
    elif not quiet:
        say("\n".join([in_words(result), "", *table_notes(fitted)]).rstrip())
        if left_out:
            rows = "row was" if len(left_out) == 1 else "rows were"
            say(f"\n{len(left_out)} {rows} left out for their pictures: {left_out[0]}")
        if output is not None:
            say(f"\nReport: {output}")


@contextmanager
def _with_pictures(
    request: Any,
    image: str | None,
    folder: Path | None,
    size: int,
    *,
    show: bool,
    skip_bad: bool,
) -> Iterator[tuple[Any, Any]]:
    """Give the table to read, and its pictures; both as they were if there is no such column."""
    if image is None:
        for option, given in (
            ("--image-folder", folder is not None),
            ("--show-images", show),
            ("--skip-bad-pictures", skip_bad),
        ):
            if given:
                raise ValueError(NO_IMAGE.format(option=option))
        yield request, None
        return
    from sourcewise.images.audit_table import picture_table
    from sourcewise.images.efficientnet import efficientnet_lite0

    network = efficientnet_lite0(size=size)
    with picture_table(request, image, network, folder=folder, skip_bad=skip_bad) as table:
        yield table.request, table


def write_audit(result: Audit, output: Path | None) -> None:
    """Write the page, or the data if the file's name asks for it."""
    if output is None:
        return
    text = json_text(result.to_dict()) if _is_data(output) else render(result)
    with outputs(output) as (temporary,):
        temporary.write_bytes(text.encode())


def _is_data(output: Path) -> bool:
    return output == STDOUT or output.suffix.lower() in DATA.endings


def in_words(result: Audit) -> str:
    """Lay the result out for a terminal of 80 columns."""
    first = [line for sentence in result.leaks for line in (wrapped(sentence, ""), "")]
    return "\n".join(
        [
            *first,
            wrapped(str(result.verdict), ""),
            "",
            str(result.report),
            "",
            *expected_errors(result),
        ]
    )


def expected_errors(result: Audit) -> list[str]:
    """Return lines with the errors to expect with and without weighted sources."""
    found = result.comparison
    sizes = [method.error for method in found.methods]
    share = "{:.1%}".format if found.measure == "error rate" else in_unit(sizes)
    lines = [f"Expected {found.measure} ({found.folds}-fold on {found.rows} trusted rows):"]
    rows = [[share(v) for v in (m.error, m.low, m.high)] for m in found.methods]
    width = max(8, *(len(row[0]) + 2 for row in rows))
    names = max(16, *(len(method.name) + 2 for method in found.methods))
    for method, (error, low, high) in zip(found.methods, rows, strict=True):
        lines.append(f"  {method.name:<{names}}{error:>{width}}   (95% interval {low} to {high})")
    return lines
