"""
Labels from ten vendors
=======================

Ten vendors labelled handwritten digits as odd or even. Six of them did it badly, in three different
ways; sixty rows were checked in house. Who can be trusted, and what does it buy?
"""

# %%
# One array says where each row came from.
import matplotlib.pyplot as plt

import sourcewise as sw
from sourcewise.baselines import AllData, ReferenceOnly
from sourcewise.datasets import vendor_digits
from sourcewise.report import SourceWeightsDisplay

digits = vendor_digits()
X, y, vendor = digits.X, digits.y, digits.vendor
print(X.shape, sorted(set(vendor.tolist())))

# %%
# Fit, and print what was found out about each vendor.
model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
model.fit(X, y, sources=vendor)
print(model.report())

# %%
# Which vendors were really bad? The model was not told.
print(digits.spoiled)

# %%
# Error on rows of no vendor, beside the two obvious choices.
errors = {"sourcewise": 1 - model.score(digits.X_test, digits.y_test)}
for name, method in (("reference only", ReferenceOnly), ("all data", AllData)):
    other = method(reference="gold", random_state=0).fit(X, y, sources=vendor)
    errors[name] = 1 - other.score(digits.X_test, digits.y_test)
print({name: round(error, 3) for name, error in errors.items()})
assert errors["sourcewise"] < min(errors["reference only"], errors["all data"])

# %%
# The weights in one picture.
SourceWeightsDisplay.from_estimator(model)
plt.show()
