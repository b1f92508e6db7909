"""Rows below rows, whatever holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse


def concat_rows(above: Any, below: Any) -> Any:
    """Stack two containers of rows of the same kind."""
    module = type(above).__module__.partition(".")[0]
    if module == "pandas":
        import pandas

        return pandas.concat([above, below], ignore_index=True)
    if module == "polars":
        import polars

        return polars.concat([above, below])
    if scipy.sparse.issparse(above):
        return scipy.sparse.vstack([above, below], format="csr")
    if isinstance(above, list):
        return [*above, *below]
    return np.concatenate([above, below])
