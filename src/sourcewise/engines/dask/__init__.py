"""Sources on a Dask cluster: more rows than one machine holds."""

from sourcewise.engines.dask.sources import DaskSources

__all__ = ["DaskSources"]
