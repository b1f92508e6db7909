"""A fitted model as plain state, and back: what goes into a file, and what is left out.

A file names our public classes only. What they keep besides is written as its parts, arrays,
numbers and texts, under a name of its own that stays when a class is renamed or moved.
"""

from __future__ import annotations

import copy
from dataclasses import fields, replace
from typing import Any

from sklearn.base import BaseEstimator, clone

from sourcewise.core.copies import Copies
from sourcewise.core.discrepancy.methods import Measured
from sourcewise.core.discrepancy.power import LabelTest
from sourcewise.core.discrepancy.result import Discrepancies, Witness
from sourcewise.estimators.adequacy import PartPower
from sourcewise.estimators.averaged import AveragedClassifier, AveragedRegressor, Member
from sourcewise.estimators.closer_look import Seen
from sourcewise.estimators.fitting import ToldSources
from sourcewise.estimators.pool import Training
from sourcewise.estimators.rows import FilledRows, Rows
from sourcewise.estimators.selection import Selection
from sourcewise.estimators.task import Classes, Numbers
from sourcewise.tables.bad_rows import SkippedRows
from sourcewise.tables.preprocessing import TablePreprocessor
from sourcewise.tables.rules import ColumnRule

# What a fitted model may hold that is no public class, by its name in files.
RECORDS: dict[str, type] = {
    "average of classifiers": AveragedClassifier,
    "average of regressors": AveragedRegressor,
    "classes": Classes,
    "column": ColumnRule,
    "columns": TablePreprocessor,
    "copies": Copies,
    "discrepancies": Discrepancies,
    "filling": FilledRows,
    "label test": LabelTest,
    "measurements": Measured,
    "member": Member,
    "numbers": Numbers,
    "part": PartPower,
    "rows": Rows,
    "seen": Seen,
    "selection": Selection,
    "skipped rows": SkippedRows,
    "source as a feature": ToldSources,
    "training": Training,
    "witness": Witness,
}
NAMES = {kind: name for name, kind in RECORDS.items()}
RECORD = "sourcewise record"  # the key under which a record's parts have its name
NOT_A_RECORD = "There is no record {name!r}."

NOT_ROWS = (
    "include_data=True cannot store the training rows, because they are a {kind} and a model file "
    "holds arrays only; save without include_data, or fit on an array."
)

NOT_HERE = (
    "include_data=True cannot store the training rows, because they are not here: the model was "
    "fitted to sources elsewhere; save without include_data."
)


def is_ours(model: Any) -> bool:
    """Whether an estimator is one of ours, or derived from one."""
    return isinstance(model, BaseEstimator) and any(
        base.__module__.startswith("sourcewise.") for base in type(model).__mro__
    )


class Portable:
    """Copies of what has to change on its way into a file; all else is shared with the original.

    Training rows are left out (unless asked for), wherever in the model an estimator keeps them,
    and so are metadata requests: they name the estimator they belong to, a cycle that skops
    cannot write.
    """

    def __init__(self, include_data: bool):
        self.include_data = include_data
        # By identity, with the original, so that it lives and its identity is not used again.
        self.seen: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        """Return the value, or a copy of it if something in it had to change."""
        if not isinstance(value, BaseEstimator | list | tuple | dict) and type(value) not in NAMES:
            return value
        if id(value) not in self.seen:
            self.seen[id(value)] = value, value  # ends a cycle
            self.seen[id(value)] = value, self._convert(value)
        return self.seen[id(value)][1]

    def _convert(self, value: Any) -> Any:
        if type(value) in NAMES:
            return {RECORD: NAMES[type(value)], **self._parts(value)}
        if isinstance(value, BaseEstimator):
            return self._estimator(value)
        if isinstance(value, dict):
            changed = {k: new for k, v in value.items() if (new := self(v)) is not v}
            if not changed:
                return value
            twin = copy.copy(value)
            twin.update(changed)
            return twin
        items = [self(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same or type(value) not in (list, tuple) else type(value)(items)

    def _parts(self, record: Any) -> dict[str, Any]:
        if isinstance(record, BaseEstimator):
            return dict(vars(self._estimator(record)))
        if isinstance(record, Rows):
            return self(record.__getstate__())  # type: ignore[no-any-return]
        return {field.name: self(getattr(record, field.name)) for field in fields(record)}

    def _estimator(self, model: BaseEstimator) -> Any:
        if getattr(model, "_training", None) is not None:
            model.discrepancy_result_  # noqa: B018 (p-values are computed while the rows are there)
        attributes = {k: v for k, v in vars(model).items() if k != "_metadata_request"}
        changed = {
            name: new
            for name, value in attributes.items()
            if (new := self(self._own(name, value) if is_ours(model) else value)) is not value
        }
        if is_ours(model) and vars(model).get("_seen", ()) is None:  # as long as the rows are there
            changed["_seen"] = self(model._looked_closer())
        if not changed and len(attributes) == len(vars(model)):
            return model
        twin = copy.copy(model)
        vars(twin).update(changed)
        vars(twin).pop("_metadata_request", None)
        return twin

    def _own(self, name: str, value: Any) -> Any:
        """Attribute of an estimator of ours, as it should be stored."""
        if name == "_training" and value is not None:
            if not self.include_data:
                return None
            if value.elsewhere:
                raise ValueError(NOT_HERE)
            if hasattr(value.rows.X, "columns"):
                raise ValueError(NOT_ROWS.format(kind=type(value.rows.X).__name__))
            return replace(value, features=None)  # it is learnt again from the rows
        if name == "_measured" and not self.include_data:  # nor what later fits would need
            return replace(value, without_fold=value.without_fold[:0], linear=None)
        if name == "_row_codes" and not self.include_data:
            return None
        if name == "estimator" and isinstance(value, BaseEstimator):
            # A template: if it happens to be fitted, what it has learnt does not belong in here.
            return clone(value)
        return value


def restored(value: Any, seen: dict[int, Any] | None = None) -> Any:
    """Put together what a file holds as parts, wherever it is in a model.

    Nothing is checked but the names of records: see `loaded`.
    """
    seen = {} if seen is None else seen
    if not isinstance(value, BaseEstimator | dict | list | tuple):
        return value
    if id(value) not in seen:
        seen[id(value)] = value, value  # ends a cycle; keeps the original
        seen[id(value)] = value, _restored(value, seen)
    return seen[id(value)][1]


def _restored(value: Any, seen: dict[int, Any]) -> Any:
    if isinstance(value, BaseEstimator):
        vars(value).update({name: restored(part, seen) for name, part in vars(value).items()})
        return value
    if isinstance(value, dict):
        value.update({name: restored(part, seen) for name, part in value.items()})
        return _record_of(value) if RECORD in value else value
    if type(value) is list:
        value[:] = [restored(item, seen) for item in value]
        return value
    items = [restored(item, seen) for item in value]
    same = all(new is old for new, old in zip(items, value, strict=True))
    return value if same or type(value) is not tuple else tuple(items)


def _record_of(parts: dict[str, Any]) -> Any:
    name = parts[RECORD]
    if not isinstance(name, str) or name not in RECORDS:
        raise ValueError(NOT_A_RECORD.format(name=name))
    made: Any = object.__new__(RECORDS[name])
    state = {key: part for key, part in parts.items() if key != RECORD}
    if isinstance(made, Rows):
        made.__setstate__(state)
    else:
        vars(made).update(state)
    return made
