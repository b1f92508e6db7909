"""Blurring images, in units of scipy's filter image by image, on one thread.

Run from the root of the repository: ``python -m benchmarks.blur [--quick] [--json PATH]``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from sourcewise.corruption import blur

SIGMA = 6.0
N_IMAGES, SIDE = 1000, 224
BAR = 2.0


def measure(n_images: int = N_IMAGES, side: int = SIDE) -> dict[str, float]:
    """Time both on the same images, in processor seconds; every picture is compared."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n_images, side, side, 3), dtype=np.uint8)
    blur(images[:1], [0], sigma=SIGMA)
    start = time.process_time()
    ours = blur(images, np.zeros(n_images), sigma=SIGMA).X
    seconds = time.process_time() - start
    start = time.process_time()
    theirs = np.stack([gaussian_filter(image, (SIGMA, SIGMA, 0)) for image in images])
    unit = time.process_time() - start
    # scipy cuts fractions off after each axis, so that it may be up to two levels darker.
    assert np.abs(ours.astype(int) - theirs).max() <= 2
    return {
        "n_images": n_images,
        "side": side,
        "seconds": seconds,
        "scipy_seconds": unit,
        "ratio": seconds / unit,
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the table and, if asked, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    parser.add_argument("--quick", action="store_true", help="50 images")
    options = parser.parse_args(arguments)
    figures = measure(50 if options.quick else N_IMAGES)
    print(f"{'figure':<28}{'value':>14}")
    for name, value in figures.items():
        print(f"{name:<28}{value:>14.4g}")
    print(f"bar: ratio at most {BAR:g}; threads: {os.environ.get('OMP_NUM_THREADS', 'not set')}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
