"""Mean errors of methods over the runs that all of them have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Summary(NamedTuple):
    """Means over runs.

    Attributes
    ----------
    mean, deviation, standard_error : arrays of shape (n_methods,)
        Standard deviations are those of a sample (n - 1); NaN with fewer than two runs, and for a
        method without any.
    runs : int
        Runs that all methods have.
    left_out : int
        Runs that some methods lack.
    """

    mean: np.ndarray
    deviation: np.ndarray
    standard_error: np.ndarray
    runs: int
    left_out: int


def summarise(errors: np.ndarray) -> Summary:
    """Average errors over runs; a run that some method lacks would favour one over another.

    Parameters
    ----------
    errors : array of shape (n_methods, ...)
        A run has the same place for all methods; NaN where it is not there. Methods without any
        run do not count.

    Examples
    --------
    >>> summarise(np.array([[0.25, 0.75, 0.1], [0.5, 1.0, np.nan]])).mean
    array([0.5 , 0.75])
    """
    errors = errors.reshape(len(errors), -1)
    there = ~np.isnan(errors)
    methods = there.any(axis=1)
    common = there[methods].all(axis=0) & methods.any()
    runs = int(common.sum())
    mean = np.full(len(errors), np.nan)
    deviation = mean.copy()
    if runs:
        mean[methods] = errors[methods][:, common].mean(axis=1)
    if runs > 1:
        deviation[methods] = errors[methods][:, common].std(axis=1, ddof=1)
    left_out = int((there.any(axis=0) & ~common).sum())
    return Summary(mean, deviation, deviation / np.sqrt(max(runs, 1)), runs, left_out)


def span(summaries: list[Summary]) -> str:
    """Say how many runs the means rest on, from the fewest to the most."""
    fewest, most = (f(summary.runs for summary in summaries) for f in (min, max))
    return str(fewest) if fewest == most else f"{fewest} to {most}"
