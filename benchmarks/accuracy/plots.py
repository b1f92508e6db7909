"""A heat map of the default's regret, and the regret of all methods over cells."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from benchmarks.accuracy import summary
from benchmarks.accuracy.design import CORRUPTIONS, NONE, SHARES
from benchmarks.accuracy.methods import ALL_DATA, DEFAULT, PAPER, REFERENCE_ONLY

matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

COLOURS = {
    DEFAULT: "#0072b2",
    PAPER: "#000000",
    REFERENCE_ONLY: "#009e73",
    ALL_DATA: "#d55e00",
    "MixMin": "#cc79a7",
    "agreement filter": "#e69f00",
}


def heat_map(results: pd.DataFrame, path: Path) -> None:
    """Regret of the default in every cell of the grid: a block of rows for each data set."""
    grid = results[results["variation"] == "grid"]
    regret = summary.regrets(grid)[DEFAULT].droplevel("variation")
    names = list(dict.fromkeys(grid["data"]))
    table = np.full((len(names) * len(CORRUPTIONS), len(SHARES)), np.nan)
    for i, name in enumerate(names):
        for j, corruption in enumerate(CORRUPTIONS):
            for k, bad in enumerate(SHARES):
                key = (name, corruption if bad else NONE, bad)
                table[i * len(CORRUPTIONS) + j, k] = regret.get(key, np.nan)
    figure, axes = plt.subplots(figsize=(6.4, 0.17 * len(table) + 1.4), layout="constrained")
    image = axes.imshow(table, cmap="RdBu_r", vmin=-0.03, vmax=0.03, aspect="auto")
    axes.set_facecolor("#999999")  # not run
    axes.set_xticks(range(len(SHARES)), [f"{bad:.0%}" for bad in SHARES])
    axes.set_xlabel("share of bad sources")
    words = [corruption.replace("_", " ") for corruption in CORRUPTIONS]
    axes.set_yticks(range(len(table)), words * len(names), fontsize=6)
    for i, name in enumerate(names):
        middle = (i + 0.5) * len(CORRUPTIONS) - 0.5
        axes.text(len(SHARES) - 0.4, middle, name, va="center", fontsize=8)
        axes.axhline(i * len(CORRUPTIONS) - 0.5, color="black", linewidth=0.6)
    bar = figure.colorbar(image, ax=axes, location="bottom", aspect=40, pad=0.01, extend="both")
    bar.set_label("error minus the oracle's (blue: better than the oracle; grey: not run)")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def regret_plot(results: pd.DataFrame, path: Path) -> None:
    """Sorted regret over all cells, a curve for every method."""
    regret = summary.regrets(results)
    figure, axes = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
    for method in sorted(regret.columns, key=lambda m: (m in COLOURS, m == DEFAULT)):
        values = np.sort(regret[method].dropna())
        colour = COLOURS.get(method, "#bbbbbb")
        share = (np.arange(len(values)) + 0.5) / len(values)
        axes.plot(100 * share, values, color=colour, linewidth=2.2 if method in COLOURS else 1.0)
        label = method if method in COLOURS else None
        axes.plot([], [], color=colour, linewidth=2.2, label=label)
    axes.plot([], [], color="#bbbbbb", label="the other methods")
    axes.axhline(0.0, color="black", linewidth=0.6)
    axes.set_yscale("symlog", linthresh=0.02)
    ticks = [-0.05, -0.02, -0.01, 0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("cells, from the least to the most regret (percent)")
    axes.set_ylabel("error minus the oracle's")
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=150)
    plt.close(figure)
