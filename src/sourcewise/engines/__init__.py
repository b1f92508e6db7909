"""Where the sources are: each engine answers the same few questions (`core/engine.py`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sourcewise.engines.dask import DaskSources

__all__ = ["DaskSources"]


def __getattr__(name: str) -> Any:
    """Import an engine when it is asked for: each needs packages of its own."""
    if name != "DaskSources":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sourcewise.engines.dask import DaskSources

    return DaskSources
