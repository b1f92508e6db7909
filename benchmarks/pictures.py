"""CIFAR-10's test pictures for the animals study: 8,000 to learn and test on, 2,000 for the PCA.

Run from the root of the repository: ``python -m benchmarks.pictures ARCHIVE FOLDER``, where ARCHIVE
has the arrays ``blob`` (JPEG bytes), ``offsets``, ``y`` and ``classes``. docs/reproduction.md has
the commands that follow.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

N_STUDY = 8000
MACHINES = ("airplane", "automobile", "ship", "truck")


def split(archive: Path, folder: Path, n_study: int = N_STUDY) -> None:
    """Write ``study.npz``, ``background.npz`` and ``animals.csv`` (class, 1 for an animal)."""
    with np.load(archive, allow_pickle=False) as arrays:
        blob, offsets, y, classes = (arrays[k] for k in ("blob", "offsets", "y", "classes"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("study", slice(0, n_study)), ("background", slice(n_study, len(y)))):
        ends = offsets[rows.start : rows.stop + 1]
        part = {"blob": blob[ends[0] : ends[-1]], "offsets": ends - ends[0]}
        np.savez(folder / f"{name}.npz", y=y[rows], classes=classes, **part)
    lines = [f"{name},{int(name not in MACHINES)}" for name in classes.tolist()]
    (folder / "animals.csv").write_text("\n".join(["class,animal", *lines]) + "\n")


def main(arguments: list[str] | None = None) -> None:
    """Split the archive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("archive", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    split(options.archive, options.folder)


if __name__ == "__main__":
    main()
