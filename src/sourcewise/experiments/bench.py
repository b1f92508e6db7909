"""One reference and one test set: all methods on many pools of sources, sharing what they can."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sourcewise.baselines.robust_logistic import AUTHORS_PENALTIES, Grid
from sourcewise.baselines.shared_fits import SharedFits
from sourcewise.baselines.source_normalized import standardise_sources
from sourcewise.core.aggregation import component_median, geometric_median
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.local_exchange import (
    ReferenceEvidence,
    ReferenceFolds,
    SourceEvidence,
    reference_evidence,
    source_evidence,
)
from sourcewise.core.folds import named_seed
from sourcewise.core.losses import brier_loss
from sourcewise.core.robust import THRESHOLD
from sourcewise.estimators.measure import Measured, from_evidence, look_again
from sourcewise.estimators.pool import FeatureMap, Pool
from sourcewise.estimators.protocol import DEFAULT, PAPER
from sourcewise.estimators.selection import choose_local_setting
from sourcewise.experiments.facts import Costs, Facts
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.per_source import ReferenceMoments, grams, local_models
from sourcewise.experiments.space import Space, SpacePool, grouped

FOLDS = 5
MEDIANS = ("geometric median", "component median", "probability median")
# Features as they are, standardised within each source, and as our default sees them; and which
# methods learn there.
SPACES = {
    "given": ("paper", "all data", "reference only", "robust logistic", *MEDIANS),
    "normalized": ("source normalized",),
    "mapped": ("default",),
}
# Methods whose fits start from what is expected in each space.
PILOTED = {
    "given": ("paper", "all data"),
    "normalized": ("source normalized",),
    "mapped": ("default",),
}
# Predicted relative decrease at which the solvers take their last step. The studies count errors
# of a few hundred or thousand rows, for which this is plenty.
TOL = 1e-4


class Outcome(NamedTuple):
    """What a method came to.

    Attributes
    ----------
    error : float
        On the test rows.
    trade_off, C : float
        What it chose; NaN where it has nothing to choose.
    """

    error: float
    trade_off: float = float("nan")
    C: float = float("nan")


class Bench:
    """Methods that learn about one target.

    Every number depends on the reference, the test set, the expected sources (`expect`) and the
    sources of the pool in question alone, not on what else was asked of the bench before.

    Parameters
    ----------
    X : float32 array of shape (n_reference, d)
        The reference; the last column is constant.
    y : int array of shape (n_reference,)
        0 or 1.
    X_test, y_test : arrays
    seed : int
        Deals the folds, as an estimator's ``random_state``.
    methods : tuple of str
        Which of `METHODS` to run.
    tol : float
        Of the solvers.
    """

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        X_test: np.ndarray,
        y_test: np.ndarray,
        *,
        seed: int,
        methods: tuple[str, ...] = tuple(METHODS),
        tol: float = TOL,
    ):
        self.y, self.positive_test, self.methods, self.tol = y, y_test == 1, methods, tol
        self.costs = Costs()  # of what `expect` does
        self.seed = int(check_random_state(seed).randint(2**31 - 1))
        self.map = FeatureMap.from_reference(X[:, :-1])
        folds, repeated = (
            ReferenceFolds.draw(y, len(y), FOLDS, protocol.n_repeats, self.seed)
            for protocol in (PAPER, DEFAULT)
        )
        paper = replace(PAPER, tol=tol)
        default = replace(DEFAULT, tol=max(tol, DEFAULT.tol))
        Z, centre, scale = standardise_sources(grouped(X[None], y[None]), X.shape[1] - 1)
        Z_test = X_test.copy()
        Z_test[:, :-1] = (Z_test[:, :-1] - centre) / scale
        mapped, mapped_test = self.map(X[:, :-1]), self.map(X_test[:, :-1])
        self.spaces = {
            "given": Space(X, y, X_test, paper, folds, self.seed),
            "normalized": Space(Z, y, Z_test, paper, folds, self.seed),
            "mapped": Space(mapped, y, mapped_test, default, repeated, self.seed),
        }
        for name, users in SPACES.items():
            if not set(users) & set(methods):
                del self.spaces[name]

    # -- what all pools share ----------------------------------------------------------------

    @cached_property
    def own_moments(self) -> ReferenceMoments:
        """Reference's side of the paper's discrepancies."""
        space = self.spaces["given"]
        return ReferenceMoments.of(space.X, self.y, space.folds.held_out)

    @cached_property
    def own_evidence(self) -> tuple[ReferenceEvidence, float]:
        """Reference's side of our default's discrepancies, and the local models' C."""
        pool = self.spaces["mapped"].alone
        setting = choose_local_setting(pool)
        shares = np.full(len(self.y), 1.0 / len(self.y))
        evidence = reference_evidence(
            *pool.trusted, shares, pool.folds, pool.family, brier_loss, setting
        )
        return evidence, setting

    @cached_property
    def own_local(self) -> tuple[np.ndarray, np.ndarray]:
        """The reference's own model among the local ones, and its scores of the test rows."""
        space = self.spaces["given"]
        model = local_models(space.X[None], self.y[None])
        return model, model.astype(np.float32) @ space.test.T

    @cached_property
    def reference_only(self) -> Outcome:
        """The reference's own model, its regularisation cross-validated."""
        space = self.spaces["given"]
        best, _ = SharedFits(space.alone).choose(space.alone_models[1:])
        C = float(space.family.settings[best])
        return Outcome(self._error("given", space.alone_models[0, best]), C=C)

    # -- what a source says for itself or against the reference ------------------------------

    def expect(self, X: np.ndarray, y: np.ndarray) -> None:
        """Expect pools that are near these sources: their solutions are where fits start."""
        for name, space in self.spaces.items():
            piloted = [m for m in self.methods if m in PILOTED[name]]
            if piloted:
                with self.costs.clock(*piloted):
                    space.expect(self._features(name, X, y), y)

    def facts(
        self, names: tuple[str, ...], X: np.ndarray, y: np.ndarray, like: Facts | None = None
    ) -> Facts:
        """Compute what the methods need to know of some sources.

        Parameters
        ----------
        names : tuple of str
            They deal the sources' own folds.
        X, y : arrays of shape (n, m, d) and (n, m)
        like : Facts, optional
            Of sources with the same features and other labels.
        """
        facts = Facts(names, y, {})
        costs = facts.costs
        for name, space in self.spaces.items():
            with costs.clock(*(m for m in self.methods if m in PILOTED[name])):
                known = None if like is None else like.spaces[name]
                features = self._features(name, X, y) if known is None else known.X
                facts.spaces[name] = space.facts(features, y, known)
        if "paper" in self.methods:
            with costs.clock("paper"):
                gram = grams(X) if like is None else like.gram
                found = self.own_moments.discrepancies(X, y, gram)
                facts = replace(facts, gram=gram, plug_in=found)
        medians = [m for m in self.methods if m in MEDIANS]
        if medians:
            with costs.clock(*medians):
                local = local_models(X, y)
                scores = local.astype(np.float32) @ self.spaces["given"].test.T
                facts = replace(facts, local=local, local_scores=scores)
        if "default" in self.methods:
            with costs.clock("default"):
                mapped = facts.spaces["mapped"].X
                facts = replace(facts, evidence=self._evidence(names, mapped, y))
        return facts

    def _features(self, space: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Features of sources in one of the spaces."""
        if space == "given":
            return X
        n, m, d = X.shape
        if space == "mapped":
            return self.map(X.reshape(n * m, d)[:, :-1]).reshape(n, m, d)
        return standardise_sources(grouped(X, y), d - 1)[0].reshape(n, m, d)

    def _evidence(
        self, names: tuple[str, ...], mapped: np.ndarray, y: np.ndarray
    ) -> SourceEvidence:
        pool = self.spaces["mapped"].pool(mapped, y, names)
        reference, setting = self.own_evidence
        return source_evidence(
            pool.data,
            range(1, len(names) + 1),
            [named_seed(self.seed, name) for name in names],
            reference,
            pool.trusted,
            FOLDS,
            pool.family,
            brier_loss,
            setting,
        )

    # -- running the methods -----------------------------------------------------------------

    def run(self, facts: Facts) -> tuple[dict[str, Outcome], Costs]:
        """Run all methods on the reference and these sources."""
        outcomes: dict[str, Outcome] = {}
        costs = Costs()
        pools = {
            name: SpacePool(space, facts.spaces[name], facts.y, facts.names)
            for name, space in self.spaces.items()
        }
        for name, pool in pools.items():
            with costs.clock(*(m for m in self.methods if m in PILOTED[name])):
                pool.find_pilots(for_weights=name != "normalized")
        for method in self.methods:
            with costs.clock(method):
                outcomes[method] = self._run(method, facts, pools)
        return outcomes, costs

    def _run(self, method: str, facts: Facts, pools: dict[str, SpacePool]) -> Outcome:
        if method == "reference only":
            return self.reference_only
        if method in ("all data", "source normalized"):
            name = "given" if method == "all data" else "normalized"
            model, C = pools[name].train_on_all()
            return Outcome(self._error(name, model), C=C)
        if method in ("paper", "default"):
            name = "given" if method == "paper" else "mapped"
            if name == "given":
                measured = self._plug_in_measured(facts)
            else:
                measured = self._measured(facts, pools[name].pool)
            model, chosen = pools[name].weigh_and_train(measured)
            return Outcome(self._error(name, model), chosen.trade_off, chosen.setting)
        if method == "robust logistic":
            return self._run_robust(pools["given"].pool)
        return self._run_median(method, facts)

    def _plug_in_measured(self, facts: Facts) -> Measured:
        assert facts.plug_in is not None
        unknown = np.full(len(facts.names), np.nan)
        found = Discrepancies(facts.plug_in[:, 0], unknown, unknown, ())
        return Measured(found, facts.plug_in[:, 1:].T, np.nan, np.nan)

    def _measured(self, facts: Facts, pool: Pool) -> Measured:
        assert facts.evidence is not None
        reference, setting = self.own_evidence
        return look_again(pool, from_evidence(pool, reference, facts.evidence), setting)

    def _run_median(self, method: str, facts: Facts) -> Outcome:
        assert facts.local is not None and facts.local_scores is not None
        own, own_scores = self.own_local
        models = np.concatenate([own, facts.local])
        if method == "geometric median":
            return Outcome(self._error("given", geometric_median(models)[None]))
        if method == "component median":
            return Outcome(self._error("given", component_median(models)[None]))
        scores = np.concatenate([own_scores, facts.local_scores])
        # The median probability exceeds one half where the median log-odds exceed zero: also for
        # the mean of the middle two, because probabilities are symmetric about one half.
        return Outcome(float(np.mean((np.median(scores, axis=0) > 0) != self.positive_test)))

    def _run_robust(self, pool: Pool) -> Outcome:
        settings = np.sort(1.0 / (2.0 * AUTHORS_PENALTIES * len(pool.data.y)))
        grid = Grid.of_all_rows(SharedFits(pool), settings, THRESHOLD)
        best, model, _ = grid.minimise(search_tol=self.tol, tol=1e-3 * self.tol)
        return Outcome(self._error("given", model), C=float(settings[best]))

    def _error(self, space: str, model: np.ndarray) -> float:
        """Error on the test rows of a model of shape (1, d)."""
        X = self.spaces[space].test
        return float(np.mean((X @ model[0].astype(X.dtype) > 0) != self.positive_test))
