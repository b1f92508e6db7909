"""Other ways to learn from many sources: the paper's baselines, newer methods, and a comparison."""

from sourcewise.baselines.agreement_filter import AgreementFilter
from sourcewise.baselines.all_data import AllData
from sourcewise.baselines.base import fit_together
from sourcewise.baselines.comparison import Comparison, compare
from sourcewise.baselines.component_median import ComponentMedian
from sourcewise.baselines.fltrust import FLTrust
from sourcewise.baselines.geometric_median import GeometricMedian
from sourcewise.baselines.mixmin import MixMin
from sourcewise.baselines.oracle import Oracle
from sourcewise.baselines.pairwise_filter import PairwiseFilter
from sourcewise.baselines.probability_median import ProbabilityMedian
from sourcewise.baselines.reference_only import ReferenceOnly
from sourcewise.baselines.robust_logistic import RobustLogistic
from sourcewise.baselines.source_normalized import SourceNormalized

__all__ = [
    "AgreementFilter",
    "AllData",
    "Comparison",
    "ComponentMedian",
    "FLTrust",
    "GeometricMedian",
    "MixMin",
    "Oracle",
    "PairwiseFilter",
    "ProbabilityMedian",
    "ReferenceOnly",
    "RobustLogistic",
    "SourceNormalized",
    "compare",
    "fit_together",
]
