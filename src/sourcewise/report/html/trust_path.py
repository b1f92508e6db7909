"""The trust path: weights against the trade-off, and a slider that recomputes them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.weights import WeightProblem
from sourcewise.report.html.groups import STYLES, Group
from sourcewise.report.html.numbers import nice_ceiling, percent
from sourcewise.report.source_report import SourceReport

STEPS = 1000
# A few lines stay readable; hundreds would make the page heavy.
MOST_LINES = 40
POINTS = 80
LONGEST = 200


@dataclass(frozen=True)
class TrustPath:
    """What the drawing needs to know.

    Attributes
    ----------
    names, groups : lists of str
        Sources and the style of each.
    discrepancies, sizes : arrays
    trade_off : float
    """

    names: list[str]
    groups: list[str]
    discrepancies: np.ndarray
    sizes: np.ndarray
    trade_off: float

    @classmethod
    def from_report(cls, report: SourceReport, groups: list[str]) -> TrustPath:
        """Take what is needed from a report with its context."""
        assert report.context is not None
        return cls(
            [str(row.source) for row in report.sources],
            groups,
            np.array([row.discrepancy for row in report.sources]),
            np.array(report.context.sizes),
            report.trade_off,
        )

    @property
    def problem(self) -> WeightProblem:
        """The weights as a function of lambda."""
        return WeightProblem.from_sources(self.discrepancies, self.sizes)

    @property
    def span(self) -> tuple[float, float]:
        """Return lambdas between which something happens, the chosen one among them."""
        entries = self.problem.breakpoints
        entries = entries[entries > 0]
        low, high = (entries.min() / 3, entries.max() * 6) if len(entries) else (0.1, 100.0)
        # More than four decades would squeeze what matters into a corner.
        low = max(low, high * 1e-4)
        if 0 < self.trade_off < math.inf:
            low, high = min(low, self.trade_off / 2), max(high, self.trade_off * 2)
        return float(low), float(high)

    def position(self, trade_off: float) -> float:
        """Where a lambda lies on the axis of 0 to 1000."""
        low, high = self.span
        if trade_off <= 0:
            return 0.0
        if math.isinf(trade_off):
            return 1000.0
        step = 1 + math.log(trade_off / low) / math.log(high / low) * (STEPS - 2)
        return 1000.0 * min(max(step, 1.0), STEPS - 1.0) / STEPS


@dataclass(frozen=True)
class PathLine:
    """A source's line: its style, its name, and the points as SVG writes them."""

    style: str
    name: str
    points: str


@dataclass(frozen=True)
class Drawing:
    """All that is drawn.

    Attributes
    ----------
    legend : list of Group
    lines : list of PathLine
        The most important last, so that it lies on top.
    labels, ticks : lists of str
        Of the upright axis from the top, and of the level one.
    chosen : float
        Where the chosen lambda lies, from 0 to 1000.
    steps : int
        Of the slider.
    data : dict
        What the script needs to recompute weights.
    """

    legend: list[Group]
    lines: list[PathLine]
    labels: list[str]
    ticks: list[str]
    chosen: float
    steps: int
    data: dict[str, Any]


def drawing(path: TrustPath) -> Drawing:
    """Compute lines, axes, and where the slider stands."""
    low, high = path.span
    problem = path.problem
    at = np.concatenate([[0.0], np.geomspace(low, high, POINTS), [np.inf]])
    weights = np.stack([problem.weights(t) for t in at])
    # At 0 the reference may have all the weight, and hardly any just beside: that cannot be drawn.
    top = nice_ceiling(min(1.0, float(weights[1:].max())))
    x = [path.position(t) for t in at]
    important = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_LINES]
    return Drawing(
        [group for style, group in STYLES.items() if style in path.groups],
        [
            PathLine(path.groups[i], path.names[i][:80], _points(x, weights[:, i] / top))
            for i in important[::-1]
        ],
        [percent(top * share, 0) for share in (1, 0.75, 0.5, 0.25, 0)],
        [_tick(low * (high / low) ** share) for share in (0.25, 0.5, 0.75)],
        round(path.position(path.trade_off), 1),
        STEPS,
        {
            "names": [name[:LONGEST] for name in path.names],
            "groups": path.groups,
            "d": [float(f"{d:.12g}") for d in path.discrepancies],
            "m": [float(f"{m:.12g}") for m in path.sizes],
            "chosen": None if math.isinf(path.trade_off) else path.trade_off,
            "low": low,
            "high": high,
        },
    )


def _points(x: list[float], shares: np.ndarray) -> str:
    """Write a line, without the points in the middle of a level stretch."""
    y = [round(200 * (1 - min(share, 1.0)), 1) for share in shares.tolist()]
    kept = [k for k in range(len(y)) if not (0 < k < len(y) - 1 and y[k - 1] == y[k] == y[k + 1])]
    return " ".join(f"{x[k]:.0f},{y[k]:g}" for k in kept)


def _tick(value: float) -> str:
    return f"{value:.2g}" if 0.001 <= value < 1e5 else f"{value:.0e}"
