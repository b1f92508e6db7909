"""Tables of the results, for the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.accuracy import summary
from benchmarks.accuracy.methods import ALL_DATA, DEFAULT, METHODS, ORACLE, PAPER, REFERENCE_ONLY

HALVES = ("development", "confirmation", "both")


def half(results: pd.DataFrame, name: str) -> pd.DataFrame:
    """Results of one half."""
    if name == "both":
        return results
    return results[results["development"].astype(bool) == (name == "development")]


def refusals(results: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return the results without those of methods that cannot take the rows, and a table of these.

    The table is empty where every method can.
    """
    if "refused" not in results:
        return results, ""
    cannot = results["refused"].notna()
    runs = results.groupby(["data", "method"]).size()
    rows = [
        (
            data,
            method,
            f"cannot in {len(part)} of {runs[data, method]} runs",
            part["refused"].iloc[0],
        )
        for (data, method), part in results[cannot].groupby(["data", "method"], sort=False)
    ]
    heads = ("data", "method", "runs", "what it says")
    return results[~cannot].drop(columns="refused"), markdown(heads, rows) if rows else ""


def can_be_compared(results: pd.DataFrame) -> bool:
    """Whether all those methods have results that the tables hold the default against."""
    return {DEFAULT, PAPER, REFERENCE_ONLY, ALL_DATA, ORACLE} <= set(results["method"])


def errors_table(results: pd.DataFrame) -> str:
    """Mean errors of whatever methods there are, by data set."""
    means = results.groupby(["data", "method"], sort=False)["error"].mean()
    rows = [(data, method, f"{error:.4f}") for (data, method), error in means.items()]
    return markdown(("data", "method", "mean error"), rows)


def overview(results: pd.DataFrame) -> str:
    """Return everything in short, half by half."""
    parts = lines_by_half(results)
    parts += ["## Regret and comparisons, both halves\n", methods_table(results)]
    parts += ["## Data set by data set, both halves\n", data_table(results)]
    parts += ["## Grid and variations, both halves\n", variations_table(results)]
    return "\n".join(parts)


def extremes(results: pd.DataFrame) -> str:
    """Return what is lost where every source is bad, and where none is."""
    parts = lines_by_half(results)
    parts += ["## Against the choice that is right there, both halves\n", extremes_lines(results)]
    return "\n".join([*parts, "## Every cell, both halves\n", extremes_table(results)])


def extremes_lines(results: pd.DataFrame) -> str:
    """Say what the default has to hold where one simple choice is right, and what was found."""
    return _lines_table(summary.extreme_lines(results))


def extremes_table(results: pd.DataFrame, beyond: float = -np.inf) -> str:
    """Every difference ``beyond`` a limit from the simple choice that is right there, sorted."""
    found = [
        (summary.name_of(place), rival, line.difference, line.standard_error)
        for rival in summary.RIGHT_CHOICE
        for place, line in summary.where_right(results, rival).iterrows()
    ]
    rows = [
        (cell, rival, f"{difference:+.4f} ± {error:.4f}")
        for cell, rival, difference, error in sorted(found, key=lambda row: -row[2])
        if difference > beyond
    ]
    return markdown(("cell", "compared with", "difference"), rows)


def lines_by_half(results: pd.DataFrame) -> list[str]:
    """Titles and tables of what the default has to hold."""
    parts = []
    for name in HALVES:
        part = half(results, name)
        if len(part):
            n_runs = len(part.drop_duplicates(["seed", *summary.CELL]))
            parts += [f"## {name.capitalize()}: {n_runs} runs\n", lines_table(part)]
    return parts


def lines_table(results: pd.DataFrame) -> str:
    """Say what the default has to hold, and what was found."""
    return _lines_table(summary.lines(results))


def _lines_table(lines: list[summary.Line]) -> str:
    rows = [
        (
            line.promise,
            f"{line.limit:.3f}",
            f"{line.found:+.4f}" if np.isfinite(line.found) else "never",
            "yes" if not line.found > line.limit else "NO",
            f"{line.broken_in} of {line.of}" if line.where else "",
            line.where if np.isfinite(line.found) else "",
        )
        for line in lines
    ]
    return markdown(("line", "at most", "found", "held", "broken in", "worst cell"), rows)


def methods_table(results: pd.DataFrame) -> str:
    """Regret of every method, and how the default compares with it."""
    regret = summary.regrets(results)
    cpu = results.groupby("method")["cpu_seconds"].median()
    rows = []
    for method in regret.columns:
        cells = regret[method].dropna()
        row = [method, f"{cells.mean():+.4f}", f"{cells.max():+.4f}"]
        if method == DEFAULT:
            row += ["", ""]
        else:
            comparison = summary.compare_with(results, method)
            row += [
                str(summary.count_abc(results, method)),
                "/".join(map(str, summary.count_paired(comparison))),
            ]
        rows.append((*row, f"{cpu[method]:.2f}" if np.isfinite(cpu[method]) else ""))
    heads = ("method", "average regret", "worst", "A/B/C", "paired A/B/C", "CPU s")
    return markdown(heads, rows)


def data_table(results: pd.DataFrame) -> str:
    """Show the default on every data set."""
    regret = summary.regrets(results)[DEFAULT]
    harmed = summary.harmed_auc(results)
    clean = summary.clean_p_values(results)
    means = summary.cell_means(results)
    draws = results[results["method"] == DEFAULT].groupby(summary.CELL).size()
    rows = []
    for name in dict.fromkeys(results["data"]):
        mine = regret.loc[name]
        fewest, most = draws.loc[name].min(), draws.loc[name].max()
        auc = harmed[harmed.index.get_level_values("data") == name]
        rows.append(
            (
                name,
                str(len(mine)),
                str(most) if fewest == most else f"{fewest} to {most}",
                f"{means.loc[name][DEFAULT].mean():.4f}",
                f"{means.loc[name][ORACLE].mean():.4f}",
                f"{mine.mean():+.4f}",
                f"{mine.max():+.4f}",
                f"{auc.mean():.3f}" if len(auc) else "",
                f"{auc.min():.3f}" if len(auc) else "",
                f"{clean[name]:.3f}" if name in clean else "",
            )
        )
    heads = ("data", "cells", "draws", "error", "oracle", "regret", "worst")
    return markdown((*heads, "AUC", "lowest", "p < .05"), rows)


def variations_table(results: pd.DataFrame) -> str:
    """Show the default's regret in the grid and in each variation."""
    regret = summary.regrets(results)[DEFAULT]
    rows = []
    for variation in dict.fromkeys(results["variation"]):
        mine = regret[regret.index.get_level_values("variation") == variation]
        data, _, corruption, bad = mine.idxmax()
        rows.append(
            (
                variation,
                str(len(mine)),
                f"{mine.mean():+.4f}",
                f"{mine.max():+.4f}",
                str(int((mine > summary.WORST).sum())),
                f"{data}, {corruption}, {bad:.0%} bad",
            )
        )
    heads = ("variation", "cells", "regret", "worst", f"beyond {summary.WORST}", "worst cell")
    return markdown(heads, rows)


def cell_tables(results: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Mean and standard error of every method in every cell: a table for every data set."""
    means, errors = summary.cell_means(results), summary.standard_errors(results)
    for name in dict.fromkeys(results["data"]):
        methods = [m for m in METHODS if m in means and means.loc[name][m].notna().any()]
        rows = []
        for cell in means.loc[name].index:
            variation, corruption, bad = cell
            row = [variation, corruption, f"{bad:.0%}"]
            for method in methods:
                mean, error = means.loc[(name, *cell), method], errors.loc[(name, *cell), method]
                # One draw has no standard error.
                row.append(f"{mean:.3f}" + (f" ± {error:.3f}" if np.isfinite(error) else ""))
            rows.append(tuple(row))
        yield name, markdown(("variation", "corruption", "bad", *methods), rows)


def markdown(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Table whose columns line up."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: tuple[str, ...]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([line(heads), rule, *map(line, rows), ""])
