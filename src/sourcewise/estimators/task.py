"""What differs between classes and numbers: how targets are coded, and models of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from sourcewise import validation
from sourcewise.core.choices import Choices
from sourcewise.core.family import Family
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.losses import spread
from sourcewise.core.ridge import RidgeFamily
from sourcewise.estimators.averaged import AveragedClassifier, AveragedRegressor, Member


@dataclass(frozen=True)
class Classes:
    """Targets that are classes, those of the reference."""

    labels: np.ndarray  # sorted
    counts: np.ndarray  # trusted rows of each
    numbers: ClassVar[bool] = False

    @classmethod
    def learn(cls, y: np.ndarray, trusted: np.ndarray, choices: Choices, estimator: Any) -> Classes:
        """Check all targets, and learn from the trusted ones."""
        validation.check_classes(y)
        check_classification_targets(y)
        task = cls(*np.unique(y[trusted], return_counts=True))
        if estimator is not None:
            validation.check_numbered(estimator, task.labels)
        return task

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for numbers."""
        return len(self.labels)

    @property
    def rules(self) -> dict[str, Any]:
        """What others need to know, by the names of their parameters."""
        return {"classes": self.labels}

    def encode(self, y: Any, codes: np.ndarray, names: list[Any], reference: int) -> Any:
        """Return the position of each target among the labels."""
        return validation.check_labels_known(y, self.labels, codes, names, reference)

    def family(self, choices: Choices) -> Family:
        """Return the default learner."""
        return LogisticFamily(
            self.n_classes,
            choices.regularisations,
            penalise_constant=choices.as_given,
            tol=choices.tol,
            grid_tol=choices.grid_tol,
            final_tol=choices.final_tol,
            intercept_penalty=choices.intercept_penalty,
        )

    def average(self, members: list[Member], choices: Choices) -> Any:
        """Make one model of several."""
        return AveragedClassifier(members, self.labels, choices.least_chance)

    def in_units(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, Any]:
        """Give a model of coded targets the units of the targets."""
        return coef, intercept

    def norm(self, coef: np.ndarray, intercept: Any) -> float:
        """Norm of such a model's coefficients and intercept, in the units of the loss."""
        return float(np.linalg.norm(np.append(coef, intercept)))


@dataclass(frozen=True)
class Numbers:
    """Targets that are numbers, coded as ``(y - centre) / scale``; methods as of `Classes`."""

    centre: float
    scale: float
    numbers: ClassVar[bool] = True
    n_classes: ClassVar[int] = 0

    @classmethod
    def learn(cls, y: np.ndarray, trusted: np.ndarray, choices: Choices, estimator: Any) -> Numbers:
        """Learn centre and scale from the trusted targets."""
        targets = np.asarray(y[trusted], dtype=np.float64)
        return cls(float(targets.mean()), spread(targets, choices.far_off))

    @property
    def rules(self) -> dict[str, Any]:
        """Return centre and scale."""
        return {"centre": self.centre, "scale": self.scale}

    def encode(self, y: Any, codes: np.ndarray, names: list[Any], reference: int) -> Any:
        """Centre and scale targets."""
        return self.coded(y)

    def coded(self, y: Any) -> np.ndarray:
        """Do it, with targets or with predictions."""
        return np.asarray((np.asarray(y, dtype=np.float64) - self.centre) / self.scale)

    def family(self, choices: Choices) -> Family:
        """Return the default learner."""
        return RidgeFamily(choices.regularisations, choices.ridge_intercept_penalty)

    def average(self, members: list[Member], choices: Choices) -> Any:
        """Make one model of several."""
        return AveragedRegressor(members)

    def in_units(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return coefficients of one output, and a float."""
        return coef[0] * self.scale, float(intercept[0] * self.scale + self.centre)

    def norm(self, coef: np.ndarray, intercept: Any) -> float:
        """Take centre and scale back first."""
        return float(np.linalg.norm(np.append(coef, intercept - self.centre)) / self.scale)


Task = Classes | Numbers
