"""Tables of raw columns: reading them, turning them into numbers, models that take them."""

from sourcewise.tables.model import TableModel
from sourcewise.tables.preprocessing import TablePreprocessor
from sourcewise.tables.rules import ColumnRule

__all__ = ["ColumnRule", "TableModel", "TablePreprocessor"]
