"""One reference and one test set: all methods on many pools of sources, sharing what they can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sourcewise.baselines.robust_logistic import AUTHORS_PENALTIES, train_robust
from sourcewise.baselines.shared_fits import SharedFits, fit_local_models
from sourcewise.baselines.source_normalized import standardise_sources
from sourcewise.core.aggregation import component_median, geometric_median
from sourcewise.core.choices import DEFAULT, PAPER
from sourcewise.core.discrepancy import combined
from sourcewise.core.discrepancy.findings import Findings, concat_findings, gather
from sourcewise.core.discrepancy.methods import DISCREPANCIES, Survey
from sourcewise.core.discrepancy.plug_in import plug_in_question
from sourcewise.core.feature_map import FeatureMap
from sourcewise.core.robust import THRESHOLD
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import choose_local_setting, fit_average, select
from sourcewise.experiments.facts import Costs, Facts, lay_out, reference_pool, with_sources
from sourcewise.experiments.names import METHODS

LOCAL_C = 100.0  # of the local models behind the medians, the authors' choice
MEDIANS = ("geometric median", "component median", "probability median")
# Features as they are, standardised within each source, and as our default sees them; and which
# methods learn there.
SPACES = {
    "given": ("paper", "all data", "reference only", "robust logistic", *MEDIANS),
    "normalized": ("source normalized",),
    "mapped": ("default",),
}
# What is asked of every source by itself, and for which methods.
ASKERS = {"paper": ("paper",), "default": ("default",), "medians": MEDIANS}
# Predicted relative decrease at which the solvers take their last step. The studies count errors
# of a few hundred or thousand rows, for which this is plenty.
TOL = 1e-4


class Outcome(NamedTuple):
    """What a method came to."""

    error: float  # on the test rows
    # What it chose; NaN where it has nothing to choose.
    trade_off: float = float("nan")
    C: float = float("nan")


class Bench:
    """Methods that learn about one target.

    Every number depends on the reference, the test set and the sources of the pool in question
    alone, not on what else was asked of the bench before. ``X`` and ``y`` (0 or 1) are the
    reference, in single precision and with a constant last column; ``seed`` draws the folds, as an
    estimator's ``random_state``.
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
        self.positive_test, self.methods, self.tol = y_test == 1, methods, tol
        self.seed = int(check_random_state(seed).randint(2**31 - 1))
        self.map = FeatureMap.from_reference(X[:, :-1])
        paper = replace(PAPER, tol=tol, grid_tol=tol, final_tol=1e-3 * tol)
        loose = max(tol, DEFAULT.tol), max(tol, DEFAULT.grid_tol)
        default = replace(DEFAULT, tol=loose[0], grid_tol=loose[1], final_tol=1e-3 * tol)
        Z, centre, scale = standardise_sources(lay_out(X[None], y[None]), X.shape[1] - 1)
        Z_test = X_test.copy()
        Z_test[:, :-1] = (Z_test[:, :-1] - centre) / scale
        # Without any source.
        self.alone = {
            "given": reference_pool(X, y, paper, self.seed),
            "normalized": reference_pool(Z, y, paper, self.seed),
            "mapped": reference_pool(self.map(X[:, :-1]), y, default, self.seed),
        }
        self.test = {"given": X_test, "normalized": Z_test, "mapped": self.map(X_test[:, :-1])}

    # -- what all pools share ----------------------------------------------------------------

    @cached_property
    def surveys(self) -> dict[str, Survey]:
        """The reference's side of discrepancies, by method."""
        mapped = self.alone["mapped"]
        return {
            "paper": self.alone["given"].survey(np.nan, permute=False),
            "default": mapped.survey(choose_local_setting(mapped)),
        }

    @cached_property
    def own_local(self) -> Findings:
        """The reference's own model among the local ones."""
        return self._local_models(self.alone["given"], [0])

    @cached_property
    def reference_only(self) -> Outcome:
        """The reference's own model, its regularisation cross-validated."""
        trained = SharedFits(self.alone["given"]).reference_trained
        return Outcome(self._error("given", trained.model), C=trained.C)

    @cached_property
    def alone_models(self) -> dict[str, np.ndarray]:
        """Models of the reference alone without each fold, under all regularisations."""
        models = {}
        for space, method in (("given", "paper"), ("mapped", "default")):
            if method in self.methods:
                work = SharedFits(self.alone[space])
                models[space] = work.fit([work.by_size(work.only_reference)])[1][0, 1:]
        return models

    # -- what is found out about a source by itself ------------------------------------------

    def facts(
        self, names: tuple[str, ...], X: np.ndarray, y: np.ndarray, like: Facts | None = None
    ) -> Facts:
        """Find out what the methods need to know of some sources, (n, m, d) and (n, m).

        Names draw the sources' own folds; ``like`` are facts of sources with the same features and
        other labels.
        """
        facts = Facts(names, y, {}, {})
        for space, users in SPACES.items():
            mine = [m for m in users if m in self.methods]
            if mine:
                with facts.costs.clock(*mine):
                    facts.X[space] = like.X[space] if like else self._features(space, X, y)
        for asker, users in ASKERS.items():
            mine = [m for m in users if m in self.methods]
            if mine:
                with facts.costs.clock(*mine):
                    facts.findings[asker] = self._find(asker, facts)
        return facts

    def _features(self, space: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Features of sources in one of the spaces."""
        if space == "given":
            return X
        n, m, d = X.shape
        if space == "mapped":
            return np.asarray(self.map(X.reshape(n * m, d)[:, :-1])).reshape(n, m, d)
        return standardise_sources(lay_out(X, y), d - 1)[0].reshape(n, m, d)

    def _find(self, asker: str, facts: Facts) -> Findings:
        pool = self._pool("mapped" if asker == "default" else "given", facts)
        if asker == "medians":
            return self._local_models(pool, range(1, pool.n_sources))
        survey = self.surveys[asker]
        if asker == "default":
            return combined.find(pool.sources, survey.models, survey.seed, survey.choices)
        shares = survey.folds.set_shares(survey.reference.shares)
        question = plug_in_question(survey.reference, shares, survey.choices.ridge)
        return {**gather(pool.sources.ask(question)), "p_values": np.full(len(facts.names), np.nan)}

    def _local_models(self, pool: Pool, sources: Sequence[int]) -> Findings:
        """Models (d, n) of sources by themselves, and their scores of the test rows (n_rows, n)."""
        models = fit_local_models(pool, LOCAL_C)[sources, 0]
        scores = self.test["given"] @ models.T.astype(np.float32)
        return {"models": models.T, "scores": scores}

    def rows(self, facts: Facts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return features as they are given, labels and source numbers; 0 is the reference."""
        data = self._pool("given", facts).data
        return data.X, data.y, data.source_of_row

    def _pool(self, space: str, facts: Facts) -> Pool:
        return with_sources(self.alone[space], facts.names, facts.X[space], facts.y)

    # -- running the methods -----------------------------------------------------------------

    def run(self, facts: Facts) -> tuple[dict[str, Outcome], Costs]:
        """Run all methods on the reference and these sources."""
        outcomes: dict[str, Outcome] = {}
        costs = Costs()
        for method in self.methods:
            with costs.clock(method):
                outcomes[method] = self._run(method, facts)
        return outcomes, costs

    def _run(self, method: str, facts: Facts) -> Outcome:
        if method == "reference only":
            return self.reference_only
        if method in MEDIANS:
            return self._run_median(method, facts)
        space = next(space for space, users in SPACES.items() if method in users)
        pool = self._pool(space, facts)
        if method in ("paper", "default"):
            return self._run_weighted(method, space, pool, facts)
        work = SharedFits(pool)
        if method == "robust logistic":
            return self._run_robust(work)
        trained = work.train(work.by_size(np.ones(pool.n_sources)))
        return Outcome(self._error(space, trained.model), C=trained.C)

    def _run_weighted(self, method: str, space: str, pool: Pool, facts: Facts) -> Outcome:
        """Choose trade-off and regularisation, weigh the sources, train."""
        measured = DISCREPANCIES[pool.options.discrepancy].conclude(
            self.surveys[method], facts.findings[method]
        )
        chosen, near = select(pool, measured, pool.choices.trade_offs, self.alone_models[space])
        values = np.insert(measured.result.values, pool.position, 0.0)
        model = fit_average(pool, chosen, values, near)
        return Outcome(self._error(space, model), chosen.trade_off, chosen.setting)

    def _run_median(self, method: str, facts: Facts) -> Outcome:
        every = concat_findings([self.own_local, facts.findings["medians"]])
        if method == "geometric median":
            return Outcome(self._error("given", geometric_median(every["models"].T)[None]))
        if method == "component median":
            return Outcome(self._error("given", component_median(every["models"].T)[None]))
        # The median probability exceeds one half where the median log-odds exceed zero: also for
        # the mean of the middle two, because probabilities are symmetric about one half.
        positive = np.median(every["scores"], axis=1) > 0
        return Outcome(float(np.mean(positive != self.positive_test)))

    def _run_robust(self, work: SharedFits) -> Outcome:
        settings = np.sort(1.0 / (2.0 * AUTHORS_PENALTIES * len(work.pool.data.y)))
        best, model, _ = train_robust(work, settings, THRESHOLD, self.tol, 1e-3 * self.tol)
        return Outcome(self._error("given", model), C=float(settings[best]))

    def _error(self, space: str, model: np.ndarray) -> float:
        """Error on the test rows of a model of shape (1, d)."""
        X = self.test[space]
        return float(np.mean((X @ model[0].astype(X.dtype) > 0) != self.positive_test))
