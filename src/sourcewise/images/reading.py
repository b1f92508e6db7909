"""One picture as an array, whatever kind of file it is in, or a sentence that says why not."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.extras import how_to_install

NOT_INSTALLED = "Pictures need {name}, which is not installed: {how}."
NO_PICTURE = "There is no picture {name}."
NOT_FILE = "{name} is not a file."
NOT_READ = "{name} cannot be read: {why}."
EMPTY = "{name} is empty."
NOT_PICTURE = "{name} is not a picture that can be read ({kinds})."
BROKEN = "{name} is a damaged {kind} picture: {why}."
TOO_LARGE = (
    "{name} would unpack to more pixels than Pillow's limit of {limit:,} "
    "(PIL.Image.MAX_IMAGE_PIXELS), which guards against files made to fill the memory."
)
EXPANDS = (
    "{name} would unpack to {pixels:,} pixels, too many for a file of {size:,} bytes, as files do "
    "that were made to fill the memory."
)
# Pixels that any file may have, and for each of its bytes: blank scans have some hundred.
ANY_PIXELS, PIXELS_A_BYTE = 25_000_000, 300
MODE = "{name} holds numbers of mode {mode}, not colours; convert it to 8 bits a channel."
NOT_ARRAY = (
    "{name} must be an array of shape (height, width), (height, width, 3) or (height, width, 4) of "
    "type uint8; got shape {shape} of type {dtype}."
)

# Formats that hold pixels only. Pillow opens others by starting programs (EPS) or asks for more
# memory than the file has bytes.
KINDS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
SUFFIXES = frozenset(
    (
        ".bmp",
        ".gif",
        ".jpe",
        ".jpeg",
        ".jpg",
        ".mpo",
        ".pgm",
        ".png",
        ".ppm",
        ".tif",
        ".tiff",
        ".webp",
    )
)


class PictureError(ValueError):
    """A picture that cannot be used; the message names it and says why.

    Examples
    --------
    >>> from sourcewise.images import PictureError, read_picture
    >>> try:
    ...     read_picture(b"", name="cat.jpg")
    ... except PictureError as error:
    ...     print(error)
    cat.jpg is empty.
    """


def read_picture(picture: Any, *, size: int | None = None, name: str | None = None) -> np.ndarray:
    """Read a picture as red, green and blue.

    Greyscale, palettes, CMYK and 16 bits are converted; what is transparent becomes white; a
    camera's mark of which side is up is followed; of an animation the first frame is taken.

    Parameters
    ----------
    picture : path, bytes, uint8 array or PIL.Image.Image
    size : int, optional
        Take the largest square in the middle and bring it to ``size`` pixels a side. By default the
        picture keeps its shape.
    name : str, optional
        What messages call it; its path by default.

    Returns
    -------
    uint8 array of shape (height, width, 3)

    Raises
    ------
    PictureError
        If it cannot be read, in a sentence that names it.

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.images import read_picture
    >>> grey = np.full((40, 60), 90, dtype=np.uint8)
    >>> found = read_picture(grey, size=32)
    >>> found.shape, found[0, 0].tolist()
    ((32, 32, 3), [90, 90, 90])
    """
    name = name or (str(picture) if isinstance(picture, str | Path) else "The picture")
    return np.asarray(as_rgb(_opened(picture, name), size, name))


def not_installed(error: ImportError) -> str:
    """Say what is missing, and what to install."""
    return NOT_INSTALLED.format(name=error.name, how=how_to_install("images"))


def as_rgb(image: Any, size: int | None, name: str) -> Any:
    """Decode an opened picture into one of Pillow's, mode RGB."""
    from PIL import Image, ImageOps

    kind = image.format or "unpacked"
    try:
        with _limit_kept():
            image = _without_alpha(_eight_bits(ImageOps.exif_transpose(image), name))
            if size is None:
                return image
            side = min(image.size)
            left, top = (image.width - side) // 2, (image.height - side) // 2
            box = (left, top, left + side, top + side)
            return image.crop(box).resize((size, size), Image.Resampling.BICUBIC)
    except PictureError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PictureError(TOO_LARGE.format(name=name, limit=Image.MAX_IMAGE_PIXELS)) from None
    except Exception as error:  # decoders of damaged files raise anything
        raise PictureError(BROKEN.format(name=name, kind=kind, why=_why(error))) from error


def _opened(picture: Any, name: str) -> Any:
    """Open a picture; its pixels are not decoded yet."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(not_installed(error)) from error
    if isinstance(picture, Image.Image):
        return picture
    if isinstance(picture, np.ndarray):
        known = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4))
        if picture.dtype != np.uint8 or not known or 0 in picture.shape:
            shape, dtype = picture.shape, picture.dtype
            raise PictureError(NOT_ARRAY.format(name=name, shape=shape, dtype=dtype))
        return Image.fromarray(picture)
    content = picture if isinstance(picture, bytes) else _content(Path(picture), name)
    if not content:
        raise PictureError(EMPTY.format(name=name))
    try:
        with _limit_kept():
            image = Image.open(io.BytesIO(content), formats=KINDS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise PictureError(TOO_LARGE.format(name=name, limit=Image.MAX_IMAGE_PIXELS)) from None
    except Exception as error:
        raise PictureError(NOT_PICTURE.format(name=name, kinds=", ".join(KINDS))) from error
    pixels = image.width * image.height
    if pixels > max(ANY_PIXELS, PIXELS_A_BYTE * len(content)):
        raise PictureError(EXPANDS.format(name=name, pixels=pixels, size=len(content)))
    return image


def _content(path: Path, name: str) -> bytes:
    try:
        if not path.exists():
            raise PictureError(NO_PICTURE.format(name=name))
        if not path.is_file():  # a pipe or a device might never end
            raise PictureError(NOT_FILE.format(name=name))
        return path.read_bytes()
    except OSError as error:
        raise PictureError(NOT_READ.format(name=name, why=error.strerror or error)) from error


@contextmanager
def _limit_kept() -> Iterator[None]:
    """Take Pillow's first warning of a decompression bomb for an error, and no other warning."""
    from PIL import Image

    with warnings.catch_warnings(action="ignore"):
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield


def _eight_bits(image: Any, name: str) -> Any:
    """Bring 16 bits of grey to 8; refuse numbers without a known range."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise PictureError(MODE.format(name=name, mode=image.mode))
    return image


def _without_alpha(image: Any) -> Any:
    """Put what is transparent on white."""
    from PIL import Image

    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def _why(error: Exception) -> str:
    text = str(error).strip().rstrip(".")
    text = text.splitlines()[0] if text else type(error).__name__
    return text[:1].lower() + text[1:200]
