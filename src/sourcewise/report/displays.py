"""Pictures of a fitted model's sources, after scikit-learn's Display contract.

``from_estimator`` draws at once; the object it returns can draw again on other axes and keeps what
it drew (``ax_``, ``figure_`` and the artists), so that anything can be changed afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sourcewise.core.weights import weight_path
from sourcewise.extras import import_extra
from sourcewise.report.reasons import FOUND, REFERENCE, UNTOLD
from sourcewise.safe_text import cut, one_line

MATPLOTLIB_MISSING = "Displays need matplotlib: {how}."
# Okabe and Ito's colours, which colour-blind readers can distinguish too.
AGREES, DISAGREES, UNSURE, OWN = "#0072B2", "#D55E00", "#999999", "#000000"
Z = 1.959964


@dataclass(kw_only=True, eq=False, repr=False)
class _Display:
    """What it drew on, and bars or intervals beside names, the first at the top."""

    names: list[Any]
    reasons: list[str]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Any:
        """Draw what a fitted model says of its sources.

        Parameters
        ----------
        estimator : fitted sourcewise estimator
        ax : matplotlib Axes, optional
        **kwargs
            For the method of ``Axes`` that draws.
        """
        check_is_fitted(estimator)
        rows = sorted(estimator.report().sources, key=cls._place)
        names, reasons = [row.source for row in rows], [row.reason for row in rows]
        found: Any = cls(names=names, reasons=reasons, **cls._columns(estimator, rows))
        return found.plot(ax=ax, **kwargs)

    @staticmethod
    def _place(row: Any) -> float:
        """Where a source stands: the smallest first, in the model's order by default."""
        return 0.0

    @staticmethod
    def _columns(estimator: Any, rows: list[Any]) -> dict[str, Any]:
        """Take what is drawn of these sources besides names and reasons: nothing by default."""
        return {}

    def _begin(self, ax: Any) -> None:
        plt = import_extra("matplotlib.pyplot", "report", MATPLOTLIB_MISSING)
        self.ax_ = plt.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.figure

    def _name_lines(self, what: str) -> None:
        self.ax_.set_yticks(range(len(self.names)), [_label(name) for name in self.names])
        self.ax_.invert_yaxis()
        self.ax_.set_xlabel(what)


def _colours(reasons: list[str]) -> list[str]:
    known = {REFERENCE: OWN, **dict.fromkeys(UNTOLD, UNSURE), **dict.fromkeys(FOUND, DISAGREES)}
    return [known.get(reason, AGREES) for reason in reasons]


def _label(name: Any) -> str:
    """Write a name literally: matplotlib would read dollar signs as mathematics."""
    return cut(one_line(name), 30).replace("$", r"\$")


@dataclass(kw_only=True, eq=False, repr=False)
class SourceWeightsDisplay(_Display):
    """A bar for each source's weight, the largest at the top; ``Axes.barh`` draws it.

    Parameters
    ----------
    names : list
    weights : array of shape (n_sources,)
    reasons : list of str
        As in :class:`sourcewise.SourceReport`; they give the colours.

    Attributes
    ----------
    bars_ : matplotlib BarContainer
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import sourcewise as sw
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(digits.X, digits.y, sources=digits.vendor)
    >>> display = SourceWeightsDisplay.from_estimator(model)
    >>> len(display.bars_)
    11
    """

    weights: np.ndarray

    @staticmethod
    def _place(row: Any) -> float:
        return -float(row.weight)

    @staticmethod
    def _columns(estimator: Any, rows: list[Any]) -> dict[str, Any]:
        return {"weights": np.array([row.weight for row in rows])}

    def plot(self, *, ax: Any = None, **kwargs: Any) -> SourceWeightsDisplay:
        """Draw on some axes."""
        self._begin(ax)
        where = np.arange(len(self.names))
        self.bars_ = self.ax_.barh(
            where, self.weights, **{"color": _colours(self.reasons), **kwargs}
        )
        self._name_lines("weight")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class WeightPathDisplay(_Display):
    """Each source's weight against the trade-off, the one in use marked; ``Axes.plot`` draws it.

    Parameters
    ----------
    names : list
    trade_offs : array of shape (n_trade_offs,)
        Positive and finite.
    weights : array of shape (n_trade_offs, n_sources)
    reasons : list of str
    trade_off : float
        The one in use; where weights were averaged, the one with the largest share.

    Attributes
    ----------
    lines_ : list of matplotlib Line2D
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import sourcewise as sw
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(digits.X, digits.y, sources=digits.vendor)
    >>> display = WeightPathDisplay.from_estimator(model)
    >>> len(display.lines_)
    11
    """

    trade_offs: np.ndarray
    weights: np.ndarray
    trade_off: float

    @staticmethod
    def _columns(estimator: Any, rows: list[Any]) -> dict[str, Any]:
        path = weight_path(estimator.discrepancies_, estimator.source_sizes_)
        inner = (path.trade_offs > 0) & np.isfinite(path.trade_offs)
        found = {"trade_offs": path.trade_offs[inner], "weights": path.weights[inner]}
        return {**found, "trade_off": estimator.trade_off_}

    def plot(self, *, ax: Any = None, **kwargs: Any) -> WeightPathDisplay:
        """Draw on some axes."""
        self._begin(ax)
        self.lines_: list[Any] = []
        for i, (name, colour) in enumerate(zip(self.names, _colours(self.reasons), strict=True)):
            dashes = "--" if colour == DISAGREES else ":" if colour == UNSURE else "-"
            style = {"color": colour, "linestyle": dashes, "label": _label(name), **kwargs}
            self.lines_ += self.ax_.plot(self.trade_offs, self.weights[:, i], **style)
        if 0 < self.trade_off < np.inf:
            self.ax_.axvline(self.trade_off, color=UNSURE, linestyle="-.", linewidth=1)
        self.ax_.set_xscale("log")
        self.ax_.set_xlabel("trade-off λ")
        self.ax_.set_ylabel("weight")
        if len(self.names) <= 12:
            self.ax_.legend(fontsize="small")
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class DiscrepancyDisplay(_Display):
    """Each source's discrepancy with its 95 % interval, the smallest at the top, and the cut-off.

    ``Axes.errorbar`` draws it.

    Parameters
    ----------
    names : list
    discrepancies, standard_errors : arrays of shape (n_sources,)
    reasons : list of str
    cutoff : float
        Mu; infinite for none.

    Attributes
    ----------
    intervals_ : list of matplotlib ErrorbarContainer
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import sourcewise as sw
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(digits.X, digits.y, sources=digits.vendor)
    >>> display = DiscrepancyDisplay.from_estimator(model)
    >>> len(display.intervals_)
    11
    """

    discrepancies: np.ndarray
    standard_errors: np.ndarray
    cutoff: float

    @staticmethod
    def _place(row: Any) -> float:
        return float(row.discrepancy)

    @staticmethod
    def _columns(estimator: Any, rows: list[Any]) -> dict[str, Any]:
        return {
            "discrepancies": np.array([row.discrepancy for row in rows]),
            "standard_errors": np.array([row.standard_error for row in rows]),
            "cutoff": estimator.cutoff_,
        }

    def plot(self, *, ax: Any = None, **kwargs: Any) -> DiscrepancyDisplay:
        """Draw on some axes."""
        self._begin(ax)
        where = np.arange(len(self.names))
        self.intervals_ = [
            self.ax_.errorbar(
                [value],
                [y],
                xerr=[[min(Z * error, value)], [Z * error]],
                **{"fmt": "o", "color": colour, "capsize": 3, **kwargs},
            )
            for y, value, error, colour in zip(
                where, self.discrepancies, self.standard_errors, _colours(self.reasons), strict=True
            )
        ]
        if np.isfinite(self.cutoff):
            self.ax_.axvline(self.cutoff, color=UNSURE, linestyle="-.", linewidth=1)
        self._name_lines("discrepancy from the reference")
        return self
