"""What someone would do who knew which sources are clean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits


@with_shared_entries
class Oracle(Baseline):
    r"""Logistic regression on the reference and the sources that are known to be clean.

    For benchmarks: in practice nobody knows which sources are clean. As :class:`AllData` on the
    clean sources :math:`G` and the reference, weights :math:`m_i / \sum_{k \in G \cup T} m_k`
    (the paper has no such baseline). Several classes: multinomial.

    It is no upper bound: a mildly corrupted source may still help, and weighting can beat it.

    Parameters
    ----------
    clean : list of names
        Sources to train on beside the reference; the reference may be among them.
    %(parameters)s

    Attributes
    ----------
    %(sources_)s
    source_weights_ : array of shape (n_sources,)
        Shares of the rows trained on.
    %(trained)s

    Examples
    --------
    >>> from sourcewise.baselines import Oracle
    %(noise)s
    >>> model = Oracle(clean=["careful"], reference="gold", random_state=0)
    >>> model.fit(X, y, sources=vendor).source_weights_
    array([0.25, 0.75, 0.  ])
    """

    def __init__(
        self,
        clean: Sequence[Any] = (),
        *,
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.clean = clean

    def _check_parameters(self, names: list[Any]) -> None:
        if not isinstance(self.clean, (list, tuple, set, frozenset, np.ndarray)):
            raise ValueError(f"clean must be a list of names of sources; got {self.clean!r}.")
        for name in self.clean:
            if name not in names:
                raise ValueError(
                    f"The clean source {name!r} is not among the sources; pass clean=<names in "
                    "sources>."
                )

    def _weigh(self, work: SharedFits) -> np.ndarray:
        clean = list(self.clean)
        return work.by_size(
            work.only_reference | np.array([name in clean for name in work.pool.names])
        )
