"""A model together with the way its columns are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sourcewise.estimators import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.progress import bars
from sourcewise.report.source_report import SourceReport
from sourcewise.tables.bad_rows import SkippedRows
from sourcewise.tables.preprocessing import TablePreprocessor
from sourcewise.tables.reading import Table, open_table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import TrainingTable, read_training

NO_ROWS_KEPT = (
    "The model does not keep which source its rows came from (it was saved without data); pass "
    "row_weights the table, or the name of every row's source."
)


# Of wider tables columns have numbers only in the notes of the report.
MOST_NAMED = 10_000


class TableModel(BaseEstimator):
    """A model of raw tables: files or frames with text, gaps and categories in them.

    It does what ``sourcewise fit`` does. How columns become numbers is learnt from the reference's
    rows alone; whether labels are classes or numbers is decided by the labels.

    Parameters
    ----------
    label, source : str
        Names of the columns that hold the labels and the sources.
    reference : str
        Value of the source column that names the trusted rows.
    features, drop, categories, text : sequence of str
        Columns to predict from (default: all others), to leave out, to take as categories even if
        they hold numbers, and of free text.
    dates : bool
        Turn dates into numbers instead of refusing them.
    skip_bad_rows : bool
        Leave out rows without a usable label or with rubbish in a number, and hold them against
        their source (``skipped_``), instead of refusing the table.
    task : {"auto", "classification", "regression"}
    min_rows : int
        Sources with fewer rows are left out.
    estimator, discrepancy, trade_off, cv, protocol, scaling, n_jobs, random_state
        As in :class:`sourcewise.SourceWeightedClassifier`, and so are ``keep_data``, ``strict`` and
        ``verbose``.

    Attributes
    ----------
    preprocessor_ : TablePreprocessor
        Turns columns into numbers.
    model_ : SourceWeightedClassifier or SourceWeightedRegressor
        Takes those numbers.
    skipped_ : tuple of SkippedRows
        Rows that were left out, by source.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=600)
    >>> table = pa.table(
    ...     {
    ...         "size": size,
    ...         "colour": rng.choice(["red", "blue"], 600),
    ...         "large": np.where(size > 0, "yes", "no"),
    ...         "vendor": np.repeat(["gold", "north", "south"], [100, 250, 250]),
    ...     }
    ... )
    >>> made = sw.TableModel(label="large", source="vendor", reference="gold").fit(table)
    >>> made.predict(pa.table({"size": [-2.0, 2.0], "colour": ["red", "green"]})).tolist()
    ['no', 'yes']
    >>> made.row_weights().shape
    (600,)
    """

    def __init__(
        self,
        label: str = "label",
        source: str = "source",
        reference: str = "reference",
        *,
        features: Sequence[str] = (),
        drop: Sequence[str] = (),
        categories: Sequence[str] = (),
        text: Sequence[str] = (),
        dates: bool = False,
        skip_bad_rows: bool = False,
        task: str = "auto",
        min_rows: int = 1,
        estimator: Any = None,
        discrepancy: str = "combined",
        trade_off: str | float = "cv",
        cv: int = 5,
        protocol: str | None = None,
        scaling: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = 0,
        keep_data: bool = True,
        strict: bool = False,
        verbose: bool = False,
    ):
        self.label = label
        self.source = source
        self.reference = reference
        self.features = features
        self.drop = drop
        self.categories = categories
        self.text = text
        self.dates = dates
        self.skip_bad_rows = skip_bad_rows
        self.task = task
        self.min_rows = min_rows
        self.estimator = estimator
        self.discrepancy = discrepancy
        self.trade_off = trade_off
        self.cv = cv
        self.protocol = protocol
        self.scaling = scaling
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.keep_data = keep_data
        self.strict = strict
        self.verbose = verbose

    def fit(self, table: Any, y: Any = None, *, reference_table: Any = None) -> TableModel:
        """Fit to a table: a path, or a frame of pandas, polars or pyarrow.

        Parameters
        ----------
        table : table with the columns ``label`` and ``source``, and those to predict from
        y : ignored
        reference_table : path or frame, optional
            The trusted rows, if they are in a table of their own; it needs no source column.
        """
        with bars(self.verbose):
            return self.fit_training(read_training(self._request(table, reference_table)))

    def _request(self, table: Any, reference_table: Any) -> TableRequest:
        lists = ("features", "drop", "categories", "text")
        values = ("label", "source", "reference", "dates", "task", "min_rows", "skip_bad_rows")
        given = {name: getattr(self, name) for name in values}
        given |= {name: _listed(getattr(self, name)) for name in lists}
        return TableRequest(table, reference_file=reference_table, **given)

    def fit_training(self, training: TrainingTable) -> TableModel:
        """Fit to a table that has been read."""
        model = self.make_model(training)
        model.fit(training.X, training.y, sources=training.name_of_row)
        codes = training.row_codes if self.keep_data else None
        return self.take(training.preprocessor, model, training.skipped, codes)

    def take(
        self,
        preprocessor: TablePreprocessor,
        model: Any,
        skipped: tuple[SkippedRows, ...] = (),
        row_codes: np.ndarray | None = None,
    ) -> TableModel:
        """Take parts that have been fitted elsewhere."""
        self.preprocessor_ = preprocessor
        self.model_ = model
        # For the notes of the report; words of trusted rows stay out of files.
        if not preprocessor.is_sparse_ and preprocessor.n_features_out_ <= MOST_NAMED:
            model._column_words = preprocessor.get_feature_names_out().tolist()
        self.skipped_ = skipped
        self._row_codes = row_codes
        return self

    def make_model(self, training: TrainingTable) -> Any:
        """Return an unfitted estimator for the numbers of a table."""
        kind = SourceWeightedClassifier if training.classification else SourceWeightedRegressor
        return kind(
            self.estimator,
            reference=training.names[0],
            discrepancy=self.discrepancy,
            trade_off=self.trade_off,
            cv=self.cv,
            protocol=self.protocol,
            scaling=self.scaling,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            keep_data=self.keep_data,
            strict=self.strict,
        )

    def predict(self, table: Any) -> np.ndarray:
        """Prediction for each row of a path, or of a frame of pandas, polars or pyarrow."""
        return np.asarray(self.model_.predict(self._features(table)))

    def predict_proba(self, table: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        return np.asarray(self.model_.predict_proba(self._features(table)))

    def _features(self, table: Any) -> Any:
        check_is_fitted(self)
        return self.preprocessor_.transform(self._raw(table, self.preprocessor_.columns_))

    def _raw(self, table: Any, columns: list[str]) -> Any:
        """Raw columns of a table, whatever it is in."""
        import pyarrow as pa

        opened = self.open_table(table)
        opened.check_columns(columns)
        return pa.Table.from_batches([batch for _, batch in opened.batches(columns)])

    def open_table(self, table: Any) -> Table:
        """Open a table as the one that was fitted was opened."""
        as_text = [*self.preprocessor_.categories, *self.preprocessor_.text]
        return open_table(table, as_text=as_text)

    def report(self) -> SourceReport:
        """Per source: weight, discrepancy, standard error, p-value, rows and reason."""
        check_is_fitted(self)
        report: SourceReport = self.model_.report()
        return report

    def row_weights(self, rows: Any = None) -> np.ndarray:
        """One weight a row for any other trainer: mean 1 over the rows that were fitted.

        Parameters
        ----------
        rows : table, or array of names of sources, optional
            Default: the table that was fitted, in its order (with a table of trusted rows of their
            own, those come last). Rows that were left out have the weight zero.
        """
        check_is_fitted(self)
        if rows is None:
            if self._row_codes is None:
                raise ValueError(NO_ROWS_KEPT)
            weights = np.append(self.model_.row_weights(self.sources_), 0.0)
            return np.asarray(weights[self._row_codes])
        if isinstance(rows, str | Path) or hasattr(rows, "columns"):
            rows = self._raw(rows, [self.source]).column(self.source).to_numpy()
        return np.asarray(self.model_.row_weights(rows))

    @property
    def is_classifier(self) -> bool:
        """Whether predictions are classes."""
        return hasattr(self.model_, "classes_")

    @property
    def classes_(self) -> np.ndarray:
        """The reference's labels."""
        return np.asarray(self.model_.classes_)

    @property
    def sources_(self) -> np.ndarray:
        """Names of the sources, the reference first."""
        return np.asarray(self.model_.sources_)

    @property
    def source_weights_(self) -> np.ndarray:
        """Weights, in the order of ``sources_``."""
        return np.asarray(self.model_.source_weights_)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a fitted model."""
        return hasattr(self, "model_")


def _listed(names: Any) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
