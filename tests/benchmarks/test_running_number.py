"""The benchmark of running numbers: what cutting off in ``predict`` is for."""

import pytest
from benchmarks.running_number import CUT_OFF, IN_TRAINING_ONLY, one_draw


def test_a_number_that_has_gone_on_rules_the_model_unless_it_is_cut_off():
    found = one_draw(0, [CUT_OFF])
    near, next_numbers, far, _ = found[CUT_OFF]
    assert max(next_numbers, far) < near + 0.05
    as_trusted, *others, _ = found[IN_TRAINING_ONLY]
    assert as_trusted == pytest.approx(near)
    assert min(others) > 0.4
