"""The paper's two figures from results, the default's line beside the paper's."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.experiments.names import (
    ALL_DATA,
    ANIMALS,
    CORRUPTIONS,
    DEFAULT,
    METHODS,
    PAPER,
    PRODUCTS,
    REFERENCE,
)
from sourcewise.experiments.study_errors import Studies, StudyErrors
from sourcewise.experiments.summaries import summarise
from sourcewise.experiments.tables import check_not_empty, studies_in_words

MATPLOTLIB_MISSING = "Figures need matplotlib: pip install 'sourcewise[report]'."
NO_FIGURE = "The results hold no study with a figure ('products' or 'animals'), only {studies}."
NO_TARGET = "The animals results have no target {target!r}; they have {targets}."
NO_SHARE = "The animals results have no p = {share:g}; they have {shares}."

# The paper: its method green, the reference alone red, all data blue. In Okabe and Ito's shades,
# told apart by readers of all kinds of sight, as the markers and dashes are without any colour.
STYLES: dict[str, tuple[str, str, Any]] = {
    PAPER: ("#009E73", "o", "-"),
    DEFAULT: ("#000000", "D", "-"),
    REFERENCE: ("#D55E00", "s", "-"),
    ALL_DATA: ("#0072B2", "^", "-"),
    "probability median": ("#E69F00", "v", (0, (4, 1.5))),
    "geometric median": ("#56B4E9", "P", (0, (4, 1.5))),
    "component median": ("#CC79A7", "X", (0, (1, 1))),
    "robust logistic": ("#8C6D1F", "<", (0, (1, 1))),
    "source normalized": ("#7F7F7F", ">", (0, (6, 1.5, 1, 1.5))),
}
MAIN = (PAPER, DEFAULT, REFERENCE, ALL_DATA)
# "Excluded from the plot for clarity" (section 4.2).
NOT_IN_FIGURE_1 = ("component median", "robust logistic")
LOOKS = {
    "font.size": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # So that the same results give the same file.
    "svg.hashsalt": "sourcewise",
}
FIRST_CHOICE = "black"  # the attribute that the paper shows


@dataclass(frozen=True)
class Picture:
    """A figure as files, and what a reader has to know about it.

    Attributes
    ----------
    name : str
        Of the files, without what says the format.
    caption : str
    files : dict of bytes
        By format: "png", "svg".
    """

    name: str
    caption: str
    files: dict[str, bytes]


def draw_figures(
    studies: Studies, *, target: str | None = None, share: float | None = None
) -> list[Picture]:
    """Draw figure 1, figure 2 or both, whichever the results have the numbers for.

    Parameters
    ----------
    studies : Studies
    target : str, optional
        Attribute of figure 2; the paper's, "black", if there is one, else the first.
    share : float, optional
        p of figure 2; the largest there is (1 in the paper) unless told.

    Returns
    -------
    list of Picture
    """
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(MATPLOTLIB_MISSING) from error
    check_not_empty(studies)
    data = studies.settings.get("data", "not recorded")
    pictures = []
    with matplotlib.rc_context(LOOKS):
        if PRODUCTS in studies.errors:
            pictures.append(_figure_1(studies.errors[PRODUCTS], data))
        if ANIMALS in studies.errors:
            pictures.append(_figure_2(studies.errors[ANIMALS], data, target, share))
    if not pictures:
        raise ValueError(NO_FIGURE.format(studies=studies_in_words(studies)))
    return pictures


def _figure_1(study: StudyErrors, data: str) -> Picture:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.9), layout="constrained")
    axes = figure.subplots()
    shown = [m for m in STYLES if m in study.methods and m not in NOT_IN_FIGURE_1]
    errors = np.array([study.of(method) for method in shown])
    summaries = [
        summarise(errors[:, :, :, k].reshape(len(shown), -1)) for k in range(len(study.numbers))
    ]
    for m, method in enumerate(shown):
        mean = np.array([summary.mean[m] for summary in summaries])
        spread = np.array([summary.standard_error[m] for summary in summaries])
        _line(axes, study.numbers, mean, method)
        colour = STYLES[method][0]
        low, high = mean - spread, mean + spread
        alpha = 0.16 if method in MAIN else 0.08
        axes.fill_between(study.numbers, low, high, color=colour, alpha=alpha, linewidth=0)
    axes.set_xlabel("number n of non-books among the sources")
    axes.set_ylabel("mean classification error")
    axes.set_xticks(study.numbers)
    _legend(figure, axes)
    left_out = [METHODS[m] for m in NOT_IN_FIGURE_1 if m in study.methods]
    caption = (
        f"Products (data: {data}): mean error against the number n of non-books, "
        f"{_runs(summaries)}; bands are one standard error each way."
    )
    if left_out:
        caption += f" As in the paper, {' and '.join(left_out)} are left out for clarity."
    return Picture("figure-1", caption, _files(figure))


def _figure_2(study: StudyErrors, data: str, target: str | None, share: float | None) -> Picture:
    from matplotlib.figure import Figure

    chosen = _target(study, target)
    share = _share(study, share)
    study = study.at_share(share)
    panels = study.corruptions
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = -(-len(panels) // columns)
    size = (4.6, 3.9) if len(panels) == 1 else (2.4 * columns, 2.2 * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(rows, columns, squeeze=False)
    shown = [method for method in STYLES if method in study.methods]
    errors = np.array([study.of(method)[0, :, :, study.targets.index(chosen)] for method in shown])
    summaries = []
    for c, (corruption, axes) in enumerate(zip(panels, all_axes.flat, strict=False)):
        over_n = [summarise(errors[:, c, k]) for k in range(len(study.numbers))]
        summaries += over_n
        _panel(axes, study.numbers, over_n, shown)
        axes.set_title(CORRUPTIONS.get(corruption, corruption), fontsize=8.5)
    for axes in all_axes.flat[len(panels) :]:
        axes.remove()
    figure.supxlabel("number n of corrupted sources", fontsize=8.5)
    figure.supylabel("mean classification error", fontsize=8.5)
    _legend(figure, all_axes[0, 0])
    caption = (
        f"Animals (data: {data}), attribute {chosen!r}, p = {share:g}: mean error against the "
        f"number n of corrupted sources, {_runs(summaries)}; error bars are one standard deviation "
        "each way."
    )
    absent = [title for name, title in CORRUPTIONS.items() if name not in panels]
    if absent:
        caption += f" Not in the results, so without a panel: {', '.join(absent)}."
    return Picture(f"figure-2-{_file_name(chosen)}-p{share:g}", caption, _files(figure))


def _panel(axes: Any, numbers: list[int], summaries: list[Any], shown: list[str]) -> None:
    # Bars of methods with equal errors would hide each other: each stands a little to the side.
    width = max(numbers[-1] - numbers[0], 1) * 0.035
    for m, method in enumerate(shown):
        where = np.array(numbers) + width * (m - (len(shown) - 1) / 2) / max(len(shown) - 1, 1)
        mean = np.array([summary.mean[m] for summary in summaries])
        spread = np.array([summary.deviation[m] for summary in summaries])
        axes.errorbar(
            where,
            mean,
            yerr=spread,
            fmt="none",
            ecolor=STYLES[method][0],
            elinewidth=0.7,
            zorder=3 if method in MAIN else 2,
        )
        _line(axes, where, mean, method)
    axes.set_xticks([n for n in numbers if n != 55 or 59 not in numbers])


def _line(axes: Any, where: Any, mean: np.ndarray, method: str) -> None:
    colour, marker, dashes = STYLES[method]
    # Where the two methods agree, the thin line of one runs on the thick line of the other.
    width = {PAPER: 2.4, DEFAULT: 1.1}.get(method, 1.5 if method in MAIN else 1.0)
    axes.plot(
        where,
        mean,
        color=colour,
        marker=marker,
        linestyle=dashes,
        linewidth=width,
        markersize={PAPER: 5.6, DEFAULT: 3.2}.get(method, 4.0),
        markeredgecolor="white",
        markeredgewidth=0.3,
        zorder={PAPER: 4, DEFAULT: 5}.get(method, 3 if method in MAIN else 2),
        label=METHODS[method],
    )


def _legend(figure: Any, axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    columns = 3 if figure.get_figwidth() < 6 else 5
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=2.6)


def _target(study: StudyErrors, target: str | None) -> str:
    if target is None:
        return FIRST_CHOICE if FIRST_CHOICE in study.targets else study.targets[0]
    if target not in study.targets:
        known = ", ".join(map(repr, study.targets[:10])) + ", ..." * (len(study.targets) > 10)
        raise ValueError(NO_TARGET.format(target=target, targets=known))
    return target


def _share(study: StudyErrors, share: float | None) -> float:
    if share is None:
        return study.shares[0]
    if share not in study.shares:
        known = ", ".join(f"{known:g}" for known in study.shares)
        raise ValueError(NO_SHARE.format(share=share, shares=known))
    return share


def _runs(summaries: list[Any]) -> str:
    runs = sorted({summary.runs for summary in summaries if summary.runs})
    if not runs:
        return "no runs"
    if runs[0] == runs[-1]:
        return "1 run each" if runs[0] == 1 else f"{runs[0]} runs each"
    return f"{runs[0]} to {runs[-1]} runs each"


def _file_name(target: str) -> str:
    return "".join(c if c.isalnum() or c in "-+." else "_" for c in target)


def _files(figure: Any) -> dict[str, bytes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    result = {}
    for kind, how in {"png": {"dpi": 200}, "svg": {"metadata": {"Date": None}}}.items():
        stream = io.BytesIO()
        figure.savefig(stream, format=kind, **how)
        result[kind] = stream.getvalue()
    return result
