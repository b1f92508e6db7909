"""What all the findings come to."""

import numpy as np
import pytest
from made_up_sources import draw_folds, fit_reference, make

from sourcewise.core.choices import DEFAULT as CHOICES
from sourcewise.core.discrepancy.combined import (
    any_model_question,
    combined_discrepancies,
    combined_values,
    find,
)
from sourcewise.core.discrepancy.findings import gather, select_findings
from sourcewise.core.discrepancy.local_exchange import local_question
from sourcewise.core.discrepancy.pull import pull_question
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import brier_loss
from sourcewise.engines.memory import MemorySources

N_SETS, N_SOURCES = 3, 5
KNOW_NOTHING = 0.25
P_VALUES = np.linspace(0.1, 0.9, N_SOURCES)


def every_set(values):
    return np.tile(np.asarray(values, dtype=float), (N_SETS, 1))


def findings(pull=0.0, pull_error=0.0, missing=0.0, missing_error=0.0, distances=0.0):
    """Make findings in which all that is not given tells nothing."""

    def of_sources(values):
        return np.broadcast_to(np.asarray(values, dtype=float), N_SOURCES)

    return {
        "p_values": P_VALUES,
        "missing": every_set(of_sources(missing)),
        "missing_errors": of_sources(missing_error),
        "far": of_sources(distances),
        "pulls": every_set(of_sources(pull)),
        "pull_errors": every_set(of_sources(pull_error)),
    }


def judged_alike(found):
    """Judge all sets, which have the same findings."""
    values = combined_values(found, KNOW_NOTHING, CHOICES)
    np.testing.assert_array_equal(values, [values[0]] * N_SETS)
    np.testing.assert_array_equal(discrepancies(found).values, values[0])
    return values[0]


def discrepancies(found):
    return combined_discrepancies(found, KNOW_NOTHING, CHOICES)


def witnesses(found):
    return [w.hypothesis for w in discrepancies(found).witnesses]


def test_only_the_reference_is_at_distance_zero():
    np.testing.assert_array_equal(judged_alike(findings(pull=-0.3)), CHOICES.nearest)


def test_never_beyond_the_largest_loss():
    np.testing.assert_array_equal(judged_alike(findings(pull=3.0, missing=2.0, distances=9.0)), 1.0)


def test_every_part_adds_to_the_others():
    parts = {
        "pull": ({"pull": 0.2, "pull_error": 0.1}, CHOICES.pulled * 0.3),
        "missing": ({"missing": 1.0}, CHOICES.missed * KNOW_NOTHING),
    }
    together = {}
    for options, expected in parts.values():
        np.testing.assert_allclose(judged_alike(findings(**options)), expected)
        together |= options
    expected = sum(value for _, value in parts.values())
    np.testing.assert_allclose(judged_alike(findings(**together)), expected)
    # The cumulative normal probability at 2 standard errors.
    expected += CHOICES.farness * 3.0 * 0.97725
    np.testing.assert_allclose(judged_alike(findings(**together, distances=3.0)), expected, 1e-5)


def test_a_source_that_helps_makes_up_for_what_others_say_against_it():
    found = findings(pull=[-0.4, -0.1, -0.1, 0.0, 0.0], missing=1.0)
    missed = CHOICES.missed * KNOW_NOTHING
    helped = missed - 0.1 * CHOICES.pulled
    np.testing.assert_allclose(
        judged_alike(found), [CHOICES.nearest, helped, helped, missed, missed]
    )


def test_the_witness_is_the_part_that_says_most():
    found = findings(
        pull=[0.3, 0.0, 0.01, 0.0, 0.1],
        missing=[0.1, 1.0, 0.0, 0.0, 0.0],
        distances=[0.0, 0.0, 30.0, 0.0, 0.1],
    )
    expected = ["joint model", "agreement", "features", "joint model", "joint model"]
    assert witnesses(found) == expected


def test_standard_errors_are_those_of_pull_and_agreement():
    found = findings(
        pull_error=0.2, missing=1.0, missing_error=[0.0, 0.5, 0.0, 0.0, 0.0], distances=5.0
    )
    errors = discrepancies(found).standard_errors
    alone = CHOICES.pulled * 0.2
    both = np.hypot(alone, CHOICES.missed * KNOW_NOTHING * 0.5)
    np.testing.assert_allclose(errors, [alone, both, alone, alone, alone])


def test_far_features_count_as_far_as_a_source_is_likely_to_do_harm():
    distances = np.array([0.0, 0.0, 4.0, 4.0, 4.0])
    pulls = {"pull": [0.0, 0.0, -0.04, 0.0, 0.02], "pull_error": 0.02, "missing": 1.0}
    near, far = (judged_alike(findings(**pulls, distances=d)) for d in (0.0, distances))
    # Cumulative normal probabilities at -2, 0 and 1.
    harm = np.array([0.0, 0.0, 0.0228, 0.5, 0.8413])
    np.testing.assert_allclose(far - near, 4.0 * CHOICES.farness * harm, atol=1e-4)
    # However far: not beyond the largest loss, and no farther than it is likely to do harm.
    remote = judged_alike(findings(**pulls, distances=1e6 * distances))
    np.testing.assert_allclose(remote - near, harm, atol=1e-4)


def test_how_far_other_sources_lie_does_not_matter():
    pulls = {"pull": 0.01, "pull_error": 0.02}
    alike = judged_alike(findings(**pulls, distances=4.0))
    one = judged_alike(findings(**pulls, distances=[4.0, 0.0, 0.0, 0.0, 0.0]))
    assert one[0] == alike[0] > one[1]


def test_p_values_are_those_of_the_local_models():
    np.testing.assert_array_equal(discrepancies(findings(pull=1.0)).p_values, P_VALUES)


FAMILY = LogisticFamily(2, np.array([1.0]), tol=1e-10)


@pytest.fixture(scope="module")
def asked():
    data = make([40, 30, 1, 60, 25], flipped=(3,))
    reference = fit_reference(data, draw_folds(data, 3, 2, seed=0), FAMILY, brier_loss)
    return MemorySources(data, list("abcd")), reference


def assert_same(found, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-7)


def test_one_look_finds_what_its_parts_do(asked):
    sources, reference = asked
    told = []
    found = find(sources, reference, 7, CHOICES, on_answer=told.append)
    known = any_model_question(reference, CHOICES)
    expected = {
        **gather(sources.ask(known)),
        **gather(sources.ask(local_question(reference, 7))),  # whose test is of both models
        **gather(sources.ask(pull_question(reference))),
    }
    assert_same(found, expected)
    assert found.keys() - expected.keys() == {"far"}
    assert sum(told) == 8  # everybody twice


def test_findings_do_not_depend_on_who_else_is_asked(asked):
    sources, reference = asked
    together = find(sources, reference, 7, CHOICES)
    for some in ([2], [0, 3], [1, 2]):
        assert_same(find(sources, reference, 7, CHOICES, some), select_findings(together, some))
