"""Tables of raw columns: reading them, turning them into numbers, models that take them."""

from sourcewise.tables.model import TableModel
from sourcewise.tables.preprocessing import ColumnRule, TablePreprocessor

__all__ = ["ColumnRule", "TableModel", "TablePreprocessor"]
