r"""The plug-in discrepancy by gradient queries, for a reference that nobody may see.

What is maximised splits into a part of the reference's rows and a part of the source's, so that a
source only has to tell the gradient of its own mean squared loss at hypotheses that are put to it
(section 3.3 of the paper),

.. math:: \tfrac12 \nabla_w \hat\epsilon_i(w) = G_i w - b_i .

All sources are asked in the same round, each at its own hypotheses: directions in which the best so
far, for every set of reference rows and every class, are not yet the best of all. The gradients say
what :math:`G_i` does to all combinations of these, and the best combinations come next (a Galerkin
method in a block Krylov space). As soon as the space cannot grow, or nothing is missing any more,
the hypotheses are those that all rows together would give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sourcewise.core.data import FloatArray
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.separation import extreme_models, separating_models

# Hypotheses put to a source in a round: directions at random fill up those that are wanted.
PER_ROUND = 32
# Of what is missing to a hypothesis, relative to where it started.
SOLVED = 1e-11
NEW = 1e-9  # part of a direction that is not a combination of earlier ones

# Models (n_models, n_features) for each source; returns gradients (n_models, n_targets, n_features)
# for each.
AskGradients = Callable[[list[FloatArray]], list[FloatArray]]


def find_by_gradients(
    reference: Moments,
    ridge: float,
    norm_bounds: FloatArray,
    n_classes: int,
    n_sources: int,
    ask: AskGradients,
) -> list[FloatArray]:
    """Find the separating models (n_sets, n_targets, n_features) of some sources.

    The moments are those of every set of reference rows: what a source would be told if it might
    know them. Norms are bounded for regression, where there are 0 classes.
    """
    searches = [Search(reference, ridge, norm_bounds, n_classes) for _ in range(n_sources)]
    while True:
        queries = [search.queries() for search in searches]
        if not any(len(some) for some in queries):
            return [search.models for search in searches]
        # Whoever is done is asked nothing new, so that all rounds look alike.
        told = ask(
            [some if len(some) else s.last for some, s in zip(queries, searches, strict=True)]
        )
        for search, some, gradients in zip(searches, queries, told, strict=True):
            if len(some):
                search.learn(some, gradients)


@dataclass
class Search:
    """The search for one source's separating models; see `find_by_gradients`."""

    reference: Moments
    ridge: float
    norm_bounds: FloatArray
    n_classes: int

    def __post_init__(self) -> None:
        """Begin with nothing known: the first hypothesis is zero."""
        d = self.reference.gram.shape[1]
        self.basis: FloatArray = np.zeros((d, 0))
        self.products: FloatArray = np.zeros((d, 0))  # G_i times the basis
        self.cross: FloatArray | None = None  # b_i
        self.models: FloatArray = np.zeros((0, 0, d))
        self.last: FloatArray = np.zeros((1, d))
        self._rng = np.random.default_rng(0)

    def queries(self) -> FloatArray:
        """Hypotheses to ask at next; none where there is nothing left to learn."""
        d = len(self.basis)
        if self.cross is None:
            return np.concatenate([np.zeros((1, d)), self._directions(np.zeros((0, d))).T])
        missing = self._improve()
        if missing is None or self.basis.shape[1] == d:
            return np.zeros((0, d))
        return self._directions(missing).T

    def learn(self, asked: FloatArray, gradients: FloatArray) -> None:
        """Take down the gradients at what has been asked."""
        self.last = asked
        if self.cross is None:
            self.cross = -gradients[0].T  # (n_features, n_targets)
            asked, gradients = asked[1:], gradients[1:]
        self.basis = np.column_stack([self.basis, asked.T])
        # The same for every target, whose own part is known.
        self.products = np.column_stack([self.products, (gradients[:, 0] + self.cross[:, 0]).T])

    def _directions(self, wanted: FloatArray) -> FloatArray:
        """Orthonormal directions that are new: those wanted, then others at random."""
        d = len(self.basis)
        room = min(PER_ROUND, d - self.basis.shape[1])
        found = self.basis
        more = self._rng.standard_normal((PER_ROUND, d))
        for direction in [*wanted, *more]:
            if found.shape[1] - self.basis.shape[1] >= room:
                break
            norm = np.linalg.norm(direction)
            left = direction - found @ (found.T @ direction)
            left -= found @ (found.T @ left)
            if np.linalg.norm(left) > NEW * norm:
                found = np.column_stack([found, left / np.linalg.norm(left)])
        return found[:, self.basis.shape[1] :]

    def _improve(self) -> FloatArray | None:
        """Find the best combinations; returns what keeps them from being the best of all.

        None where nothing does.
        """
        assert self.cross is not None
        V = self.basis
        own = Moments(
            (V.T @ self.products)[None],
            (V.T @ self.cross)[None],
            np.zeros((1, self.cross.shape[1])),
        )
        reference = self.reference
        inside = Moments(
            np.einsum("dk,sde,el->skl", V, reference.gram, V, optimize=True),
            np.einsum("dk,sdt->skt", V, reference.cross),
            reference.square,
        )
        if self.n_classes:
            small = separating_models(own, inside, ridge=self.ridge)
            self.models = small @ V.T
            return self._missing_of_classes(small)
        small = extreme_models(own, inside, norm_bound=self.norm_bounds)
        self.models = small @ V.T
        return self._missing_of_regression(small)

    def _missing_of_classes(self, small: FloatArray) -> FloatArray | None:
        """Return the residuals of ``(G_i + G_T + ridge) w = b_T - b_i``."""
        assert self.cross is not None
        reference = self.reference
        wanted = (reference.cross - self.cross).swapaxes(1, 2)  # (n_sets, n_targets, d)
        done = small @ self.products.T + self.models @ reference.gram
        missing = wanted - done - self.ridge * self.models
        size = np.linalg.norm(wanted, axis=2)
        if (np.linalg.norm(missing, axis=2) <= SOLVED * np.maximum(size, 1e-300)).all():
            return None
        return missing.reshape(-1, missing.shape[2])

    def _missing_of_regression(self, small: FloatArray) -> FloatArray:
        """Return gradients of the difference of losses, which do not tell when to stop."""
        assert self.cross is not None
        reference = self.reference
        bent = small @ self.products.T - self.models @ reference.gram
        flat = (self.cross - reference.cross).swapaxes(1, 2)
        missing = bent - flat
        return missing.reshape(-1, missing.shape[2])
