"""Corruptions of images, those of the paper's second study (section 4.3)."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from scipy.ndimage import gaussian_filter1d

from sourcewise.corruption.contract import Corrupted, check_number, check_rows, choose_rows

NOT_IMAGES = (
    "X must hold images as an array of shape (images, height, width, 3), whole numbers from 0 to "
    "255 (uint8) or floats; got {got}. Bring all images to one size first."
)
NOT_FINITE = "X holds NaN or infinity (first in image {row})."
NOT_IN_RANGE = (
    "Black is 0 and white is {white:g}, but X holds {value:g} (image {row}); pass white=<the "
    "largest value a pixel can have>."
)
MOST_SIGMA = 1000.0
# Up to this many pixels a side a product with the whole matrix of the filter is faster than
# summing neighbours: 3.5 times at 224 pixels (python -m benchmarks.blur).
MATRIX_SIDE = 512


def blur(
    X: Any, y: Any, *, p: float = 1.0, sigma: float = 6.0, random_state: Any = None
) -> Corrupted:
    """Blur the chosen images with a Gaussian filter, as a lens out of focus would.

    Only the two spatial axes are filtered: red stays red. Edges are mirrored.

    Parameters
    ----------
    X : array of shape (n_images, height, width, 3), uint8 or float
    y : array of n_images labels
    p : float
        Share of images to corrupt.
    sigma : float
        Standard deviation of the filter in pixels; 6 in the paper.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> images = np.zeros((1, 32, 32, 3), dtype=np.uint8)
    >>> images[0, :, 16:] = [255, 0, 0]
    >>> blur(images, [0], sigma=2).X[0, 0, [0, 14, 15, 16, 17, 31], 0]
    array([  0,  57, 102, 153, 198, 255], dtype=uint8)
    """
    what = f"must be a number of pixels from 0 to {MOST_SIGMA:g}"
    check_number(sigma, "sigma", what, least=0.0, most=MOST_SIGMA)
    X, y = _images(X, y)
    mask, _ = choose_rows(len(y), p, random_state)
    if sigma > 0 and mask.any():
        filters = [_filter_matrix(side, sigma) for side in X.shape[1:3]]
        for k in np.flatnonzero(mask):
            X[k] = _blurred(X[k], sigma, filters)
    return Corrupted(X, y, mask)


def dead_pixels(
    X: Any,
    y: Any,
    *,
    p: float = 1.0,
    share: float = 0.3,
    white: float | None = None,
    random_state: Any = None,
) -> Corrupted:
    """Set some pixels of the chosen images to pure black or white, as a broken sensor would.

    Every chosen image gets pixels of its own, half of them black and half of them white.

    Parameters
    ----------
    X : array of shape (n_images, height, width, 3), uint8 or float
    y : array of n_images labels
    p : float
        Share of images to corrupt.
    share : float
        Share of the pixels of such an image; 0.3 in the paper.
    white : float, optional
        Value of a white pixel: 255 for whole numbers and 1 for floats by default. Black is 0.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> images = np.full((1, 10, 10, 3), 90, dtype=np.uint8)
    >>> done = dead_pixels(images, [0], random_state=0).X
    >>> [int((done == value).all(axis=-1).sum()) for value in (0, 90, 255)]
    [15, 70, 15]
    """
    check_number(share, "share", "is the share of pixels, between 0 and 1", least=0.0, most=1.0)
    X, y = _images(X, y)
    mask, rng = choose_rows(len(y), p, random_state)
    white = _white(X, mask, white)
    pixels = X.reshape(len(X), X.shape[1] * X.shape[2], 3)
    n_dead = round(share * pixels.shape[1])
    for k in np.flatnonzero(mask):
        dead = rng.permutation(pixels.shape[1])[:n_dead]
        pixels[k, dead[: n_dead // 2]] = white
        pixels[k, dead[n_dead // 2 :]] = 0
    return Corrupted(X, y, mask)


def swap_channels(X: Any, y: Any, *, p: float = 1.0, random_state: Any = None) -> Corrupted:
    """Swap red and blue in the chosen images, as software that expects BGR would.

    Examples
    --------
    >>> import numpy as np
    >>> swap_channels(np.array([[[[200, 100, 0]]]], dtype=np.uint8), [0]).X.tolist()
    [[[[0, 100, 200]]]]
    """
    X, y = _images(X, y)
    mask, _ = choose_rows(len(y), p, random_state)
    X[mask] = X[mask][..., ::-1]
    return Corrupted(X, y, mask)


def _images(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        X, y = check_rows(X, y)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        raise ValueError(NOT_IMAGES.format(got="images of different sizes")) from None
    kind = X.dtype == np.uint8 or X.dtype.kind == "f"
    if X.ndim != 4 or X.shape[-1] != 3 or not kind or 0 in X.shape[1:]:
        raise ValueError(NOT_IMAGES.format(got=f"shape {X.shape} of type {X.dtype}"))
    if X.dtype.kind == "f":
        finite = np.array([np.isfinite(image).all() for image in X], dtype=bool)
        if not finite.all():
            raise ValueError(NOT_FINITE.format(row=int(np.argmin(finite))))
    return np.ascontiguousarray(X), y


def _white(X: np.ndarray, mask: np.ndarray, white: Any) -> Any:
    """Value of a white pixel, which must be the largest one there is."""
    whole = X.dtype == np.uint8
    if white is None:
        white = 255 if whole else 1.0
    most = 255.0 if whole else np.inf
    check_number(white, "white", "is the value of a white pixel", least=0.0, most=most)
    for row in np.flatnonzero(mask):
        low, high = X[row].min(), X[row].max()
        if low < 0 or high > white:
            value = float(low if low < 0 else high)
            raise ValueError(NOT_IN_RANGE.format(white=white, value=value, row=int(row)))
    return X.dtype.type(white)


@lru_cache(maxsize=8)
def _filter_matrix(side: int, sigma: float) -> np.ndarray | None:
    """Return the filter along one axis as a matrix; None where summing neighbours is faster."""
    if side > MATRIX_SIDE:
        return None
    return np.asarray(gaussian_filter1d(np.eye(side), sigma, axis=0))


def _blurred(image: np.ndarray, sigma: float, filters: list[np.ndarray | None]) -> np.ndarray:
    """Filter an image (height, width, 3) along its first two axes."""
    precision: Any = np.float64 if image.dtype.itemsize > 4 else np.float32
    # Channels first: what is multiplied is then contiguous.
    planes = np.ascontiguousarray(image.transpose(2, 0, 1), dtype=precision)
    rows, columns = filters
    if rows is None:
        planes = gaussian_filter1d(planes, sigma, axis=1)
    else:
        planes = rows.astype(precision) @ planes
    if columns is None:
        planes = gaussian_filter1d(planes, sigma, axis=2)
    else:
        planes = planes @ columns.astype(precision).T
    if image.dtype == np.uint8:
        planes = np.rint(planes)
    return np.asarray(planes.transpose(1, 2, 0).astype(image.dtype))
