"""What bars say of a long computation."""

from __future__ import annotations

import io

import pytest

pytest.importorskip("rich", reason="bars need rich")

from rich.console import Console
from rich.progress import Progress

from sourcewise.progress import FITS, Stages


@pytest.fixture
def stages():
    return Stages(Progress(console=Console(file=io.StringIO())))


def task(stages, stage):
    return stages.bars.tasks[list(stages.tasks).index(stage)]


def test_the_fit_under_way_is_named(stages):
    stages(FITS, 0, 18)
    assert task(stages, FITS).description == "Fit 1 of at most 18"
    stages(FITS, 6, 18)
    assert task(stages, FITS).description == "Fit 7 of at most 18"
    assert task(stages, FITS).completed == 6 and task(stages, FITS).total == 18
    stages(FITS, 14, 14)
    assert task(stages, FITS).description == "14 fits" and task(stages, FITS).finished


def test_fits_whose_number_nobody_knows_are_counted(stages):
    stages(FITS, 3, 0)
    assert task(stages, FITS).description == "Fit 4" and task(stages, FITS).total is None


def test_fits_do_not_end_the_stage_they_happen_in(stages):
    stages("selection", 1, 9)
    stages(FITS, 4, 18)
    assert stages.current == "selection" and not task(stages, "selection").finished
    stages("training", 0, 0)
    assert task(stages, "selection").finished and not task(stages, FITS).finished


def test_fits_within_a_round_of_a_comparison_have_no_bar(stages):
    stages("comparison", 0, 5)
    stages(FITS, 4, 18)
    assert FITS not in stages.tasks
