"""How often the notes of a report find a region that one source labelled otherwise.

Run with ``python -m benchmarks.regions`` (two minutes). Handwritten digits, odd or even; five
sources, of which the first is clean, flips one digit of ten, or flips a tenth of its labels at
random, which is no region.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.datasets import load_digits

from sourcewise import SourceWeightedClassifier

SOURCES = 5
KINDS = ("clean", "one digit flipped", "a tenth flipped at random")


def draw(seed: int, trusted: int, rows: int, kind: str):
    """Rows, labels and sources."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    chosen = rng.permutation(len(digits.target))[: trusted + SOURCES * rows]
    X, digit = digits.data[chosen], digits.target[chosen]
    sources = np.repeat(["gold", *(f"s{i}" for i in range(SOURCES))], [trusted, *[rows] * SOURCES])
    bad = sources == "s0"
    if kind == "one digit flipped":
        bad &= digit == 3
    elif kind == "a tenth flipped at random":
        bad &= rng.random(len(bad)) < 0.1
    else:
        bad[:] = False
    return X, np.where(bad, 1 - digit % 2, digit % 2), sources


def main() -> None:
    """Print how often the source is named, and any other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    print(f"{'trusted':>7}{'rows':>6}  {'first source':<27}{'strict':<8}{'named':>6}{'others':>8}")
    for trusted, rows in ((60, 150), (200, 150), (200, 250)):
        for kind in KINDS:
            for strict in (False, True):
                named = others = 0
                for seed in range(draws):
                    X, y, sources = draw(seed, trusted, rows, kind)
                    model = SourceWeightedClassifier(
                        reference="gold", random_state=0, strict=strict
                    )
                    notes = model.fit(X, y, sources=sources).report().notes
                    found = [note for note in notes if "goes against" in note]
                    named += any(note.startswith("'s0'") for note in found)
                    others += any(not note.startswith("'s0'") for note in found)
                print(f"{trusted:>7}{rows:>6}  {kind:<27}{strict!s:<8}{named:>6}{others:>8}")


if __name__ == "__main__":
    main()
