from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sourcewise import baselines
from sourcewise.baselines.base import Baseline

ALL = [getattr(baselines, name) for name in baselines.__all__]
ALL = [each for each in ALL if isinstance(each, type) and issubclass(each, Baseline)]

FOLDS = (
    "cv counts folds of the reference: explicit splits of all rows, which this check sets, have no "
    "meaning here; and repeating a row gives other folds than doubling its weight"
)


def expected_failures(estimator):
    return {
        "check_sample_weight_equivalence_on_dense_data": FOLDS,
        "check_sample_weight_equivalence_on_sparse_data": FOLDS,
    }


# scikit-learn skips its array API check where SCIPY_ARRAY_API is not set, and says so.
@pytest.mark.filterwarnings("ignore:Skipping check:sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([each() for each in ALL], expected_failed_checks=expected_failures)
def test_follows_scikit_learn(estimator, check):
    check(estimator)
