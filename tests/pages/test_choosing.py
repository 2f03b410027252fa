"""What the page on choosing says of mechanisms and of epsilon is computed."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from protocols.drafting.choice import make_discrete

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "how-to" / "choose.md").read_text(encoding="utf-8")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CELLS = (2, 3, 4, 6, 8, 12, 20, 32, 64, 128)
NOT_BEST = ("oue", "sue", "the", "she")


def variance(name: str, cells: int, epsilon: float) -> float:
    return make_discrete(name, cells, Fraction(str(epsilon))).noise_variance(1 / cells)


def row(beginning: str) -> list[str]:
    (found,) = re.findall(rf"^\| {re.escape(beginning)}.*$", PAGE, re.MULTILINE)
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def test_the_odds_and_the_noise_over_epsilon_are_those_of_the_table():
    assert row("epsilon") == [f"{epsilon:g}" for epsilon in EPSILONS]
    # "At most" is rounded up.
    beliefs = [f"{math.ceil(100 * math.exp(epsilon) / (1 + math.exp(epsilon)))} %" for epsilon in EPSILONS]
    assert row("from 50 % to at most") == beliefs
    noise = [math.sqrt(variance("auto", 8, epsilon) / variance("auto", 8, 1.0)) for epsilon in EPSILONS]
    assert row("standard error of a frequency") == [f"{one:.2f}" for one in noise]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_direct_encoding_has_the_least_noise_below_the_number_of_cells_that_the_page_says(epsilon):
    limit = 1.4 * (math.exp(epsilon) + 1)
    assert "1.4 (exp(epsilon) + 1)" in PAGE
    for cells in CELLS:
        names = {"de": variance("de", cells, epsilon), "ss": variance("ss", cells, epsilon)}
        assert (names["de"] <= names["ss"]) == (cells < limit), cells


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_subset_selection_is_never_worse_than_what_the_page_calls_never_best(epsilon):
    for cells in CELLS:
        assert variance("auto", cells, epsilon) == variance("ss", cells, epsilon)
        for name in NOT_BEST:
            assert variance("ss", cells, epsilon) < variance(name, cells, epsilon), (name, cells)
