"""sourcewise: learn from data sources you cannot vouch for."""

__version__ = "0.1.0"
