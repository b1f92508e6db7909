"""What the results say: regret, comparisons, and the lines the default has to hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from benchmarks.accuracy.methods import (
    ALL_DATA,
    DEFAULT,
    METHODS,
    ORACLE,
    REFERENCE_ONLY,
)
from sourcewise.experiments.significance_tables import Counts, count

CELL = ["data", "variation", "corruption", "bad"]
WORST = 0.02  # regret that no cell should exceed
MARGIN = 0.005  # differences of the error rate that nobody would mind
FEW_TRUSTED = "30 trusted"
HARM = 0.02  # cost to all-data from which bad sources count as bad
# Simple choices, and the share of bad sources at which each is right.
RIGHT_CHOICE = {REFERENCE_ONLY: 1.0, ALL_DATA: 0.0}


@dataclass(frozen=True)
class Line:
    """One line that the default has to hold.

    Attributes
    ----------
    promise : str
    limit : float
    found : float
    where : str
        The cell that comes nearest to breaking it, or breaks it.
    broken_in, of : int
        Cells that break it, and cells it applies to.
    """

    promise: str
    limit: float
    found: float
    where: str
    broken_in: int
    of: int


def errors(results: pd.DataFrame) -> pd.DataFrame:
    """Error of every method in every run: a row a run, a column a method."""
    wide = results.pivot_table(index=[*CELL, "seed"], columns="method", values="error")
    others = [method for method in wide if method not in METHODS]  # half and double of a choice
    return wide[[method for method in METHODS if method in wide] + others]


def cell_means(results: pd.DataFrame) -> pd.DataFrame:
    """Mean error of every method in every cell."""
    return errors(results).groupby(level=CELL).mean()


def standard_errors(results: pd.DataFrame) -> pd.DataFrame:
    """Of the means, over seeds."""
    return errors(results).groupby(level=CELL).sem()


def regrets(results: pd.DataFrame) -> pd.DataFrame:
    """Mean error minus the oracle's, of every method in every cell."""
    means = cell_means(results)
    return means.drop(columns=ORACLE).sub(means[ORACLE], axis=0)


def compare_with(results: pd.DataFrame, rival: str) -> pd.DataFrame:
    """Compare in every cell: difference from the rival, and its paired standard error."""
    wide = errors(results)[[DEFAULT, rival]].dropna()
    difference = (wide[DEFAULT] - wide[rival]).groupby(level=CELL)
    return pd.DataFrame({"difference": difference.mean(), "standard_error": difference.sem()})


def count_abc(results: pd.DataFrame, rival: str) -> Counts:
    """Count cells by the paper's rule: better, no difference, worse."""
    by_seed = errors(results)[[DEFAULT, rival]].dropna().unstack("seed")
    return count(by_seed[DEFAULT].to_numpy(), by_seed[rival].to_numpy())


def count_paired(comparison: pd.DataFrame, margin: float = MARGIN) -> tuple[int, int, int]:
    """Count cells by a rule that is sharper than the paper's.

    A difference counts if it exceeds both two of its standard errors and ``margin``.
    """
    clear = np.maximum(2.0 * comparison["standard_error"], margin)
    better = (comparison["difference"] < -clear).sum()
    worse = (comparison["difference"] > clear).sum()
    return int(better), int(len(comparison) - better - worse), int(worse)


def lines(results: pd.DataFrame) -> list[Line]:
    """Check what the default has to hold in all cells."""
    regret = regrets(results)[DEFAULT]
    few = regret.index.get_level_values("variation") == FEW_TRUSTED
    checks = [_mean("mean regret to the oracle", 0.0, regret)]
    if not few.all():
        checks.append(_worst("regret, worst cell of 100 or more trusted rows", 0.01, regret[~few]))
    if few.any():
        checks.append(_worst("regret, worst cell of 30 trusted rows", 0.025, regret[few]))
    auc = harmed_auc(results)
    if len(auc):
        missing = (1.0 - auc).round(9)  # 0.97 itself holds the line
        checks.append(_mean("1 - mean AUC where bad sources do harm", 0.03, missing))
    return checks


def extreme_lines(results: pd.DataFrame) -> list[Line]:
    """Check what it has to hold where every source is bad, and where none is.

    Such differences have a standard error of about the limits with 20 draws; these lines are about
    60.
    """
    checks = []
    bad, none = (where_right(results, rival)["difference"] for rival in RIGHT_CHOICE)
    if len(bad):
        words = "100% bad: worse than reference only"
        checks += [_mean(f"{words}, mean", 0.0, bad), _worst(f"{words}, worst cell", 0.012, bad)]
    if len(none):
        checks.append(_worst("0% bad: worse than all data, worst cell", 0.006, none))
    return checks


def where_right(results: pd.DataFrame, rival: str) -> pd.DataFrame:
    """Compare with a simple choice in the cells in which it is the right one."""
    comparison = compare_with(results, rival)
    return comparison[comparison.index.get_level_values("bad") == RIGHT_CHOICE[rival]]


def harmed_auc(results: pd.DataFrame) -> pd.Series:
    """AUC of the default's weights in cells where bad sources cost all-data at least `HARM`."""
    harm = regrets(results)[ALL_DATA]
    auc = results[results["method"] == DEFAULT].groupby(CELL)["auc"].mean()
    return auc[(harm >= HARM).reindex(auc.index, fill_value=False)].dropna()


def _mean(promise: str, limit: float, values: pd.Series) -> Line:
    return Line(promise, limit, float(values.mean()), "", 0, len(values))


def _worst(promise: str, limit: float, values: pd.Series) -> Line:
    broken = int((values > limit).sum())
    where = name_of(values.idxmax())
    return Line(promise, limit, float(values.max()), where, broken, len(values))


def name_of(place: tuple[str, str, str, float]) -> str:
    """Return a cell's name, from its values of `CELL`."""
    data, variation, corruption, bad = place
    return f"{data}, {variation}, {corruption}, {bad:.0%} bad"


def clean_p_values(results: pd.DataFrame) -> pd.Series:
    """Share of clean sources below 0.05 where sources are dealt at random and none is bad."""
    chosen = results[
        (results["method"] == DEFAULT) & (results["bad"] == 0.0) & ~results["natural"].astype(bool)
    ]
    return chosen.groupby("data")["clean_below_005"].mean()
