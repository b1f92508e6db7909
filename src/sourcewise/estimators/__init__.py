"""scikit-learn meta-estimators: validate, ask the core, set attributes."""

from sourcewise.estimators.classifier import SourceWeightedClassifier
from sourcewise.estimators.discrepancies import SourceDiscrepancies, estimate_discrepancies
from sourcewise.estimators.regressor import SourceWeightedRegressor
from sourcewise.estimators.splitter import ReferenceKFold

__all__ = [
    "ReferenceKFold",
    "SourceDiscrepancies",
    "SourceWeightedClassifier",
    "SourceWeightedRegressor",
    "estimate_discrepancies",
]
