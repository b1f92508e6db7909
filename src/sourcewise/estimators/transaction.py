"""A fit succeeds as a whole or changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_failure(model: Any) -> Iterator[None]:
    """Give a model its attributes back if what follows fails or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def forget_fit(model: Any) -> None:
    """Remove fitted attributes: those of another learner must not outlive a new fit."""
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
