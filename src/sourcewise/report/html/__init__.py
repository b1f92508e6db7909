"""The report as one self-contained page."""

from sourcewise.report.html.page import render

__all__ = ["render"]
