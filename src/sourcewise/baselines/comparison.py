"""Does weighting the sources help on these data? All methods, judged on trusted rows only."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

import numpy as np
import scipy.sparse
from sklearn.base import is_regressor
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.multiclass import type_of_target

from sourcewise import validation
from sourcewise.baselines.agreement_filter import AgreementFilter
from sourcewise.baselines.all_data import AllData
from sourcewise.baselines.base import Baseline, fit_together
from sourcewise.baselines.component_median import ComponentMedian
from sourcewise.baselines.fltrust import FLTrust
from sourcewise.baselines.geometric_median import GeometricMedian
from sourcewise.baselines.mixmin import MixMin
from sourcewise.baselines.one_fit import LinearDefault, OneFit, OneFitRegressor, are_numbers
from sourcewise.baselines.pairwise_filter import PairwiseFilter
from sourcewise.baselines.probability_median import ProbabilityMedian
from sourcewise.baselines.reference_only import ReferenceOnly
from sourcewise.baselines.robust_logistic import RobustLogistic
from sourcewise.baselines.source_normalized import SourceNormalized
from sourcewise.core.folds import independent_share
from sourcewise.core.mixture import DEFAULT_LEARNER
from sourcewise.estimators.classifier import SourceWeightedClassifier
from sourcewise.estimators.fitting import unfitted_clone
from sourcewise.estimators.regressor import SourceWeightedRegressor
from sourcewise.estimators.splitter import ReferenceKFold
from sourcewise.extras import import_extra
from sourcewise.report.source_report import PANDAS_MISSING
from sourcewise.safe_text import cut

DEFAULT = "sourcewise"
METHODS: dict[str, Any] = {
    DEFAULT: SourceWeightedClassifier,
    "reference only": ReferenceOnly,
    "all data": AllData,
    "geometric median": GeometricMedian,
    "component median": ComponentMedian,
    "probability median": ProbabilityMedian,
    "robust logistic": RobustLogistic,
    "source normalized": SourceNormalized,
    "MixMin": MixMin,
    "FLTrust": FLTrust,
    "agreement filter": AgreementFilter,
    "pairwise filter": PairwiseFilter,
}
# Of numbers. Trade-offs at the ends are the reference alone, and all rows alike.
NUMBER_METHODS: dict[str, Any] = {
    DEFAULT: SourceWeightedRegressor,
    "reference only": partial(SourceWeightedRegressor, trade_off=0.0),
    "all data": partial(SourceWeightedRegressor, trade_off=np.inf),
}
REAL_NUMBERS = (
    "y holds real numbers, and the methods are classifiers; pass a regressor, or turn the numbers "
    "into classes."
)
NAME_WIDTH, NUMBER_WIDTH = 30, 7
N_SPLITS = 5


@dataclass(frozen=True)
class Comparison:
    """Errors of several methods on the same held-out reference rows.

    Attributes
    ----------
    methods : tuple of str
        Names; the first is the one that the others are compared with.
    losses : array of shape (n_methods, n_reference_rows)
        1 where the method got a held-out row wrong; of numbers, its squared error, in units of the
        variance of the reference's targets.
    numbers : bool
        Whether numbers were predicted, and not classes.
    n_splits : int
        Folds that the rows were held out in.

    Examples
    --------
    >>> from sourcewise.baselines import compare
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> found = compare(
    ...     digits.X,
    ...     digits.y,
    ...     sources=digits.vendor,
    ...     reference="gold",
    ...     methods=["all data"],
    ...     random_state=0,
    ... )
    >>> found.methods
    ('sourcewise', 'all data')
    >>> bool(found.errors[0] < found.errors[1])
    True
    """

    methods: tuple[str, ...]
    losses: np.ndarray
    numbers: bool = False
    n_splits: int = N_SPLITS

    @property
    def errors(self) -> np.ndarray:
        """Share of held-out rows that each method gets wrong, or mean squared error."""
        return np.asarray(self.losses.mean(axis=1))

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the errors: over reference rows, and counting that models share training rows."""
        return self._standard_errors(self.losses)

    @property
    def differences(self) -> np.ndarray:
        """Error minus that of the first method, on the same rows: positive is worse."""
        return np.asarray(self.errors - self.errors[0])

    @property
    def difference_standard_errors(self) -> np.ndarray:
        """Of the paired differences; they are smaller than the errors' own would suggest."""
        return self._standard_errors(self.losses - self.losses[0])

    def _standard_errors(self, values: np.ndarray) -> np.ndarray:
        rows = independent_share(self.n_splits) * values.shape[1]
        return np.asarray(values.std(axis=1, ddof=1) / np.sqrt(rows))

    def to_frame(self) -> Any:
        """One row a method, as a pandas frame."""
        pandas = import_extra("pandas", "report", PANDAS_MISSING)
        return pandas.DataFrame(
            {
                "method": self.methods,
                "error": self.errors,
                "standard_error": self.standard_errors,
                "difference": self.differences,
                "difference_standard_error": self.difference_standard_errors,
            }
        )

    def __str__(self) -> str:
        """Table of at most 80 columns."""
        lines = [
            f"{'method':<{NAME_WIDTH}} {'error':>7} {'± s.e.':>7}  "
            f"{'minus ' + cut(self.methods[0], 14):>20} {'± s.e.':>7}"
        ]
        rows = zip(
            self.methods,
            self.errors,
            self.standard_errors,
            self.differences,
            self.difference_standard_errors,
            strict=True,
        )
        for k, (name, error, spread, difference, paired) in enumerate(rows):
            line = f"{cut(name, NAME_WIDTH):<{NAME_WIDTH}} {_fit(error)} {_fit(spread)}"
            lines.append(line + (f"  {difference:>+20.4f} {_fit(paired)}" if k else ""))
        n_rows = self.losses.shape[1]
        if self.numbers:
            lines.append(f"mean squared error of {n_rows} held-out reference rows (variance = 1)")
        else:
            lines.append(f"share of {n_rows} held-out reference rows predicted wrongly")
        return "\n".join(lines)


def compare(
    X: Any,
    y: Any,
    *,
    sources: Any,
    reference: Any = "reference",
    methods: str | Sequence[str] | Mapping[str, Any] = "all",
    n_splits: int = N_SPLITS,
    cv: int = 5,
    protocol: str | None = None,
    estimator: Any = None,
    random_state: Any = None,
    verbose: bool | None = None,
) -> Comparison:
    """Compare methods by nested evaluation on the reference.

    Trusted rows are held out in turn; every method sees the other trusted rows and all untrusted
    ones, and makes its own choices (weights, regularisation) by cross-validation among the trusted
    rows it sees. Errors are counted on the held-out rows only, since no other labels are trusted.

    Numbers are compared by their mean squared error, in units of the variance of the reference's
    targets: knowing nothing costs about 1. Real numbers that are not whole are always taken for
    numbers, whole ones if the ``estimator`` or one of the ``methods`` is a regressor.

    Standard errors are about fresh rows: they count that the models of all folds share training
    rows (Nadeau and Bengio 2003), as the intervals of an audit do.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        Class labels or numbers.
    sources : array of shape (n_rows,)
        Name of each row's source.
    reference : hashable
        Name of the trusted source.
    methods : "all", list of names, or dict of name to estimator
        Names as in the result of "all" (of a sparse ``X``, those that take it), or of the classes
        ("AllData"). The default,
        ``"sourcewise"``, is always there and comes first, as the others are compared with it; a
        dict may hold another estimator of that name. Estimators are cloned; they take
        ``fit(X, y, sources=...)``. Of numbers there are the default learner by itself,
        ``"reference only"`` and ``"all data"``; the other methods know classes only.
    n_splits : int
        Outer folds.
    cv, protocol
        For the methods asked for by name: inner folds, and None or "paper".
    estimator : scikit-learn classifier or regressor, optional
        A learner of your own. The methods are then ``"sourcewise"`` with it, ``"linear default"``
        (where rows are numbers; missing ones are filled by the reference's medians), and it by
        itself: ``"reference only"``, ``"all data"``, and ``"all data, source as a feature"``, which
        predicts as for the reference.
    random_state : int, RandomState or None
        Splits rows into outer and inner folds.
    verbose : bool, optional
        Show progress on standard error; by default if that is a terminal.

    Returns
    -------
    Comparison
        Print it, or ask for ``to_frame()``.

    Examples
    --------
    >>> from sourcewise.baselines import compare
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits(n_bad=8, kind="flipped", random_state=0)
    >>> result = compare(
    ...     digits.X, digits.y, sources=digits.vendor, reference="gold",
    ...     methods=["reference only", "all data"], random_state=0,
    ... )
    >>> result.methods
    ('sourcewise', 'reference only', 'all data')
    >>> bool(result.differences[2] > 3 * result.difference_standard_errors[2])
    True
    """
    rng = check_random_state(random_state)
    outer, inner = (int(seed) for seed in rng.randint(2**31 - 1, size=2))
    X, y = validation.indexable_rows(X), np.asarray(y)
    names, codes = validation.check_source_names(sources, validation.n_rows_of(X))
    validation.check_same_length(X, y)
    trusted = np.flatnonzero(codes == validation.check_reference(names, reference))
    numbers = _wants_numbers(y[trusted], estimator, methods)
    known = NUMBER_METHODS if numbers else METHODS
    options = {"reference": reference, "cv": cv, "protocol": protocol, "random_state": inner}
    if estimator is not None:
        known = _methods_of(estimator)
    models = _models(methods, known, options)
    if isinstance(methods, str) and methods == "all":
        models = {name: model for name, model in models.items() if _takes(model, X)}
        if estimator is not None and not are_numbers(X):
            del models[DEFAULT_LEARNER]
    if numbers:
        y = validation.check_targets(y, codes, names, numbers=True).astype(np.float64)
        unit = float(np.var(y[trusted])) or 1.0
    else:
        _check_classes(y[trusted], reference)
    labels = np.array([names[code] for code in codes], dtype=object)
    splitter = ReferenceKFold(n_splits, reference=reference, random_state=outer)
    losses = np.full((len(models), len(y)), np.nan)
    with _Progress(n_splits, verbose) as progress:
        for train, test in splitter.split(X, None if numbers else y, sources=labels):
            fresh = {name: unfitted_clone(model) for name, model in models.items()}
            data = _safe_indexing(X, train), y[train]
            fit_together(
                {name: model for name, model in fresh.items() if isinstance(model, Baseline)},
                *data,
                sources=labels[train],
            )
            for k, model in enumerate(fresh.values()):
                if not isinstance(model, Baseline):
                    model.fit(*data, sources=labels[train])
                predicted = model.predict(_safe_indexing(X, test))
                losses[k, test] = (
                    (predicted - y[test]) ** 2 / unit if numbers else predicted != y[test]
                )
            progress.advance()
    return Comparison(tuple(models), losses[:, trusted], numbers, n_splits)


def _wants_numbers(labels: np.ndarray, estimator: Any, methods: Any) -> bool:
    """Whether numbers are to be predicted; what estimators say counts for more than labels do."""
    given = list(methods.values()) if isinstance(methods, Mapping) else []
    given += [] if estimator is None else [estimator]
    if given:
        return any(is_regressor(model) for model in given)
    return str(type_of_target(labels)).startswith("continuous")


def _methods_of(estimator: Any) -> dict[str, Any]:
    """Methods for an estimator of the user's own, as functions of the options."""
    weighted: Any = SourceWeightedClassifier
    one_fit: Any = OneFit
    if is_regressor(estimator):
        weighted, one_fit = SourceWeightedRegressor, OneFitRegressor

    def alone(rows: str) -> Any:
        return lambda reference, random_state, **_: one_fit(
            estimator, rows=rows, reference=reference, random_state=random_state
        )

    return {
        DEFAULT: partial(weighted, estimator),
        DEFAULT_LEARNER: lambda **given: LinearDefault(weighted(**given)),
        "reference only": alone("reference"),
        "all data": alone("all"),
        "all data, source as a feature": alone("told"),
    }


def _models(methods: Any, known: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    if isinstance(methods, Mapping):
        first = methods.get(DEFAULT)
        if first is None:
            first = known[DEFAULT](**options)
        return {DEFAULT: first, **methods}
    names = list(known) if isinstance(methods, str) and methods == "all" else methods
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Sequence):
        raise ValueError(
            f"methods must be 'all', a list of names or a dict of name to estimator; got {names!r}."
        )
    classes = {getattr(kind, "__name__", name): name for name, kind in known.items()}
    names = [classes.get(name, name) if isinstance(name, str) else name for name in names]
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise ValueError(
                f"There is no method {name!r}; choose among {', '.join(map(repr, known))}, or "
                "pass a dict of name to estimator."
            )
    return {name: known[name](**options) for name in dict.fromkeys([DEFAULT, *names])}


def _takes(model: Any, X: Any) -> bool:
    """Whether a method can be asked for these rows, if they are sparse."""
    return not (scipy.sparse.issparse(X) and isinstance(model, Baseline)) or model.takes_sparse(
        X.shape[0]
    )


def _check_classes(labels: np.ndarray, reference: Any) -> None:
    if type_of_target(labels).startswith("continuous"):
        raise ValueError(REAL_NUMBERS)
    classes, counts = np.unique(labels, return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            f"The reference {reference!r} has a single row of class "
            f"{classes[[counts.argmin()]].tolist()[0]!r}, so it cannot be both trained on and held "
            "out; add trusted rows of that class or drop it."
        )


def _fit(value: float) -> str:
    """Right-align a number, shortened where it is too large for its column."""
    text = f"{value:.4f}"
    return f"{text if len(text) <= NUMBER_WIDTH else format(value, '.1e'):>{NUMBER_WIDTH}}"


class _Progress:
    """One line on standard error that is overwritten as folds finish."""

    def __init__(self, total: int, verbose: bool | None, stream: TextIO | None = None):
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if verbose is None else verbose
        self.total = total
        self.done = 0

    def __enter__(self) -> _Progress:
        self._show()
        return self

    def advance(self) -> None:
        """One more fold is done."""
        self.done += 1
        self._show()

    def _show(self) -> None:
        if self.shown:
            bar = "#" * self.done + "." * (self.total - self.done)
            self.stream.write(f"\rcomparing [{bar}] {self.done} of {self.total} folds")
            self.stream.flush()

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.stream.write("\n")
            self.stream.flush()
