"""Verdicts follow from means and their standard errors."""

from __future__ import annotations

import pandas as pd
import pytest

from simulations.figures.pages.comparisons import CLEAR, Comparison, compare, listed, markdown_table, verdict


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ((0.1, 0.01), "confirmed"),
        ((-0.1, 0.01), "contradicted"),
        ((0.1, -0.1), "mixed"),
        ((0.02, -0.02), "undecided"),
    ],
)
def test_a_verdict_takes_differences_beyond_the_noise(differences, word):
    assert Comparison(differences, (0.01, 0.01)).word == word


def test_a_comparison_counts_what_is_clear_and_names_the_mean():
    noise = 0.01
    found = Comparison((CLEAR * noise + 0.001, CLEAR * noise - 0.001, -0.2), (noise,) * 3)
    assert (found.clearly_higher, found.clearly_lower) == (1, 1)
    assert str(found) == "mixed, clearly higher in 1 and clearly lower in 1 of 3, mean -0.047"


def test_curves_are_compared_where_both_have_a_point():
    first = pd.DataFrame({"epsilon": [0.1, 1.0], "accuracy": [0.6, 0.8], "standard_error": [0.03, 0.04]})
    second = pd.DataFrame({"epsilon": [1.0, 10.0], "accuracy": [0.7, 0.9], "standard_error": [0.03, 0.01]})
    found = compare(first, second, ["epsilon"])
    assert found.differences == pytest.approx([0.1])
    assert found.noise == pytest.approx([0.05])


@pytest.mark.parametrize(("won", "word"), [(9, "confirmed"), (8, "mixed"), (5, "mixed"), (4, "contradicted")])
def test_a_count_is_confirmed_above_four_fifths_and_contradicted_below_half(won, word):
    assert verdict(won, 10) == word


def test_texts_of_a_page():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert markdown_table(["x", "y"], [["a", "1"]]) == "| x | y |\n| --- | ---: |\n| a | 1 |"
