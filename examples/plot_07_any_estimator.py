"""
Your own estimator
==================

The weights are not tied to our linear model. Any classifier or regressor that takes
``sample_weight`` can be trained with them.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

import sourcewise as sw
from sourcewise.datasets import vendor_digits

digits = vendor_digits()
learners = {
    "forest": RandomForestClassifier(50, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=30, random_state=0),
}
try:
    from lightgbm import LGBMClassifier
except ImportError:
    print("LightGBM is not installed; it would be used like the others.")
else:
    learners["LightGBM"] = LGBMClassifier(n_estimators=30, verbose=-1, random_state=0)
try:
    from xgboost import XGBClassifier
except ImportError:
    print("XGBoost is not installed; it would be used like the others.")
else:
    learners["XGBoost"] = XGBClassifier(n_estimators=30, n_jobs=1, random_state=0)

# %%
# Each learner on the reference alone, on everything, and inside sourcewise. The trade-off of theory
# trains it once, on weighted sources; by default four ways to train are averaged by what they are
# worth on held-out trusted rows, which takes 18 fits and makes a better model.
gold = digits.vendor == "gold"
errors = {}
for name, learner in learners.items():
    weighted = sw.SourceWeightedClassifier(
        learner, reference="gold", trade_off="theory", random_state=0
    )
    fits = {
        "reference only": learner.fit(digits.X[gold], digits.y[gold]).predict(digits.X_test),
        "all data": learner.fit(digits.X, digits.y).predict(digits.X_test),
        "sourcewise": weighted.fit(digits.X, digits.y, sources=digits.vendor).predict(
            digits.X_test
        ),
    }
    errors[name] = {how: float((found != digits.y_test).mean()) for how, found in fits.items()}
    print(name, {how: round(error, 3) for how, error in errors[name].items()})
    assert errors[name]["sourcewise"] == min(errors[name].values())

# %%
for k, how in enumerate(("reference only", "all data", "sourcewise")):
    at = [i + 0.25 * k for i in range(len(errors))]
    plt.bar(at, [found[how] for found in errors.values()], width=0.22, label=how)
plt.xticks([i + 0.25 for i in range(len(errors))], list(errors))
plt.ylabel("test error")
plt.legend()
plt.show()
