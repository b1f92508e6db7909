"""
What did the vendor do wrong?
=============================

A source that is set aside has somebody behind it who wants to know why. The audit guesses what
went wrong, but only where the rows speak clearly for one kind of mistake, and says what to ask.
"""

# %%
# Six vendors label the digits 1 to 4. Five of them make a mistake each.
import json
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

X, digit = load_digits(n_class=5, return_X_y=True)
X, digit = X[digit > 0], digit[digit > 0]
rng = np.random.default_rng(0)
order = rng.permutation(len(digit))[: 7 * 100]
X, digit = X[order], digit[order]
vendor = np.repeat(["gold", "Ada", "Bo", "Cem", "Dov", "Eve", "Fay"], 100)
labels = digit.copy()

ada, bo, cem, dov, eve = (vendor == name for name in ("Ada", "Bo", "Cem", "Dov", "Eve"))
labels[ada & (digit == 2)], labels[ada & (digit == 3)] = 3, 2  # two classes exchanged
labels[bo & (digit == 4)] = 1  # a class that is never used
labels[cem] = rng.permutation(labels[cem])  # the labels of other rows
X[dov] = X[dov][:, rng.permutation(X.shape[1])]  # columns in another order
X[eve] = X[eve][:, ::-1]  # two mistakes: columns in another order,
labels[eve] = rng.permutation(labels[eve])  # and the labels of other rows

table = pd.DataFrame(X, columns=[f"pixel{k}" for k in range(X.shape[1])])
table["digit"] = [f"digit {label}" for label in labels]
table["vendor"] = vendor

# %%
# In a terminal this is ``sourcewise audit vendors.csv --label digit --source vendor --reference
# gold -o report.json``; with ``-o report.html`` it writes the page that says the same.
with tempfile.TemporaryDirectory() as folder:
    data, report = Path(folder, "vendors.csv"), Path(folder, "report.json")
    table.to_csv(data, index=False)
    command = ["audit", data, "--label", "digit", "--source", "vendor", "--reference", "gold"]
    subprocess.run(
        [sys.executable, "-m", "sourcewise.cli", *command, "-o", report, "--quiet"], check=True
    )
    audit = json.loads(report.read_text(encoding="utf-8"))
print(audit["verdict"]["sentence"])

# %%
# For each source that disagrees there is a card: the guess, what it rests on, and what to ask.
# Where rows fit several mistakes, or show two at once as Eve's do, it says that it cannot tell.
cards = {card["source"]: card for card in audit["set_aside"] + audit["doubted"]}
for name, card in sorted(cards.items()):
    print(f"{name}: {card['kind']}")
    for sentence in (card["why"], card["question"]):
        print(textwrap.indent(textwrap.fill(sentence, 80), "   "))

# %%
# It rather says nothing than something wrong.
right = {
    "Ada": "two classes swapped",
    "Bo": "class relabelled",
    "Cem": "shuffled labels",
    "Dov": "columns permuted",
}
told = {name: card["kind"] for name, card in cards.items() if card["kind"] != "cannot tell"}
assert set(cards) == {"Eve", *right}
assert len(told) >= 3 and all(right[name] == kind for name, kind in told.items())

# %%
# How often the labels are what the model expects, beside the same for trusted rows that it has not
# seen (dashed).
names = sorted(cards)
bars = plt.barh(names, [cards[name]["agreement"] for name in names])
plt.bar_label(bars, [cards[name]["kind"] for name in names], padding=4)
plt.axvline(cards[names[0]]["reference_agreement"], color="0.4", linestyle="dashed")
plt.gca().invert_yaxis()
plt.xlim(0, 1.1)
plt.xlabel("share of labels that the model expects")
plt.show()
