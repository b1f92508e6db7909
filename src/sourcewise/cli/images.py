"""``sourcewise images``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from sourcewise.cli import options as o
from sourcewise.cli.output import check_outside, say
from sourcewise.cli.reproduce import StudyInterrupted
from sourcewise.progress import progress_bars

ALL = "all"
BOTH = "Give --pca or --background, not both: the PCA is either there or to be learnt."
BAD_OUTPUT = "{path} is a file; give a folder for the features."
NO_CLASSES = (
    "The classes of the pictures are not known, so --attributes cannot say what they have; give a "
    "folder with a subfolder for each class, or a table with --label."
)
KEPT = "Interrupted; what is finished is kept in {path}, and the same command continues."
CLASS_COLUMN = "--label is a column of a table; {path} is a folder or an archive."

images = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Turn pictures into features: [bold]sourcewise images extract[/bold].",
)


@images.callback()
def about() -> None:
    """Turn pictures into features."""


@images.command()
def extract(
    pictures: Annotated[
        Path,
        o.given(
            "PICTURES",
            "Folder with a subfolder for each class, table with a column of paths (--image), "
            "or .npz of JPEG bytes.",
        ),
    ],
    output: Annotated[
        Path,
        o.output(
            "FOLDER",
            "Folder for the features, as sourcewise reproduce animals reads them.",
            o.OUTPUT,
        ),
    ],
    corruption: Annotated[
        list[str] | None,
        o.told(
            "NAMES",
            "Also corrupt every picture: blur, dead-pixels, rgb-swap (separated by commas), "
            "or all.",
        ),
    ] = None,
    background: Annotated[
        Path | None,
        o.told("PICTURES", "Learn a PCA on these other pictures and apply it to all features."),
    ] = None,
    pca: Annotated[Path | None, o.told("FILE", "Apply a PCA that was learnt before.")] = None,
    components: Annotated[
        int, typer.Option(metavar="N", min=1, help="Dimensions of a PCA to be learnt.")
    ] = 100,
    image: Annotated[str | None, o.told("COLUMN", "Of a table: its paths.")] = None,
    image_folder: Annotated[
        Path | None,
        o.told("FOLDER", "Of a table: where its paths begin. Default: where the table is."),
    ] = None,
    label: Annotated[str | None, o.told("COLUMN", "Of a table: its classes.")] = None,
    attributes: Annotated[
        Path | None,
        o.told(
            "PATH",
            "What each class has: the folder of predicate-matrix-binary.txt, or a table of "
            "classes and columns of 0 and 1. Default: those files beside the pictures, else "
            "every class is an attribute.",
        ),
    ] = None,
    size: Annotated[
        int,
        typer.Option(
            metavar="PIXELS",
            min=32,
            help="Bring pictures to squares of this side before anything else.",
        ),
    ] = 224,
    batch: Annotated[
        int, typer.Option(metavar="N", min=1, help="Pictures that go through the network at once.")
    ] = 32,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="Seed of the dead pixels.")
    ] = 0,
    skip_bad_pictures: Annotated[
        bool,
        o.flag("--skip-bad-pictures", "Leave out pictures that cannot be read, and list them."),
    ] = False,
    quiet: o.Quiet = False,
) -> None:
    """Compute features of pictures with EfficientNet-Lite0, clean and corrupted.

    Interrupted at any moment it loses at most 512 pictures; the same command continues.

    Example: sourcewise images extract AwA2/JPEGImages --background ImageNet
    --corruption all -o features
    """
    from sourcewise.images import FeaturePCA, efficientnet_lite0
    from sourcewise.images.feature_files import (
        LEFT_OUT,
        Extraction,
        find_attributes,
        read_attributes,
        write_features,
    )
    from sourcewise.images.pictures import open_pictures

    if pca is not None and background is not None:
        raise ValueError(BOTH)
    _check_folder(output, pictures, background)
    if label is not None and image is None:
        raise ValueError(CLASS_COLUMN.format(path=pictures))
    kinds = _kinds(corruption)
    found = open_pictures(pictures, column=image, label=label, folder=image_folder)
    if attributes is not None and found.classes is None:
        raise ValueError(NO_CLASSES)
    known = find_attributes(pictures) if attributes is None else read_attributes(attributes)
    wanted = Extraction(
        efficientnet_lite0(size=size, batch_size=batch),
        found,
        kinds,
        background=None if background is None else open_pictures(background),
        pca=None if pca is None else FeaturePCA.load(pca),
        n_components=components,
        attributes=known,
        seed=seed,
        skip_bad=skip_bad_pictures,
    )
    try:
        with progress_bars(quiet, 120.0):
            left_out = write_features(wanted, output)
    except KeyboardInterrupt:
        raise StudyInterrupted(KEPT.format(path=output)) from None
    if quiet:
        return
    files = len(kinds) + 1
    of = "file" if files == 1 else "files"
    say(f"{len(found) - len(left_out):,} pictures, {files} {of} of features: {output}")
    if left_out:
        were = "picture was" if len(left_out) == 1 else "pictures were"
        say(f"{len(left_out):,} {were} left out: {output / LEFT_OUT}")


def _kinds(texts: Iterable[str] | None) -> list[str]:
    """Names of corruptions, in the order of the studies, none twice."""
    from sourcewise.images.extractor import CORRUPTIONS, corruption_named

    asked = o.listed(texts)
    chosen = set(CORRUPTIONS) if ALL in asked else {corruption_named(each) for each in asked}
    return [kind for kind in CORRUPTIONS if kind in chosen]


def _check_folder(output: Path, *pictures: Path | None) -> None:
    """Find out before any work that the folder can be one."""
    if output.exists() and not output.is_dir():
        raise ValueError(BAD_OUTPUT.format(path=output))
    for folder in pictures:
        check_outside(output, folder)
