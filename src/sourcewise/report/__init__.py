"""What a fitted model says about its sources; reads fitted attributes only."""

from sourcewise.report.source_report import SourceReport

__all__ = ["SourceReport"]
