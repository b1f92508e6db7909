"""What the baselines share: the main estimators' input, a linear model's output, words."""

from __future__ import annotations

import numbers
import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from textwrap import indent
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import ClassifierMixin

from sourcewise.baselines.shared_fits import SharedFits, Trained
from sourcewise.core.choices import Choices
from sourcewise.core.logistic import probabilities
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.core.threads import one_blas_thread
from sourcewise.estimators.input import SourceInput, forget_fit, unchanged_on_failure

SPARSE_REFUSED = (
    "{method} does not take a sparse X{some}, which it would have to make dense; pass X.toarray() "
    "if that fits into memory."
)


class Baseline(ClassifierMixin, SourceInput):
    """Linear classifier from many sources; subclasses say how in ``_fit``."""

    def __init__(
        self,
        *,
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        self.reference = reference
        self.cv = cv
        self.protocol = protocol
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sources: Any = None, sample_weight: Any = None) -> Any:
        """Train on the rows of all sources.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sources : array of shape (n_rows,), optional
            Name of each row's source; one of them is the reference. None: all rows are trusted.
        sample_weight : array of shape (n_rows,), optional
            How much a row counts within its source; only ratios within a source matter.

        Returns
        -------
        self
        """
        fit_together({"": self}, X, y, sources=sources, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        return self._probabilities(self._check_new_features(X))

    def _probabilities(self, X: np.ndarray) -> np.ndarray:
        return probabilities(np.asarray(X @ self.coef_.T + self.intercept_))

    def __sklearn_tags__(self) -> Any:
        """Say whether sparse rows are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._most_sparse_rows > 0
        return tags

    def _choices(self) -> Choices:
        # Placeholders only are cut off: normalising each source by itself needs rows in other units
        # as they are.
        return replace(super()._choices(), largest=1e6, without_copies=False)

    # -- for subclasses ----------------------------------------------------------------------

    _most_sparse_rows: ClassVar[float] = np.inf  # that the method can take

    def _check_parameters(self, names: list[Any]) -> None:
        """Check the parameters that a method has of its own."""

    def takes_sparse(self, n_rows: int) -> bool:
        """Whether so many sparse rows can be fitted without making them dense."""
        return n_rows <= self._most_sparse_rows

    def _check_sparse(self, work: SharedFits) -> None:
        """Refuse sparse rows that the method would have to make dense."""
        X = work.pool.data.X
        if isinstance(X, SparseRows) and not self.takes_sparse(len(X)):
            some = f" of more than {self._most_sparse_rows} rows" if self._most_sparse_rows else ""
            raise ValueError(SPARSE_REFUSED.format(method=type(self).__name__, some=some))

    def _weigh(self, work: SharedFits) -> np.ndarray | None:
        """Source weights to train with, for all rows and without each fold, or None."""
        return None

    def _fit(self, work: SharedFits) -> None:
        """Set the fitted attributes, for a method that does not train on weighted sources."""
        raise AssertionError("a baseline weighs sources or fits in a way of its own")

    def _set_trained(self, work: SharedFits, trained: Trained, weights: np.ndarray) -> None:
        self.C_ = trained.C
        self.source_weights_ = weights[0]
        self._set_linear(work, trained.model)

    def _set_linear(self, work: SharedFits, model: np.ndarray) -> None:
        assert work.pool.features is not None
        self.coef_, self.intercept_ = work.pool.features.unmap(np.asarray(model, dtype=np.float64))


def fit_together(
    models: Mapping[Any, Baseline],
    X: Any,
    y: Any,
    *,
    sources: Any = None,
    sample_weight: Any = None,
) -> None:
    """Fit several baselines to the same rows; what they have in common is computed once.

    Each model is fitted as by its own ``fit``, up to the solver's tolerance. Local models are
    shared, and all that train on weighted sources do so in one batch. That needs equal
    ``reference``, ``cv``, ``protocol`` and (integer) ``random_state``.

    Parameters
    ----------
    models : mapping of baselines
    X, y, sources, sample_weight
        As for ``fit``.

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.baselines import AllData, ReferenceOnly, fit_together
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> models = {"all": AllData(random_state=0), "trusted": ReferenceOnly(random_state=0)}
    >>> fit_together(models, X, X[:, 0] > 0, sources=np.repeat(["reference", "other"], 150))
    >>> models["all"].source_weights_, models["trusted"].source_weights_
    (array([0.5, 0.5]), array([1., 0.]))
    """
    groups: dict[str, list[Baseline]] = {}
    for position, model in enumerate(models.values()):
        shared = isinstance(model.random_state, (int, np.integer))
        same_rows = (type(model.reference), model.reference, model.cv, model.protocol)
        same_folds = (model.random_state if shared else None, 0 if shared else position)
        groups.setdefault(repr(same_rows + same_folds), []).append(model)
    for group in groups.values():
        with one_blas_thread():
            _fit_group(group, X, y, sources, sample_weight)


def _fit_group(models: list[Baseline], X: Any, y: Any, sources: Any, sample_weight: Any) -> None:
    with ExitStack() as undo:
        for model in models:
            undo.enter_context(unchanged_on_failure(model))
        first = models[0]
        work = SharedFits(first._prepare(X, y, sources, sample_weight))
        learnt = {k: v for k, v in vars(first).items() if k[-1] == "_" or k in ("_seed", "_task")}
        weightings = []
        for model in models:
            forget_fit(model)
            model.__dict__.update(learnt)
            model.sources_ = work.pool.names_array
            model.reference_index_ = work.pool.data.reference
            model._check_parameters(work.pool.names)
            model._check_sparse(work)
            weightings.append(model._weigh(work))
        trained = iter(work.train_all([w for w in weightings if w is not None]))
        for model, weights in zip(models, weightings, strict=True):
            if weights is None:
                model._fit(work)
            else:
                model._set_trained(work, next(trained), weights)


def check_C(C: Any, *, chosen: bool) -> None:
    """Check the local models' regularisation."""
    if chosen and isinstance(C, str) and C == "cv":
        return
    real = isinstance(C, numbers.Real) and not isinstance(C, bool)
    if not real or not 0 < C < np.inf:
        what = "'cv' or a positive number" if chosen else "a positive number"
        raise ValueError(f"C must be {what}; got {C!r}.")


class OfLocalModels(Baseline):
    """Baseline made of local models, whose regularisation may be the best for the reference."""

    def __init__(
        self,
        *,
        C: float | str = "cv",
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.C = C

    def _check_parameters(self, names: list[Any]) -> None:
        check_C(self.C, chosen=True)


class MedianOfModels(Baseline):
    """Baseline made of local models of one fixed regularisation."""

    def __init__(
        self,
        *,
        C: float = 100.0,
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.C = C

    def _check_parameters(self, names: list[Any]) -> None:
        check_C(self.C, chosen=False)


# -- what the docstrings of several baselines say in the same words -----------------------------


Class = TypeVar("Class", bound=type)

ENTRIES = {
    # -- parameters ------------------------------------------------------------------------------
    "reference": """\
reference : hashable, default "reference"
    Name of the trusted source.""",
    "cv": """\
cv : int
    Folds of the reference, at least 3; C is chosen on them.""",
    "protocol": """\
protocol : None or "paper"
    None: features centred and scaled by the reference, C from 1e-3 to 1e2 by log-loss.
    "paper": features as given with a penalised constant, C from 1e-4 to 1e4 by error rate.""",
    "random_state": """\
random_state : int, RandomState or None
    Splits rows into folds.""",
    "local_C": """\
C : float or "cv"
    Inverse regularisation of the local models; "cv" takes the best for the reference alone.""",
    # -- attributes ------------------------------------------------------------------------------
    "sources_": """\
classes_ : array of shape (n_classes,)
    The reference's labels.
sources_ : array of shape (n_sources,)
    Names, in order of first appearance.""",
    "coef_": """\
coef_, intercept_
    In the units of ``X``.""",
    "C_": """\
C_ : float
    The regularisation chosen.""",
    # -- the method ------------------------------------------------------------------------------
    "local_models": """\
The local models are logistic regressions on one source each, with one fixed C (the authors'
choice); the reference's own is one of them, and a source that shows one class only has the
constant model of log-odds 1 for that class, whatever the features.""",
    # -- examples --------------------------------------------------------------------------------
    "vendors": """\
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(700, 5))
>>> y = (X[:, 0] + X[:, 1] > 0).astype(int)
>>> vendor = np.repeat(["gold", "careful", "careless"], [100, 300, 300])""",
}
ENTRIES |= {
    "parameters": "\n".join(ENTRIES[k] for k in ("reference", "cv", "protocol", "random_state")),
    # Where nothing is cross-validated.
    "parameters_of_medians": f"""\
C : float
    Inverse regularisation of the local models; 100 in the authors' experiments.
{ENTRIES["reference"]}
cv : int
    Folds of the reference, at least 3; not used, but every baseline takes it.
protocol : None or "paper"
    None: features centred and scaled by the reference. "paper": features as given with a
    penalised constant.
random_state : int, RandomState or None
    Not used, but every baseline takes it.""",
    "trained": f"{ENTRIES['coef_']}\n{ENTRIES['C_']}",
    "noise": f"""\
{ENTRIES["vendors"]}
>>> y[400:] = rng.permutation(y[400:])  # the careless vendor's labels are noise""",
    "flipped": f"""\
{ENTRIES["vendors"]}
>>> y[400:] = 1 - y[400:]  # the careless vendor has them the wrong way round""",
}


def with_shared_entries(cls: Class) -> Class:
    """Replace each line ``%(name)s`` in the docstring of a class by the entry of that name.

    Examples
    --------
    >>> @with_shared_entries
    ... class Method:
    ...     '''A method.
    ...
    ...     Attributes
    ...     ----------
    ...     %(C_)s
    ...     '''
    >>> help(Method)
    Help on class Method ...
     |  Attributes
     |  ----------
     |  C_ : float
     |      The regularisation chosen.
     ...
    """

    def entry(line: re.Match[str]) -> str:
        return indent(ENTRIES[line["name"]], line["margin"])

    if cls.__doc__ is not None:  # python -OO drops docstrings
        cls.__doc__ = re.sub(r"^(?P<margin> *)%\((?P<name>\w+)\)s$", entry, cls.__doc__, flags=re.M)
    return cls
