"""The audit: what weighted sources gain, and what is wrong with those that were set aside."""

from sourcewise.audit.column_kinds import FeatureShift
from sourcewise.audit.diagnosis import LabelRate, SourceCard
from sourcewise.audit.expected_errors import ErrorComparison, Expected
from sourcewise.audit.run import Audit, Settings, fit_table, run_audit

__all__ = [
    "Audit",
    "ErrorComparison",
    "Expected",
    "FeatureShift",
    "LabelRate",
    "Settings",
    "SourceCard",
    "fit_table",
    "run_audit",
]
