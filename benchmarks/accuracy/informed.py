"""The cost of not knowing which sources are the clean ones, if all else is known.

Somebody is told who belongs with whom, all clean sources on one side and all bad ones on the other,
but not which side is which. He fits a model to either side and takes the one under which the
trusted rows are likelier: all that they can still tell. What he loses against the clean side's
model, nobody can be asked to save who must find the sides as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from benchmarks.accuracy import summary
from benchmarks.accuracy.data import REFERENCE, Draw
from benchmarks.accuracy.methods import error_of
from benchmarks.accuracy.report import markdown

NO_CHANCE = 1e-6  # probability of a class that a side does not have at all


def cost_of_not_knowing(models: list[Any], draw: Draw, *, regression: bool) -> dict[str, float]:
    """Error of the likelier side's model beyond that of the clean side's, which is the first."""
    trusted = draw.sources == REFERENCE
    losses = [mean_loss(model, draw.X[trusted], draw.y[trusted]) for model in models]
    errors = [error_of(model, draw, regression) for model in models]
    wrong = losses[1] < losses[0]
    return {"cost": errors[int(wrong)] - errors[0], "wrong": float(wrong)}


def mean_loss(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Log-loss, or the logarithm of the mean square: less is likelier."""
    if not hasattr(model, "predict_proba"):
        return float(np.log(np.mean((model.predict(X) - y) ** 2)))
    given = (y[:, None] == model.classes_) * model.predict_proba(X)
    return float(-np.mean(np.log(np.maximum(given.sum(axis=1), NO_CHANCE))))


def sides_table(default: pd.Series, informed: pd.DataFrame) -> str:
    """Regret of the default beside the cost of not knowing the sides, the largest regret first."""
    cells = informed.groupby(summary.CELL)
    found = pd.DataFrame(
        {
            "regret": default,
            "cost": cells["cost"].mean(),
            "error": cells["cost"].sem(),
            "wrong": cells["wrong"].sum(),
            "draws": cells.size(),
        }
    ).dropna()
    rows = [
        (
            summary.name_of(place),
            f"{line.regret:+.4f}",
            f"{line.cost:+.4f} ± {line.error:.4f}",
            f"{line.wrong:.0f} of {line.draws:.0f}",
        )
        for place, line in found.sort_values("regret", ascending=False).iterrows()
    ]
    return markdown(("cell", "default's regret", "cost of not knowing", "wrong side"), rows)
