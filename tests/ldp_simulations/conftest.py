"""What the statistical tests of this folder share: one chi-square comparison and one campaign with every question."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text
from scipy.stats import chi2_contingency

from ldp_protocols import Campaign

FALSE_ALARM = 1e-6
"""Chance that one comparison of equal distributions fails; seeds are fixed, so a passing test keeps passing."""

LEAST_EXPECTED = 10
"""Outcomes expected less often than this in either sample are put together, as the chi-square law needs."""


def assert_same_distribution(first: Iterable[Hashable], second: Iterable[Hashable]) -> None:
    """Two-sample chi-square on the outcomes, rare ones pooled."""
    counts = Counter(first), Counter(second)
    outcomes = list(counts[0] | counts[1])
    table = np.array([[sample[outcome] for outcome in outcomes] for sample in counts], dtype=float)
    least_share = table.sum(axis=1).min() / table.sum()
    rare = table.sum(axis=0) * least_share < LEAST_EXPECTED
    if rare.any():
        table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    assert table.shape[1] > 1, "everything fell into one outcome: there is nothing to compare"
    p_value = chi2_contingency(table, correction=False).pvalue
    assert p_value > FALSE_ALARM, f"p = {p_value:.3g} over {table.shape[1]} outcomes"


@pytest.fixture
def same_distribution() -> Callable[[Iterable[Hashable], Iterable[Hashable]], None]:
    return assert_same_distribution


def everything(*, missing: bool = False, labelled: bool = True, **privacy: Any) -> Campaign:
    """A campaign with every kind of question; ``missing`` says that all features but one, which lists it, may be; one
    that is not ``labelled`` asks for two features together, too.
    """
    together = {"label": None, "pairs": [["colour", "age"], ["shape", "colour"]]}
    described = draft(
        text("colour", "red", "green", "blue", missing=missing),
        text("shape", "round", "missing", weight=3),
        number("age", high=100, bins=4, missing=missing),
        number("hours", -1, 7, missing=missing),
        **({"label": {"name": "outcome", "classes": ["yes", "no"], "weight": 2}} if labelled else together),
        privacy={"epsilon": 4.0, **privacy},
    )
    return Campaign.compile(described)


@pytest.fixture
def make_everything() -> Callable[..., Campaign]:
    return everything


def people(count: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Rows for :func:`everything`, some of them with missing, undeclared and out-of-bounds values."""
    rng = np.random.default_rng(seed)
    labels = pd.Series(rng.choice(["yes", "no"], size=count, p=[0.3, 0.7]))
    shift = (labels == "yes").to_numpy()
    age = rng.normal(40 + 30 * shift, 25)
    age[rng.random(count) < 0.1] = np.nan
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue", "mauve", None], size=count, p=[0.4, 0.2, 0.2, 0.1, 0.1]),
            "shape": rng.choice(["round", "square", None], size=count, p=[0.5, 0.3, 0.2]),
            "age": age,
            "hours": np.where(rng.random(count) < 0.1, np.nan, rng.normal(3 - shift, 3)),
        }
    )
    return frame, labels


@pytest.fixture
def make_people() -> Callable[[int, int], tuple[pd.DataFrame, pd.Series]]:
    return people
