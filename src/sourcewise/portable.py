"""Which parts of a fitted model go into a file, and which are left out."""

from __future__ import annotations

import copy
from dataclasses import is_dataclass
from typing import Any

from sklearn.base import BaseEstimator, clone

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
        if not isinstance(value, BaseEstimator | list | tuple | dict):
            return value
        if id(value) not in self.seen:
            self.seen[id(value)] = value, value  # ends a cycle
            self.seen[id(value)] = value, self._convert(value)
        return self.seen[id(value)][1]

    def _convert(self, value: Any) -> Any:
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

    def _estimator(self, model: BaseEstimator) -> Any:
        if getattr(model, "_training", None) is not None:
            model.discrepancy_result_  # noqa: B018 (p-values are computed while the rows are there)
        attributes = {k: v for k, v in vars(model).items() if k != "_metadata_request"}
        changed = {
            name: new
            for name, value in attributes.items()
            if (new := self(self._own(name, value) if is_ours(model) else value)) is not value
        }
        if is_ours(model) and getattr(model, "_seen", ()) is None:  # as long as the rows are there
            changed["_seen"], changed["_part_powers"] = model._looked_closer()
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
            frame = _frame_in(value)
            if frame is not None:
                raise ValueError(NOT_ROWS.format(kind=type(frame).__name__))
        if name == "_row_codes" and not self.include_data:
            return None
        if name == "estimator" and isinstance(value, BaseEstimator):
            # A template: if it happens to be fitted, what it has learnt does not belong in here.
            return clone(value)
        return value


def _frame_in(value: Any) -> Any:
    if hasattr(value, "columns"):
        return value
    parts = vars(value).values() if is_dataclass(value) else ()
    return next((found for part in parts if (found := _frame_in(part)) is not None), None)
