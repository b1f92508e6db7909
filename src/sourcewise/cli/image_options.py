"""The options of an audit of pictures, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

PICTURES = "Pictures"
NO_IMAGE = "{option} is for tables of pictures; say with --image which column holds their paths."

Image = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of paths of pictures, from which features are computed.",
        show_default=False,
        rich_help_panel=PICTURES,
    ),
]
ImageFolder = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Where those paths begin. Default: where the table is.",
        show_default=False,
        rich_help_panel=PICTURES,
    ),
]
ImageSize = Annotated[
    int,
    typer.Option(
        metavar="PIXELS",
        min=32,
        help="Bring pictures to squares of this side; smaller ones take less time.",
        rich_help_panel=PICTURES,
    ),
]
ShowImages = Annotated[
    bool,
    typer.Option(
        "--show-images",
        help="Put small copies of the pictures that differ most into the page.",
        rich_help_panel=PICTURES,
    ),
]
SkipBadPictures = Annotated[
    bool,
    typer.Option(
        "--skip-bad-pictures",
        help="Leave out rows whose picture cannot be read.",
        rich_help_panel=PICTURES,
    ),
]


@contextmanager
def with_pictures(
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
