"""What the medians of the sources' own models share."""

from __future__ import annotations

from typing import Any

from sourcewise.baselines.base import Baseline, check_C


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
