"""
Prices in another currency
==========================

Eight agencies report what flats cost. Two write prices in another currency, one exchanges columns,
and one invents numbers. The target is a number, so this is regression.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import sourcewise as sw
from sourcewise.report import DiscrepancyDisplay

rng = np.random.default_rng(0)


def flats(n):
    """Size in square metres, rooms, floor, distance to the centre in km; price in thousands."""
    size = rng.gamma(9, 8, n)
    rooms = np.maximum(1, np.round(size / 25 + rng.normal(0, 0.5, n)))
    floor = rng.integers(0, 9, n)
    distance = rng.gamma(3, 2, n)
    price = 40 + 3.2 * size + 8 * rooms + 2 * floor - 9 * distance + rng.normal(0, 25, n)
    return np.column_stack([size, rooms, floor, distance]), price


X, price = flats(80 + 8 * 100)
agency = np.repeat(["own sales", *(f"agency {letter}" for letter in "ABCDEFGH")], [80] + [100] * 8)
price[agency == "agency A"] *= 0.12  # another currency
price[agency == "agency B"] *= 0.12
rows = agency == "agency C"
X[rows] = X[rows][:, [3, 1, 2, 0]]  # columns exchanged
price[agency == "agency D"] = rng.normal(250, 60, 100)  # invented

# %%
model = sw.SourceWeightedRegressor(reference="own sales", random_state=0)
model.fit(X, price, sources=agency)
print(model.report())

# %%
# Root mean squared error on flats that nobody reported, in thousands.
X_new, price_new = flats(2000)
for name, fitted in (
    ("sourcewise", model),
    ("own sales only", model.at_trade_off(0.0)),
    ("all alike", model.at_trade_off(np.inf)),
):
    error = np.sqrt(np.mean((fitted.predict(X_new) - price_new) ** 2))
    print(f"{name:15} {error:6.1f}")

# %%
DiscrepancyDisplay.from_estimator(model)
plt.show()
