"""Draw the two pictures of docs/explained.md: ``python -m benchmarks.explained --out docs``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.datasets import VendorDigits, vendor_digits

GOOD, BAD, TRUSTED = "#1b7f5c", "#c0392b", "#34495e"
STYLE = {"svg.hashsalt": "sourcewise", "font.size": 10, "svg.fonttype": "none"}


def _colour(name: str, digits: VendorDigits) -> str:
    if name == "gold":
        return TRUSTED
    return BAD if name in digits.spoiled else GOOD


def draw_discrepancies(model: Any, digits: VendorDigits, axes: Any) -> None:
    """One bar a vendor, the bad ones in another colour, and the cut-off."""
    names = [name for name in model.sources_.tolist() if name != "gold"]
    values = dict(zip(model.sources_.tolist(), model.discrepancies_, strict=True))
    axes.bar(names, [values[n] for n in names], color=[_colour(n, digits) for n in names])
    axes.axhline(model.cutoff_, color=TRUSTED, linestyle="--")
    axes.text(len(names) - 0.4, model.cutoff_ + 0.01, "cut-off", ha="right", color=TRUSTED)
    axes.set_ylabel("discrepancy")
    axes.tick_params(axis="x", rotation=45)
    axes.set_title("Red: what was really wrong, which sourcewise was not told", fontsize=10)


def draw_path(model: Any, digits: VendorDigits, axes: Any) -> None:
    """Weights of all vendors for every trade-off."""
    trade_offs = np.geomspace(0.02, 60, 200)
    path = sw.weight_path(model.discrepancies_, model.source_sizes_, trade_offs)
    for k, name in enumerate(model.sources_.tolist()):
        axes.plot(trade_offs, path.weights[:, k], color=_colour(name, digits))
    axes.set_xscale("log")
    axes.set_xlabel("trade-off: how much discrepancy is accepted for more rows")
    axes.set_ylabel("weight in training")
    for name, colour in (("reference", TRUSTED), ("good vendors", GOOD), ("bad vendors", BAD)):
        axes.plot([], [], color=colour, label=name)
    axes.legend(frameon=False)


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs"))
    folder = parser.parse_args().out
    digits = vendor_digits()
    model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    model.fit(digits.X, digits.y, sources=digits.vendor)
    pictures = {"discrepancies": draw_discrepancies, "path": draw_path}
    with plt.rc_context(STYLE):
        for name, draw in pictures.items():
            figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
            draw(model, digits, axes)
            figure.savefig(folder / f"explained-{name}.svg", metadata={"Date": None})
            plt.close(figure)


if __name__ == "__main__":
    main()
