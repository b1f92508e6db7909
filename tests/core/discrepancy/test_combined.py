"""What all the findings come to."""

import numpy as np

from sourcewise.core.discrepancy.agreement import Agreement
from sourcewise.core.discrepancy.combined import (
    BEYOND_DOUBT,
    FAILED,
    FARNESS,
    MISSED,
    NEAREST,
    OTHER_UNITS,
    PULLED,
    Findings,
    judge,
    judged_discrepancies,
)
from sourcewise.core.discrepancy.local import TwoSided
from sourcewise.core.discrepancy.pull import Pulls

N_SETS, N_SOURCES = 3, 5
KNOW_NOTHING = 0.25


def every_set(values):
    return np.tile(np.asarray(values, dtype=float), (N_SETS, 1))


def findings(
    pull=0.0, pull_error=0.0, missing=0.0, missing_error=0.0, b=-1.0, error_b=0.01, distances=0.0
):
    """Make findings in which all that is not given tells nothing."""

    def of_sources(values):
        return np.broadcast_to(np.asarray(values, dtype=float), N_SOURCES)

    b, zeros = of_sources(b), np.zeros(N_SOURCES)
    side = TwoSided(0.1, 0.01, zeros, b, zeros, of_sources(error_b))
    return Findings(
        (side,) * N_SETS,
        Pulls(every_set(of_sources(pull)), every_set(of_sources(pull_error))),
        Agreement(
            every_set(1.0 - of_sources(missing)),
            every_set(np.ones(N_SOURCES)),
            of_sources(missing_error),
            np.ones(N_SETS),
            np.zeros(N_SETS),
        ),
        of_sources(distances),
        KNOW_NOTHING,
    )


def judged_alike(found):
    """Judge all sets, which have the same findings."""
    values = [judge(found, s) for s in range(N_SETS)]
    np.testing.assert_array_equal(values, [values[0]] * N_SETS)
    return values[0]


def witnesses(found):
    return [w.hypothesis for w in judged_discrepancies(found, np.ones(N_SOURCES)).witnesses]


def test_only_the_reference_is_at_distance_zero():
    np.testing.assert_array_equal(judged_alike(findings(pull=-0.3)), NEAREST)


def test_never_beyond_the_largest_loss():
    np.testing.assert_array_equal(judged_alike(findings(pull=3.0, missing=2.0, distances=9.0)), 1.0)


def test_every_part_adds_to_the_others():
    parts = {
        "pull": ({"pull": 0.2, "pull_error": 0.1}, PULLED * 0.3),
        "missing": ({"missing": 1.0}, MISSED * KNOW_NOTHING),
        "own model": ({"b": 0.5, "error_b": 0.1}, FAILED * (0.5 - BEYOND_DOUBT * 0.1)),
    }
    together = {}
    for options, expected in parts.values():
        np.testing.assert_allclose(judged_alike(findings(**options)), expected)
        together |= options
    expected = sum(value for _, value in parts.values())
    np.testing.assert_allclose(judged_alike(findings(**together)), expected)


def test_a_model_in_doubt_and_a_source_without_one_say_nothing():
    found = findings(b=[0.29, 0.31, np.nan, -0.5, 0.0], error_b=0.1)
    values = judged_alike(found)
    np.testing.assert_allclose(values, [NEAREST, FAILED * 0.01, NEAREST, NEAREST, NEAREST])


def test_the_witness_is_whoever_says_most():
    found = findings(
        pull=[0.3, 0.0, 0.0, 0.0, 0.1],
        missing=[0.1, 1.0, 0.0, 0.0, 0.0],
        b=[-1.0, -1.0, 0.9, -1.0, 0.1],
        distances=[0.0, 0.0, 0.0, 30.0, 0.0],
    )
    assert witnesses(found) == [
        "joint model",
        "agreement",
        "source model",
        "features",
        "joint model",
    ]


def test_standard_errors_are_those_of_whoever_speaks():
    found = findings(
        pull_error=0.2,
        missing=1.0,
        missing_error=[0.0, 0.5, 0.0, 0.0, 0.0],
        b=[-1.0, -1.0, 2.0, np.nan, 0.1],
        error_b=[0.1, 0.1, 0.1, np.nan, 0.1],
    )
    errors = judged_discrepancies(found, np.ones(N_SOURCES)).standard_errors
    alone = PULLED * 0.2
    expected = [
        alone,
        np.hypot(alone, MISSED * KNOW_NOTHING * 0.5),
        np.hypot(alone, FAILED * 0.1),
        alone,
        alone,
    ]
    np.testing.assert_allclose(errors, expected)


def test_far_features_count_as_far_as_a_source_pulls_the_wrong_way():
    distances = np.array([0.0, 0.0, 4.0, 4.0, 4.0])
    pulls = {"pull": [0.0, 0.0, -0.04, 0.0, 0.02], "pull_error": 0.02, "missing": 1.0}
    near, far = (judged_alike(findings(**pulls, distances=d)) for d in (0.0, distances))
    # Cumulative normal probabilities at -2, 0 and 1.
    wrong_way = np.array([0.0, 0.0, 0.0228, 0.5, 0.8413])
    np.testing.assert_allclose(far - near, 4.0 * FARNESS * wrong_way, atol=1e-4)
    # However far: not beyond the largest loss, and no farther than it is likely to do harm.
    remote = judged_alike(findings(**pulls, distances=1e6 * distances))
    np.testing.assert_allclose(remote - near, wrong_way, atol=1e-4)


def test_where_all_lie_far_features_count_against_sources_that_pull_the_wrong_way():
    pulls = {"pull": [-0.04, -0.02, 0.0, 0.02, 0.04], "pull_error": 0.02, "missing": 1.0}
    near, far = (judged_alike(findings(**pulls, distances=d)) for d in (0.0, 4.0))
    # Twice the cumulative normal probabilities at 1 and 2, less one.
    np.testing.assert_allclose(
        far - near, 4.0 * FARNESS * np.array([0, 0, 0, 0.6827, 0.9545]), atol=1e-4
    )


def test_where_all_lie_far_features_are_blamed_only_if_no_nature_explains_it():
    pulls = {"pull": [-0.04, -0.02, 0.0, 0.02, 0.04], "pull_error": 0.02, "missing": 0.1}
    assert "features" not in witnesses(findings(**pulls, distances=0.9 * OTHER_UNITS))
    units = witnesses(findings(**pulls, distances=1e4))
    assert [who == "features" for who in units] == [False, False, False, True, True]
