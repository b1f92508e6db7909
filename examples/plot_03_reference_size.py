"""
Is my reference large enough?
=============================

The reference is the only thing that is trusted, so its size decides how small a difference can be
seen.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.baselines import ReferenceOnly
from sourcewise.datasets import vendor_digits

# %%
# Ask the fitted model.
digits = vendor_digits(trusted_rows=60)
model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
model.fit(digits.X, digits.y, sources=digits.vendor)
print(model.reference_adequacy())

# %%
# With more trusted rows both ways of learning get better; the smaller the reference, the more the
# vendors are worth.
sizes = [20, 60, 200]
errors = {"reference only": [], "sourcewise": []}
for size in sizes:
    draws = [vendor_digits(trusted_rows=size, random_state=seed) for seed in range(3)]
    for name, method in (
        ("reference only", ReferenceOnly),
        ("sourcewise", sw.SourceWeightedClassifier),
    ):
        found = [
            1
            - method(reference="gold", random_state=0)
            .fit(draw.X, draw.y, sources=draw.vendor)
            .score(draw.X_test, draw.y_test)
            for draw in draws
        ]
        errors[name].append(np.mean(found))

for name, values in errors.items():
    plt.plot(sizes, values, marker="o", label=name)
plt.xscale("log")
plt.xticks(sizes, [str(size) for size in sizes])
plt.xlabel("trusted rows")
plt.ylabel("test error (three draws)")
plt.legend()
plt.show()
