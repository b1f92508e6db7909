"""A model together with the way its columns are read."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from sourcewise.report.source_report import SourceReport
from sourcewise.tables.preprocessing import TablePreprocessor, as_arrow


class TableModel(BaseEstimator):
    """A fitted model that takes raw tables: what ``sourcewise fit`` writes.

    Parameters
    ----------
    preprocessor : TablePreprocessor
        Turns columns into numbers, by rules learnt from the reference.
    model : SourceWeightedClassifier or SourceWeightedRegressor
        Takes those numbers.
    label, source : str
        Names of the columns that hold the labels and the sources.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=600)
    >>> made = TableModel(
    ...     TablePreprocessor(),
    ...     sw.SourceWeightedClassifier(reference="gold", random_state=0),
    ...     label="large",
    ...     source="vendor",
    ... ).fit(
    ...     pa.table(
    ...         {
    ...             "size": size,
    ...             "colour": rng.choice(["red", "blue"], 600),
    ...             "large": np.where(size > 0, "yes", "no"),
    ...             "vendor": np.repeat(["gold", "north", "south"], [100, 250, 250]),
    ...         }
    ...     )
    ... )
    >>> made.predict(pa.table({"size": [-2.0, 2.0], "colour": ["red", "green"]})).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        preprocessor: TablePreprocessor,
        model: Any,
        label: str = "label",
        source: str = "source",
    ):
        self.preprocessor = preprocessor
        self.model = model
        self.label = label
        self.source = source

    def fit(self, table: Any, y: Any = None) -> TableModel:
        """Fit both parts to a pyarrow table, or pandas or polars frame.

        Parameters
        ----------
        table : table with the columns ``label`` and ``source``, and those to predict from
        y : ignored
        """
        rows = as_arrow(table)
        names = rows.column(self.source).to_numpy()
        labels = rows.column(self.label).to_numpy()
        rows = rows.drop_columns([self.label, self.source])
        self.preprocessor.fit(rows.filter(names == self.model.reference))
        self.model.fit(self.preprocessor.transform(rows), labels, sources=names)
        return self

    def predict(self, table: Any) -> np.ndarray:
        """Prediction for each row of a pyarrow table, or pandas or polars frame."""
        return np.asarray(self.model.predict(self.preprocessor.transform(table)))

    def predict_proba(self, table: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        return np.asarray(self.model.predict_proba(self.preprocessor.transform(table)))

    def report(self) -> SourceReport:
        """Per source: weight, discrepancy, standard error, p-value, rows and reason."""
        report: SourceReport = self.model.report()
        return report

    @property
    def is_classifier(self) -> bool:
        """Whether predictions are classes."""
        return hasattr(self.model, "classes_")

    @property
    def classes_(self) -> np.ndarray:
        """The reference's labels."""
        return np.asarray(self.model.classes_)

    @property
    def sources_(self) -> np.ndarray:
        """Names of the sources, the reference first."""
        return np.asarray(self.model.sources_)

    @property
    def source_weights_(self) -> np.ndarray:
        """Weights, in the order of ``sources_``."""
        return np.asarray(self.model.source_weights_)

    def __sklearn_is_fitted__(self) -> bool:
        """Both parts are."""
        try:
            check_is_fitted(self.preprocessor)
            check_is_fitted(self.model)
        except NotFittedError:
            return False
        return True
