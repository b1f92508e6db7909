from __future__ import annotations

import numpy as np
import pytest

from sourcewise.experiments.study_errors import summarise

NONE = np.nan


def test_means_deviations_and_standard_errors():
    summary = summarise(np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5]]))
    assert summary.mean.tolist() == [2.0, 0.5]
    assert summary.deviation.tolist() == [1.0, 0.0]
    assert summary.standard_error == pytest.approx([3**-0.5, 0.0])
    assert (summary.runs, summary.left_out) == (3, 0)


def test_only_runs_that_all_methods_have():
    summary = summarise(np.array([[1.0, 3.0, 100.0, NONE], [2.0, 2.0, NONE, NONE]]))
    assert summary.mean.tolist() == [2.0, 2.0]
    assert (summary.runs, summary.left_out) == (2, 1)


def test_a_method_without_runs_does_not_count():
    summary = summarise(np.array([[1.0, 3.0], [NONE, NONE]]))
    assert summary.mean[0] == 2.0
    assert np.isnan(summary.mean[1])
    assert summary.runs == 2


@pytest.mark.parametrize("errors", [[[1.0], [2.0]], [[1.0, NONE], [2.0, NONE]]])
def test_one_run_has_a_mean_and_no_deviation(errors):
    summary = summarise(np.array(errors))
    assert summary.mean.tolist() == [1.0, 2.0]
    assert np.isnan(summary.deviation).all()
    assert np.isnan(summary.standard_error).all()


def test_nothing_in_common():
    summary = summarise(np.array([[1.0, NONE], [NONE, 1.0]]))
    assert np.isnan(summary.mean).all()
    assert (summary.runs, summary.left_out) == (0, 2)
