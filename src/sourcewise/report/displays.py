"""Pictures of a fitted model's sources, after scikit-learn's Display contract.

``from_estimator`` draws at once; the object it returns can draw again on other axes and keeps what
it drew (``ax_``, ``figure_`` and the artists), so that anything can be changed afterwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sourcewise.core.weights import weight_path
from sourcewise.extras import how_to_install
from sourcewise.report.reasons import FOUND, REFERENCE, UNTOLD
from sourcewise.safe_text import cut, one_line

MATPLOTLIB_MISSING = "Displays need matplotlib: {how}."
# Okabe and Ito's colours, which colour-blind readers can distinguish too.
AGREES, DISAGREES, UNSURE, OWN = "#0072B2", "#D55E00", "#999999", "#000000"
Z = 1.959964


class _Display:
    """What it drew on, and bars or intervals beside names, the first at the top."""

    names: list[Any]

    def _begin(self, ax: Any) -> None:
        try:
            import matplotlib.pyplot as plt
        except ImportError as error:
            raise ImportError(MATPLOTLIB_MISSING.format(how=how_to_install("report"))) from error
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


class SourceWeightsDisplay(_Display):
    """A bar for each source's weight.

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

    def __init__(self, *, names: list[Any], weights: np.ndarray, reasons: list[str]):
        self.names = names
        self.weights = weights
        self.reasons = reasons

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the weights of a fitted model, the largest at the top.

        Parameters
        ----------
        estimator : fitted sourcewise estimator
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.barh``.
        """
        rows = _report_rows(estimator)
        rows = sorted(rows, key=lambda row: -row.weight)
        return cls(
            names=[row.source for row in rows],
            weights=np.array([row.weight for row in rows]),
            reasons=[row.reason for row in rows],
        ).plot(ax=ax, **kwargs)

    def plot(self, *, ax: Any = None, **kwargs: Any) -> SourceWeightsDisplay:
        """Draw on some axes."""
        self._begin(ax)
        where = np.arange(len(self.names))
        self.bars_ = self.ax_.barh(
            where, self.weights, **{"color": _colours(self.reasons), **kwargs}
        )
        self._name_lines("weight")
        return self


class WeightPathDisplay(_Display):
    """Each source's weight against the trade-off.

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

    def __init__(
        self,
        *,
        names: list[Any],
        trade_offs: np.ndarray,
        weights: np.ndarray,
        reasons: list[str],
        trade_off: float,
    ):
        self.names = names
        self.trade_offs = trade_offs
        self.weights = weights
        self.reasons = reasons
        self.trade_off = trade_off

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the path of a fitted model, the trade-off in use marked.

        Parameters
        ----------
        estimator : fitted sourcewise estimator
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.plot``.
        """
        rows = _report_rows(estimator)
        path = weight_path(estimator.discrepancies_, estimator.source_sizes_)
        inner = (path.trade_offs > 0) & np.isfinite(path.trade_offs)
        return cls(
            names=[row.source for row in rows],
            trade_offs=path.trade_offs[inner],
            weights=path.weights[inner],
            reasons=[row.reason for row in rows],
            trade_off=estimator.trade_off_,
        ).plot(ax=ax, **kwargs)

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


class DiscrepancyDisplay(_Display):
    """Each source's discrepancy with its 95 % interval, and the cut-off.

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

    def __init__(
        self,
        *,
        names: list[Any],
        discrepancies: np.ndarray,
        standard_errors: np.ndarray,
        reasons: list[str],
        cutoff: float,
    ):
        self.names = names
        self.discrepancies = discrepancies
        self.standard_errors = standard_errors
        self.reasons = reasons
        self.cutoff = cutoff

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Any:
        """Draw the discrepancies of a fitted model, the smallest at the top.

        Parameters
        ----------
        estimator : fitted sourcewise estimator
        ax : matplotlib Axes, optional
        **kwargs
            For ``Axes.errorbar``.
        """
        rows = sorted(_report_rows(estimator), key=lambda row: row.discrepancy)
        return cls(
            names=[row.source for row in rows],
            discrepancies=np.array([row.discrepancy for row in rows]),
            standard_errors=np.array([row.standard_error for row in rows]),
            reasons=[row.reason for row in rows],
            cutoff=estimator.cutoff_,
        ).plot(ax=ax, **kwargs)

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


def _report_rows(estimator: Any) -> Any:
    check_is_fitted(estimator)
    return estimator.report().sources
