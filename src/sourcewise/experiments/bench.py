"""One reference and one test set: all methods on many pools of sources, sharing what they can."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sourcewise.baselines.local import NEWTON_TOL, constant_penalty
from sourcewise.baselines.robust_logistic import AUTHORS_PENALTIES, Grid
from sourcewise.baselines.source_normalized import standardise_sources
from sourcewise.baselines.workbench import Workbench
from sourcewise.core.aggregation import component_median, geometric_median
from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.evidence import (
    ReferenceEvidence,
    ReferenceFolds,
    reference_evidence,
    source_evidence,
)
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.separation import separating_models
from sourcewise.core.folds import named_seed
from sourcewise.core.linear import LogisticFamily, WeightedProblems, kept_shares
from sourcewise.core.losses import brier_loss
from sourcewise.core.newton import newton_logistic
from sourcewise.core.robust import THRESHOLD
from sourcewise.core.weights import solve_weights
from sourcewise.estimators.measure import Measured, from_evidence
from sourcewise.estimators.pool import FeatureMap, Pool
from sourcewise.estimators.protocol import DEFAULT, PAPER, Protocol
from sourcewise.estimators.selection import choose_local_setting, select, total_weight
from sourcewise.experiments.facts import Costs, Facts
from sourcewise.experiments.results import METHODS

FOLDS = 5
LOCAL_C = 100.0  # of the local models behind the medians, the authors' choice
PLUG_IN_RIDGE = 1e-6
MEDIANS = ("geometric median", "component median", "probability median")
# Predicted relative decrease at which the solvers stop. The studies count errors of a few hundred
# or thousand rows, for which this is plenty.
TOL = 1e-5


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

    Every number depends on the reference, the test set and the sources of the pool in question
    alone, not on what else was asked of the bench before.

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
        methods: tuple[str, ...] = METHODS,
        tol: float = TOL,
    ):
        self.X, self.y, self.X_test, self.y_test = X, y, X_test, y_test
        self.methods = methods
        self.seed = int(check_random_state(seed).randint(2**31 - 1))
        self.paper = replace(PAPER, tol=tol)
        self.default = replace(DEFAULT, tol=max(tol, DEFAULT.tol))
        self.costs = Costs()

    # -- what all pools share ----------------------------------------------------------------

    @cached_property
    def folds(self) -> ReferenceFolds:
        """Folds of the reference in the paper's protocol."""
        return ReferenceFolds.draw(self.y, len(self.y), FOLDS, PAPER.n_repeats, self.seed)

    @cached_property
    def repeated_folds(self) -> ReferenceFolds:
        """Folds of the reference for our default."""
        return ReferenceFolds.draw(self.y, len(self.y), FOLDS, DEFAULT.n_repeats, self.seed)

    @cached_property
    def map(self) -> FeatureMap:
        """Features for our default, which brings a constant of its own."""
        return FeatureMap.from_reference(self.X[:, :-1])

    @cached_property
    def mapped_test(self) -> np.ndarray:
        """Test rows for our default."""
        return self.map(self.X_test[:, :-1])

    @cached_property
    def own_moments(self) -> tuple[Moments, np.ndarray]:
        """Moments of the reference, whole and without each fold, and the row shares."""
        m = len(self.y)
        shares = np.full(m, 1.0 / m)
        sets = np.stack([shares, *(kept_shares(shares, out) for out in self.folds.held_out)])
        X, signs = self.X.astype(np.float64), 2.0 * self.y - 1.0
        gram = np.stack([(X * s[:, None]).T @ X for s in sets])
        cross = (sets * signs) @ X
        return Moments(gram, cross[:, :, None], np.ones((len(sets), 1))), sets

    @cached_property
    def own_evidence(self) -> tuple[ReferenceEvidence, float]:
        """Reference's side of our default's discrepancies, and the local models' C."""
        pool = self._default_pool(self._alone(self.map(self.X[:, :-1])), ())
        setting = choose_local_setting(pool)
        shares = np.full(len(self.y), 1.0 / len(self.y))
        evidence = reference_evidence(
            *pool.trusted, shares, pool.folds, pool.family, brier_loss, setting
        )
        return evidence, setting

    @cached_property
    def own_local(self) -> np.ndarray:
        """The reference's own model among the local ones."""
        return _local_models(self.X[None], self.y[None])[0]

    @cached_property
    def own_normalized(self) -> tuple[np.ndarray, np.ndarray]:
        """Reference and test rows, standardised by the reference."""
        d = self.X.shape[1] - 1
        Z, centre, scale = standardise_sources(self._alone(self.X), d)
        test = self.X_test.copy()
        test[:, :d] = (test[:, :d] - centre) / scale
        return Z, test

    @cached_property
    def reference_only(self) -> Outcome:
        """The reference's own model, its regularisation cross-validated."""
        work = Workbench(self._paper_pool(self._alone(self.X), ()))
        trained = work.reference_trained
        return Outcome(self._error(trained.model), C=trained.C)

    # -- what a source says for itself or against the reference ------------------------------

    def facts(
        self, names: tuple[str, ...], X: np.ndarray, y: np.ndarray, gram: np.ndarray | None = None
    ) -> Facts:
        """Compute what the methods need to know of some sources.

        Parameters
        ----------
        names : tuple of str
            They deal the sources' own folds.
        X, y : arrays of shape (n, m, d) and (n, m)
        gram : array of shape (n, d, d), optional
            If already known, from sources with the same features.
        """
        facts = Facts(names, X, y)
        costs = facts.costs
        if "paper" in self.methods:
            with costs.clock("paper"):
                gram = _grams(X) if gram is None else gram
                facts = replace(facts, gram=gram, plug_in=self._plug_in(X, y, gram))
        for medians in [set(MEDIANS) & set(self.methods)]:
            if medians:
                spent = Costs()
                with spent.clock("local"):
                    local = _local_models(X, y)
                    scores = (local.astype(np.float32) @ self.X_test.T)[:, :]
                    facts = replace(facts, local=local, local_scores=scores)
                for name in medians:
                    costs[name] = spent["local"] / len(medians)
        if "source normalized" in self.methods:
            with costs.clock("source normalized"):
                n, m, d = X.shape
                Z, *_ = standardise_sources(_grouped(X, y), d - 1)
                facts = replace(facts, normalized=Z.reshape(n, m, d))
        if "default" in self.methods:
            with costs.clock("default"):
                facts = self._with_evidence(facts)
        return facts

    def _plug_in(self, X: np.ndarray, y: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """Discrepancies of appendix B, from the whole reference and without each fold."""
        own, sets = self.own_moments
        n, m, _ = X.shape
        signs, own_signs = 2.0 * y - 1.0, 2.0 * self.y - 1.0
        wide = X.astype(np.float64)
        cross = np.matmul(signs[:, None, :], wide)[:, 0] / m
        sources = Moments(gram, cross[:, :, None], np.ones((n, 1)))
        reference = self.X.astype(np.float64)
        values = np.empty((n, len(sets)))
        for v, shares in enumerate(sets):
            one = Moments(own.gram[v : v + 1], own.cross[v : v + 1], own.square[v : v + 1])
            models = separating_models(sources, one, ridge=PLUG_IN_RIDGE)[:, 0]
            theirs = np.matmul(wide, models[:, :, None])[:, :, 0] * signs < 0.0
            ours = (reference @ models.T) * own_signs[:, None] < 0.0
            values[:, v] = np.abs(theirs.mean(axis=1) - shares @ ours)
        return values

    def _with_evidence(self, facts: Facts) -> Facts:
        n, m, _ = facts.X.shape
        mapped = self.map(facts.X.reshape(n * m, -1)[:, :-1]).reshape(n, m, -1)
        reference, setting = self.own_evidence
        own = self.map(self.X[:, :-1])
        data = _join(own, self.y, mapped, facts.y)
        pool = self._default_pool(data, facts.names)
        evidence = source_evidence(
            data,
            range(1, n + 1),
            [named_seed(self.seed, name) for name in facts.names],
            reference,
            (own, self.y),
            FOLDS,
            pool.family,
            brier_loss,
            setting,
        )
        return replace(facts, mapped=mapped, evidence=evidence)

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
        if method == "paper":
            return self._run_paper(facts)
        if method == "default":
            return self._run_default(facts)
        if method == "robust logistic":
            return self._run_robust(facts)
        if method in MEDIANS:
            return self._run_median(method, facts)
        if method == "all data":
            X, test = _join(self.X, self.y, facts.X, facts.y), self.X_test
        else:
            assert facts.normalized is not None
            own, test = self.own_normalized
            X = _join(own, self.y, facts.normalized, facts.y)
        work = Workbench(self._paper_pool(X, facts.names))
        trained = work.train(work.by_size(np.ones(X.n_sources)))
        return Outcome(self._error(trained.model, test), C=trained.C)

    def _run_paper(self, facts: Facts) -> Outcome:
        assert facts.plug_in is not None
        pool = self._paper_pool(_join(self.X, self.y, facts.X, facts.y), facts.names)
        values = facts.plug_in
        unknown = np.full(len(values), np.nan)
        found = Discrepancies(values[:, 0], unknown, unknown, ())
        measured = Measured(found, values[:, 1:].T, np.nan, np.nan)
        return self._weigh_and_train(pool, measured, self.X_test)

    def _run_default(self, facts: Facts) -> Outcome:
        assert facts.evidence is not None and facts.mapped is not None
        own = self.map(self.X[:, :-1])
        pool = self._default_pool(_join(own, self.y, facts.mapped, facts.y), facts.names)
        measured = from_evidence(pool, self.own_evidence[0], facts.evidence, with_folds=True)
        return self._weigh_and_train(pool, measured, self.mapped_test)

    def _weigh_and_train(self, pool: Pool, measured: Measured, test: np.ndarray) -> Outcome:
        """Choose trade-off and regularisation, weigh the sources, train."""
        data = pool.data
        selection, near = select(pool, measured, pool.protocol.trade_offs)
        values = np.insert(measured.result.values, data.reference, 0.0)
        weights = solve_weights(values, data.sizes, selection.trade_off)
        total = total_weight(weights, data.sizes, data.row_counts, pool.protocol.effective_total)
        problem = WeightedProblems(
            data, weights[None], np.array([total]), pool.folds.held_out, np.array([-1])
        )
        model = pool.family.fit_grid(problem, np.array([selection.setting]), start=near)[0]
        return Outcome(self._error(model, test), selection.trade_off, selection.setting)

    def _run_median(self, method: str, facts: Facts) -> Outcome:
        assert facts.local is not None and facts.local_scores is not None
        models = np.concatenate([self.own_local[None], facts.local])
        if method == "geometric median":
            return Outcome(self._error(geometric_median(models)[None]))
        if method == "component median":
            return Outcome(self._error(component_median(models)[None]))
        own = (self.X_test @ self.own_local.astype(np.float32))[None]
        scores = np.concatenate([own, facts.local_scores])
        # The median probability exceeds one half where the median log-odds exceed zero: also for
        # the mean of the middle two, because probabilities are symmetric about one half.
        return Outcome(float(np.mean((np.median(scores, axis=0) > 0) != (self.y_test == 1))))

    def _run_robust(self, facts: Facts) -> Outcome:
        data = _join(self.X, self.y, facts.X, facts.y)
        work = Workbench(self._paper_pool(data, facts.names))
        settings = np.sort(1.0 / (2.0 * AUTHORS_PENALTIES * len(data.y)))
        grid = Grid.of_all_rows(work, settings, THRESHOLD)
        best, model, _ = grid.minimise()
        return Outcome(self._error(model), C=float(settings[best]))

    def _error(self, model: np.ndarray, test: np.ndarray | None = None) -> float:
        """Error on the test rows of a model of shape (1, d)."""
        X = self.X_test if test is None else test
        predicted = X @ model[0].astype(X.dtype) > 0
        return float(np.mean(predicted != (self.y_test == 1)))

    # -- pools -------------------------------------------------------------------------------

    def _alone(self, X: np.ndarray) -> SourceData:
        return _grouped(X[None], self.y[None])

    def _paper_pool(self, data: SourceData, names: tuple[str, ...]) -> Pool:
        family = LogisticFamily(
            2, self.paper.regularisations, penalise_constant=True, tol=self.paper.tol
        )
        return self._pool(data, names, self.paper, "plug-in", family, self.folds)

    def _default_pool(self, data: SourceData, names: tuple[str, ...]) -> Pool:
        family = LogisticFamily(2, self.default.regularisations, tol=self.default.tol)
        return self._pool(data, names, self.default, "local", family, self.repeated_folds)

    def _pool(
        self,
        data: SourceData,
        names: tuple[str, ...],
        protocol: Protocol,
        discrepancy: str,
        family: LogisticFamily,
        folds: ReferenceFolds,
    ) -> Pool:
        return Pool(
            data=data,
            order=np.arange(len(data.y)),
            features=None,
            numeric=None,
            names=["reference", *names],
            seed=self.seed,
            protocol=protocol,
            discrepancy=discrepancy,
            family=family,
            folds=folds,
            scale=1.0,
        )


def _grouped(X: np.ndarray, y: np.ndarray) -> SourceData:
    """Sources of equal size, the first of them the reference."""
    n, m, d = X.shape
    return SourceData(
        X.reshape(n * m, d),
        y.reshape(n * m),
        m * np.arange(n + 1, dtype=np.intp),
        0,
        np.full(n * m, 1.0 / m),
        2,
    )


def _join(own_X: np.ndarray, own_y: np.ndarray, X: np.ndarray, y: np.ndarray) -> SourceData:
    """The reference's rows, then those of sources of equal size."""
    n, m, d = X.shape
    counts = np.concatenate([[len(own_y)], np.full(n, m, dtype=np.intp)])
    return SourceData(
        np.concatenate([own_X, X.reshape(n * m, d)]),
        np.concatenate([own_y, y.reshape(n * m)]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
        0,
        np.repeat(1.0 / counts, counts),
        2,
    )


def _grams(X: np.ndarray) -> np.ndarray:
    wide = X.astype(np.float64)
    return np.matmul(wide.transpose(0, 2, 1), wide) / X.shape[1]


def _local_models(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Logistic regression of each source; one class only: log-odds 1 for it, whatever the rest."""
    penalty = constant_penalty(X.shape[2], penalise=True)
    ones = np.ones((1, X.shape[1]))
    models = np.zeros((len(X), X.shape[2]))
    for i in range(len(X)):
        if y[i].min() == y[i].max():
            models[i, -1] = (2.0 * y[i, 0] - 1.0) / X[i, 0, -1]
        else:
            models[i] = newton_logistic(
                X[i], y[i], ones, np.array([LOCAL_C]), penalty=penalty, tol=NEWTON_TOL
            )[0, 0]
    return models
