"""Classification from sources of unknown quality."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from sourcewise import validation
from sourcewise.core.feature_map import linear_scores
from sourcewise.core.logistic import probabilities
from sourcewise.estimators.base import SourceWeightedBase


def _has_probabilities(model: Any) -> bool:
    return model.estimator is None or hasattr(model.estimator, "predict_proba")


def _has_scores(model: Any) -> bool:
    learner = getattr(model, "estimator_", model.estimator)
    return learner is None or hasattr(learner, "decision_function")


class SourceWeightedClassifier(ClassifierMixin, SourceWeightedBase):
    r"""Classifier for data from many sources, one of which is trusted.

    Every source is compared with the reference (its discrepancy :math:`d_i`), the weights
    :math:`\alpha` minimise the part of the generalisation bound that depends on them,

    .. math:: \sum_i \alpha_i d_i + \lambda \sqrt{\sum_i \alpha_i^2 / m_i},

    and the model minimises :math:`\sum_i \alpha_i \hat\epsilon_i(h)` (Konstantinov and Lampert,
    ICML 2019). Sources with :math:`d_i` above a cut-off get no weight, however many they are.

    Parameters
    ----------
    estimator : scikit-learn classifier that takes sample_weight, optional
        Default: our L2-regularised logistic regression (multinomial for several classes), features
        centred and scaled by the reference, regularisation chosen together with the trade-off.
    reference : hashable, default "reference"
        Name of the trusted source.
    discrepancy : {"combined", "local", "cross-fit", "plug-in"}
        How far a source lies from the reference; see :func:`sourcewise.estimate_discrepancies`.
    trade_off : "cv", "theory" or float
        Lambda. "cv": ten are tried on held-out reference rows, each with six regularisations, and
        the models are averaged by what they are worth there; of an estimator of your own, four
        models are (docs/method.md). "theory": about 4.44.
    cv : int
        Folds of the reference, at least 3; of an estimator of your own, no more than 5 are used.
    protocol : None or "paper"
        "paper" does what the paper's text says, and where it leaves a choice open: plug-in
        discrepancy with ridge 1e-6, recomputed without the validation rows; one joint grid of 22
        lambdas {0, 2^-10 .. 2^9, 10^4} and 10 values of C from 1e-4 to 1e4; lowest error rate
        summed over the folds, ties to the smallest lambda and then the smallest C; features as
        given; the intercept is a constant column, penalised like the others, and appended unless
        there is one; row weights :math:`\alpha_i / m_i` scaled to total the number of rows in use;
        C as in scikit-learn. ``discrepancy`` and ``scaling`` are then ignored.
    scaling : {"auto", "standard", "keep"}
        Of the default learner's features, by the reference's rows. "standard" gives all columns one
        standard deviation; "keep" keeps their proportions, as principal components, embeddings and
        pixels want it. "auto" standardises columns in different units, and others where held-out
        reference rows are clearly likelier with it, as they are where columns were standardised
        over the whole pool before. ``scaling_`` says which it was.
    via : {"weights", "resample"}
        How the weights reach an ``estimator`` of your own: as ``sample_weight``, or, for one that
        takes none, by drawing rows in proportion to them, which adds noise.
    n_jobs : int, optional
        Parallel fits of an ``estimator`` of your own; results do not depend on it.
    random_state : int, RandomState or None
        Deals the folds.
    keep_data : bool
        Keep the training rows, for :meth:`add_source`.
    strict : bool, default False
        For sources that may lie on purpose: features are cut off at the reference's 2.5 % and
        97.5 % quantiles, no source counts for more rows than twice the trusted ones, and the
        report warns sooner of regions in which a source goes against the reference. The paper's
        protocol has no part in it.
    verbose : bool
        Show progress bars (those of the command line; they need its extra ``cli``); of an estimator
        of your own also which of its fits is under way, of how many at most.

    Attributes
    ----------
    source_column_ : str
        Column of ``X`` that the sources came from, if ``fit`` was given its name.
    sources_ : array of shape (n_sources,)
        Names, in order of first appearance.
    source_weights_ : array of shape (n_sources,)
        :math:`\alpha`; they sum to 1.
    discrepancies_ : array of shape (n_sources,)
        :math:`d`; 0 for the reference.
    discrepancy_result_ : Discrepancies
        The same with standard errors, p-values and witnesses.
    copies_ : int array of shape (n_sources,), or None where nobody could look
        Rows that repeat trusted ones and were left out.
    source_sizes_, source_rows_ : arrays of shape (n_sources,)
        Effective sizes :math:`m_i` and rows.
    trade_off_, cutoff_ : float
        :math:`\lambda`, and :math:`\mu` above which a discrepancy means no weight. With "cv", the
        lambda with the largest share in the average; what is beyond its cut-off may keep a trace.
    selection_ : Selection
        Cross-validated losses of all pairs of trade-off and regularisation, and the share of each
        pair in the model.
    classes_ : array of shape (n_classes,)
        The reference's labels.
    coef_, intercept_ : arrays
        Of the default learner, in the units of ``X``.
    C_ : float
        Regularisation of the default learner; with "cv", the one with the largest share.
    scaling_ : {"standard", "keep"} or None
        How the default learner's features were scaled; None under the paper's protocol and for an
        estimator of your own.
    feature_range_ : array of shape (2, n_features)
        Lowest and highest value of each feature, a hundred units of the reference to either side:
        for the default learner, what lies beyond lies there, in training and in ``predict``.
    estimator_ : scikit-learn classifier
        If an ``estimator`` was given: with "cv", what averages the fitted models, which are its
        ``members``, by their log-odds; otherwise the fitted ``estimator``.

    Examples
    --------
    >>> import numpy as np
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(700, 5))
    >>> y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    >>> vendor = np.repeat(["gold", "careful", "careless"], [100, 300, 300])
    >>> y[400:] = rng.permutation(y[400:])  # the careless vendor's labels are noise
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(X, y, sources=vendor)
    >>> model.source_weights_.round(1)
    array([0.3, 0.7, 0. ])
    """

    def _scores(self, X: Any) -> np.ndarray:
        return np.asarray(linear_scores(X, self.coef_, self.intercept_, self.feature_range_))

    def predict(self, X: Any) -> np.ndarray:
        """Most probable class of each row."""
        X = self._check_new_features(X)
        if not self._wants_numbers:
            return np.asarray(self.estimator_.predict(X))
        scores = self._scores(X)
        best = (scores[:, 0] > 0).astype(np.intp) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, in the order of ``classes_``."""
        X = self._check_new_features(X)
        if self._wants_numbers:
            return probabilities(self._scores(X))
        result = np.zeros((validation.n_rows_of(X), len(self.classes_)))
        seen = np.searchsorted(self.classes_, self.estimator_.classes_)
        result[:, seen] = self.estimator_.predict_proba(X)
        return result

    @available_if(_has_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> np.ndarray:
        """Score of each class; of two classes, one score a row, positive for the second."""
        X = self._check_new_features(X)
        if self._wants_numbers:
            scores = self._scores(X)
            return scores[:, 0] if scores.shape[1] == 1 else scores
        scores = np.asarray(self.estimator_.decision_function(X))
        known = self.estimator_.classes_
        if len(known) == len(self.classes_):
            return scores
        if scores.ndim == 1:
            scores = np.stack([-scores, scores], axis=1)
        # What the learner was never shown is what it would choose last.
        result = np.full((len(scores), len(self.classes_)), np.finfo(np.float64).min)
        result[:, np.searchsorted(self.classes_, known)] = scores
        return result
