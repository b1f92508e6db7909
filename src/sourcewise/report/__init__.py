"""What a fitted model says about its sources; reads fitted attributes only."""

from sourcewise.report.displays import (
    DiscrepancyDisplay,
    SourceWeightsDisplay,
    WeightPathDisplay,
)
from sourcewise.report.source_report import SourceReport

__all__ = [
    "DiscrepancyDisplay",
    "SourceReport",
    "SourceWeightsDisplay",
    "WeightPathDisplay",
]
