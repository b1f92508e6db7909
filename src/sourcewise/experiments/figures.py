"""The paper's two figures from results, the default's line beside the paper's."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

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
from sourcewise.experiments.paper_numbers import notebook_products_by_n, on_published_data
from sourcewise.experiments.study_errors import Studies, StudyErrors, Summary, span, summarise
from sourcewise.experiments.tables import check_not_empty, studies_in_words
from sourcewise.extras import import_extra
from sourcewise.safe_text import one_line

MATPLOTLIB_MISSING = "Figures need matplotlib: {how}."
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
LOOKS: dict[Any, Any] = {
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


class Picture(NamedTuple):
    """A figure: what its files are called, its caption, and its files by format."""

    name: str
    caption: str
    files: dict[str, bytes]


def draw_figures(
    studies: Studies, *, target: str | None = None, share: float | None = None
) -> list[Picture]:
    """Draw figure 1, figure 2 or both, whichever the results have the numbers for.

    Unless told, figure 2 is of the paper's attribute, "black", if there is one, else of the first,
    and of the largest p there is (1 in the paper).
    """
    matplotlib = import_extra("matplotlib", "report", MATPLOTLIB_MISSING)
    check_not_empty(studies)
    data = studies.settings.get("data", "not recorded")
    pictures = []
    with matplotlib.rc_context(LOOKS):
        if PRODUCTS in studies.errors:
            published = on_published_data(studies.settings)
            pictures.append(_figure_1(studies.errors[PRODUCTS], data, published=published))
        if ANIMALS in studies.errors:
            pictures.append(_figure_2(studies.errors[ANIMALS], data, target, share))
    if not pictures:
        raise ValueError(NO_FIGURE.format(studies=studies_in_words(studies)))
    return pictures


def _figure_1(study: StudyErrors, data: str, *, published: bool) -> Picture:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6, 3.9), layout="constrained")
    axes = figure.subplots()
    shown = [m for m in STYLES if m in study.methods and m not in NOT_IN_FIGURE_1]
    errors = np.array([study.of(method) for method in shown])
    summaries = [summarise(errors[:, :, :, k]) for k in range(len(study.numbers))]
    for m, method in enumerate(shown):
        mean = np.array([summary.mean[m] for summary in summaries])
        spread = np.array([summary.standard_error[m] for summary in summaries])
        _line(axes, study.numbers, mean, method)
        colour, alpha = STYLES[method][0], 0.16 if method in MAIN else 0.08
        low, high = mean - spread, mean + spread
        axes.fill_between(study.numbers, low, high, color=colour, alpha=alpha, linewidth=0)
    notebook = notebook_products_by_n() if published else {}
    for method, found in notebook.items():
        colour, marker, _ = STYLES[method]
        label = f"{METHODS[method]}, authors"
        looks: dict[str, Any] = {
            "color": colour,
            "marker": marker,
            "fillstyle": "none",
            "linewidth": 0.6,
        }
        axes.plot(range(len(found)), found, linestyle=":", markersize=4.0, label=label, **looks)
    axes.set_xlabel("number n of non-books among the sources")
    axes.set_ylabel("mean classification error")
    axes.set_xticks(study.numbers)
    _legend(figure, axes)
    caption = (
        f"Products (data: {data}): mean error against the number n of non-books, "
        f"{_runs(summaries)}; bands are one standard error each way."
    )
    left_out = [METHODS[m] for m in NOT_IN_FIGURE_1 if m in study.methods]
    if notebook:
        caption += " Hollow markers: mean errors that the authors' notebook prints."
    if left_out:
        caption += f" As in the paper, {' and '.join(left_out)} are left out for clarity."
    return Picture("figure-1", caption, _files(figure))


def _figure_2(study: StudyErrors, data: str, target: str | None, share: float | None) -> Picture:
    from matplotlib.figure import Figure

    target, share = _target(study, target), _share(study, share)
    study = study.at_share(share)
    panels = study.corruptions
    columns = {1: 1, 2: 2, 4: 2}.get(len(panels), 3)
    rows = -(-len(panels) // columns)
    size = (4.6, 3.9) if len(panels) == 1 else (2.4 * columns, 2.2 * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    all_axes = figure.subplots(rows, columns, squeeze=False)
    shown = [method for method in STYLES if method in study.methods]
    errors = np.array([study.of(method)[0, :, :, study.targets.index(target)] for method in shown])
    summaries = []
    for c, (corruption, axes) in enumerate(zip(panels, all_axes.flat, strict=False)):
        over_n = [summarise(errors[:, c, k]) for k in range(len(study.numbers))]
        summaries += over_n
        _panel(axes, study.numbers, over_n, shown)
        title = CORRUPTIONS.get(corruption, one_line(corruption))
        axes.set_title(title, fontsize=8.5, parse_math=False)
    for axes in all_axes.flat[len(panels) :]:
        axes.remove()
    figure.supxlabel("number n of corrupted sources", fontsize=8.5)
    figure.supylabel("mean classification error", fontsize=8.5)
    _legend(figure, all_axes[0, 0])
    caption = (
        f"Animals (data: {data}), attribute {target!r}, p = {share:g}: mean error against the "
        f"number n of corrupted sources, {_runs(summaries)}; error bars are one standard deviation "
        "each way."
    )
    absent = [title for name, title in CORRUPTIONS.items() if name not in panels]
    if absent:
        caption += f" Not in the results, so without a panel: {', '.join(absent)}."
    plain = "".join(c if c.isalnum() or c in "-+." else "_" for c in target)
    return Picture(f"figure-2-{plain}-p{share:g}", caption, _files(figure))


def _panel(axes: Any, numbers: list[int], summaries: list[Summary], shown: list[str]) -> None:
    # Bars of methods with equal errors would hide each other: each stands a little to the side.
    width = max(numbers[-1] - numbers[0], 1) * 0.035
    for m, method in enumerate(shown):
        where = np.array(numbers) + width * (m - (len(shown) - 1) / 2) / max(len(shown) - 1, 1)
        mean = np.array([summary.mean[m] for summary in summaries])
        spread = np.array([summary.deviation[m] for summary in summaries])
        look = {"ecolor": STYLES[method][0], "elinewidth": 0.7, "zorder": 2 + (method in MAIN)}
        axes.errorbar(where, mean, yerr=spread, fmt="none", **look)
        _line(axes, where, mean, method)
    axes.set_xticks([n for n in numbers if n != 55 or 59 not in numbers])


def _line(axes: Any, where: Any, mean: np.ndarray, method: str) -> None:
    colour, marker, dashes = STYLES[method]
    main = method in MAIN
    # Where the two methods agree, the thin line of one runs on the thick line of the other.
    width, size, order = {PAPER: (2.4, 5.6, 4), DEFAULT: (1.1, 3.2, 5)}.get(
        method, (1.5 if main else 1.0, 4.0, 3 if main else 2)
    )
    axes.plot(
        where,
        mean,
        color=colour,
        marker=marker,
        linestyle=dashes,
        linewidth=width,
        markersize=size,
        markeredgecolor="white",
        markeredgewidth=0.3,
        zorder=order,
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


def _runs(summaries: list[Summary]) -> str:
    there = [summary for summary in summaries if summary.runs]
    if not there:
        return "no runs"
    return "1 run each" if span(there) == "1" else f"{span(there)} runs each"


def _files(figure: Any) -> dict[str, bytes]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    formats: dict[str, dict[str, Any]] = {"png": {"dpi": 200}, "svg": {"metadata": {"Date": None}}}
    streams = {kind: io.BytesIO() for kind in formats}
    for kind, how in formats.items():
        figure.savefig(streams[kind], format=kind, **how)
    return {kind: stream.getvalue() for kind, stream in streams.items()}
