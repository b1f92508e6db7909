"""sourcewise: learn from data sources you cannot vouch for."""

from sourcewise.core.bound import GeneralizationBound, generalization_bound
from sourcewise.core.weights import WeightPath, solve_weights, theory_trade_off, weight_path
from sourcewise.estimators import (
    ReferenceKFold,
    SourceDiscrepancies,
    SourceWeightedClassifier,
    SourceWeightedRegressor,
    estimate_discrepancies,
)
from sourcewise.persistence import load, save
from sourcewise.report import SourceReport
from sourcewise.tables import TableModel

__version__ = "0.1.0"

__all__ = [
    "GeneralizationBound",
    "ReferenceKFold",
    "SourceDiscrepancies",
    "SourceReport",
    "SourceWeightedClassifier",
    "SourceWeightedRegressor",
    "TableModel",
    "WeightPath",
    "estimate_discrepancies",
    "generalization_bound",
    "load",
    "save",
    "solve_weights",
    "theory_trade_off",
    "weight_path",
]
