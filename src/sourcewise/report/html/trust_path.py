"""The trust path: weights against the trade-off, and a slider that recomputes them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sourcewise.core.weights import WeightProblem
from sourcewise.report.html.parts import embedded, nice_ceiling, percent, words

STEPS = 1000
MOST_LINES = 80
# A few lines stay readable; hundreds need fewer points each.
POINTS = 160


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


def drawing(path: TrustPath) -> str:
    """Draw lines in an SVG, axes around it, and the slider below."""
    low, high = path.span
    problem = path.problem
    at = np.concatenate([[0.0], np.geomspace(low, high, POINTS), [np.inf]])
    weights = np.stack([problem.weights(t) for t in at])
    top = nice_ceiling(min(1.0, float(weights.max())))
    x = [path.position(t) for t in at]
    important = np.argsort(-weights.max(axis=0), kind="stable")[:MOST_LINES]
    lines = []
    for i in important[::-1]:
        points = " ".join(
            f"{a:.0f},{200 * (1 - min(w / top, 1.0)):.1f}"
            for a, w in zip(x, weights[:, i], strict=True)
        )
        lines.append(
            f'<polyline class="stroke line {path.groups[i]}" points="{points}">'
            f"<title>{words(path.names[i][:80])}</title></polyline>"
        )
    chosen = path.position(path.trade_off)
    labels = "".join(f"<span>{percent(top * share, 0)}</span>" for share in (1, 0.75, 0.5, 0.25, 0))
    ticks = "".join(
        f"<span>{_tick(low * (high / low) ** share)}</span>" for share in (0.25, 0.5, 0.75)
    )
    grid = "".join(
        f'<line class="rule" x1="0" x2="1000" y1="{y}" y2="{y}"/>' for y in (0, 50, 100, 150, 200)
    )
    return f"""
<div class="path">
  <div class="y" aria-hidden="true">{labels}</div>
  <svg viewBox="0 0 1000 200" preserveAspectRatio="none" role="img"
    aria-label="Weight of each source against lambda">
    {grid}{"".join(lines)}
    <line class="chosen" x1="{chosen:.1f}" x2="{chosen:.1f}" y1="0" y2="200"/>
    <line class="now" id="now" x1="{chosen:.1f}" x2="{chosen:.1f}" y1="0" y2="200"/>
  </svg>
  <div class="x" aria-hidden="true"><span>λ = 0</span>{ticks}<span>∞</span></div>
  <div class="control" data-needs-script hidden>
    <input type="range" id="lambda" min="0" max="{STEPS}" step="any" value="{chosen:.1f}"
      aria-label="Trade-off lambda">
    <div class="ends"><span>only your reference</span>
      <button class="action" id="reset" type="button">back to the chosen λ</button>
      <span>every row alike</span></div>
  </div>
</div>"""


def _tick(value: float) -> str:
    return f"{value:.2g}" if 0.001 <= value < 1e5 else f"{value:.0e}"


def data_block(path: TrustPath) -> str:
    """Return what the script needs to recompute weights."""
    low, high = path.span
    content = {
        "names": [name[:200] for name in path.names],
        "groups": path.groups,
        "d": [float(f"{d:.12g}") for d in path.discrepancies],
        "m": [float(f"{m:.12g}") for m in path.sizes],
        "chosen": None if math.isinf(path.trade_off) else path.trade_off,
        "low": low,
        "high": high,
    }
    return f'<script type="application/json" id="path-data">{embedded(content)}</script>'
