from __future__ import annotations

import numpy as np
import pytest
from benchmarks.frozen import POOLS, differences, found_of


def test_what_is_fitted_again_has_not_changed():
    for name in ("2 classes", "measured combined"):
        first, second = found_of(name), found_of(name)
        assert first.keys() == second.keys()
        assert not [line for key in first if (line := differences(key, first[key], second[key]))]
    assert len(POOLS) >= 40


@pytest.mark.parametrize(
    ("key", "before", "now", "said"),
    [
        ("weights", [0.5, 0.5], [0.5, 0.5 + 2e-6], "moved by 2.0e-06"),
        ("weights", [0.5, 0.5], [0.5, 0.5 + 5e-7], ""),
        ("weights", [0.5], [0.5, 0.5], "shape (1,) / (2,)"),
        ("p_values", [np.nan, 0.1], [np.nan, 0.1], ""),
        ("coefficients", [100.0], [100.02], "moved by"),
        ("coefficients", [100.0], [100.001], ""),
    ],
)
def test_numbers_may_move_by_rounding_only(key, before, now, said):
    found = differences(key, np.array(before), np.array(now))
    assert said in found
    assert bool(said) == bool(found)


def test_words_may_not_change_and_their_numbers_may():
    before = np.asarray("2 of 9 sources agree at 0.31")
    assert not differences("words", before, np.asarray("2 of 9 sources agree at 0.32"))
    assert "accord" in differences("words", before, np.asarray("2 of 9 sources accord at 0.31"))
