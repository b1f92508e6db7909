"""
A new source arrives
====================

Next month an eleventh vendor sends rows. The others are not measured again.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.datasets import vendor_digits
from sourcewise.report import SourceWeightsDisplay

digits = vendor_digits()
late = digits.vendor == "vendor-10"
model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
model.fit(digits.X[~late], digits.y[~late], sources=digits.vendor[~late])
before = 1 - model.score(digits.X_test, digits.y_test)

# %%
# The newcomer is measured, all weights are solved again, and the model is trained again.
model.add_source(digits.X[late], digits.y[late], name="vendor-10")
after = 1 - model.score(digits.X_test, digits.y_test)
print(f"error {before:.3f} before, {after:.3f} with the new vendor")
print("its weight:", model.source_weights_[-1].round(3))

# %%
# The result is that of fitting everything from scratch.
whole = sw.SourceWeightedClassifier(reference="gold", random_state=0)
order = np.concatenate([np.flatnonzero(~late), np.flatnonzero(late)])
whole.fit(digits.X[order], digits.y[order], sources=digits.vendor[order])
assert np.allclose(whole.source_weights_, model.source_weights_, atol=1e-8)

SourceWeightsDisplay.from_estimator(model)
plt.show()
