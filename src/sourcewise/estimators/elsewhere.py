"""Input whose untrusted rows are elsewhere: only the reference's are checked here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sourcewise import validation
from sourcewise.core.copies import NOT_HERE, TWINS
from sourcewise.core.discrepancy.methods import LINEAR
from sourcewise.core.engine import OpenSources, TrustedRows
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.copies import CopyRule
from sourcewise.estimators.feature_map import FeatureMap
from sourcewise.estimators.input import SourceInput, forget_fit
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.row_rules import RowRules
from sourcewise.estimators.rows import Rows


class ElsewhereInput(SourceInput):
    """Estimator that can also be fitted to sources which only an engine can reach."""

    def _validate_reference(self, trusted: TrustedRows, may_travel: bool) -> tuple[Rows, RowRules]:
        """Check trusted rows whose untrusted ones are elsewhere; return the rules for these."""
        self._check_options()
        validation.check_own_learner(self.estimator)
        validation.check_targets_given(trusted.y, type(self).__name__)
        forget_fit(self)
        X = self._check_features(trusted.X, reset=True)
        codes = np.zeros(validation.n_rows_of(X), dtype=np.intp)
        names = [self.reference]
        rows = self._check_rows(X, trusted.y, names, codes, trusted.sample_weight)
        self._learn_reference(rows.y, np.ones(len(rows.y), dtype=bool))
        how = self._choices()
        if how.as_given:
            features = FeatureMap.as_given(rows.X)
            validation.check_no_constant(not features.constant)
        else:
            validation.check_reference_magnitude(rows.X, self.reference, self._columns)
            targets = self._task.encode(rows.y, rows.codes, names, 0)
            features = self._learn_map(rows.X, targets, how)
        copies = None
        if how.without_copies:
            copies = CopyRule.learn(rows.X, how) if may_travel else None
            self._set_copies(None, unsought=TWINS if may_travel else NOT_HERE)
        else:
            self._set_copies(None)
        return rows, RowRules(
            self.reference,
            features,
            None if self._columns is None else tuple(self._columns),
            self.n_features_in_,
            as_given=how.as_given,
            copies=copies,
            **self._task.rules,
        )

    def _pool_elsewhere(self, opened: OpenSources, rows: Rows, rules: RowRules) -> Pool:
        names = list(opened.names)
        own = rules.reference_rows(rows)
        # Where there is nobody to ask, no engine is asked.
        engine = opened.engine if names else MemorySources(own.as_data(), [])
        both = engine, own
        names.insert(opened.position, self.reference)
        if rules.copies is not None:
            counts = opened.copies
            counts = None if counts is None else np.insert(counts, opened.position, 0)
            self._set_copies(counts, by_chance=rules.copies.usual)
        as_numbers = both if self._discrepancy_name() in LINEAR else None
        pool = self._pool_of(*both, opened.position, names, rules.features, as_numbers)
        if opened.learner is None:
            return pool
        return replace(pool, family=opened.learner(pool.family))
