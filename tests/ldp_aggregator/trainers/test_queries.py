"""The textbook queries, and the attack that they stop."""

import re
import runpy
from pathlib import Path

import numpy as np
import pytest

from ldp_aggregator.trainers import private_count, private_mean

pytestmark = pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.noise.randomness.PrivacyWarning")

ROOT = Path(__file__).resolve().parents[3]


def test_a_count_is_unbiased_with_the_variance_of_its_noise_and_that_of_a_mean_is_the_range_over_n():
    """2,000 counts: mean within 4 standard errors, variance within 5 (20 %). 500 means of 1,000 values; the relative
    error of a mean absolute deviation has sd 4.5 %, 20 % is four.
    """
    flags = [True] * 30 + [False] * 70
    rng = np.random.default_rng(1)
    counts = np.array([private_count(flags, epsilon=0.5, random_state=rng) for _ in range(2000)])
    expected = 2 * np.exp(-0.5) / np.expm1(-0.5) ** 2
    assert counts.mean() == pytest.approx(30, abs=4 * np.sqrt(expected / 2000))
    assert counts.var() == pytest.approx(expected, rel=0.2)
    means = [private_mean([0.5] * 1000, low=0, high=1, epsilon=0.1, random_state=rng) for _ in range(500)]
    assert np.abs(np.array(means) - 0.5).mean() == pytest.approx(1 / 1000 / 0.1, rel=0.2)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_mean_comes_near_with_a_large_epsilon_and_stays_in_its_bounds_with_a_small_one(relation):
    values = [1.0, 2.0, 3.0, 1e9]
    near = private_mean(values, low=0, high=10, epsilon=1e6, relation=relation, random_state=1)
    assert near == pytest.approx(4.0, abs=0.01)
    for seed in range(20):
        far = private_mean(values, low=0, high=10, epsilon=1e-3, relation=relation, random_state=seed)
        assert 0 <= far <= 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [], "low": 0, "high": 1}, "the mean of no values"),
        ({"values": [1], "low": 1, "high": 1}, "low must be below high"),
        ({"values": [1], "low": 0, "high": 1, "relation": "?"}, "relation must be"),
    ],
)
def test_what_has_no_mean_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        private_mean(epsilon=1.0, **arguments)


def test_the_salary_example_shows_the_attack_and_the_defence(capsys):
    example = runpy.run_path(str(ROOT / "examples" / "salary_attack.py"))
    assert example["deduce"](60_500.0, 66_033.333333333333, 6) == pytest.approx(93_700, abs=0.01)
    example["main"]()
    first, *private = capsys.readouterr().out.splitlines()
    assert first.endswith("Mallory earns 93,700")
    guesses = {line.split("earns ")[1].split(" ")[0] for line in private}
    assert len(private) == 3
    assert "93,700" not in guesses


def test_every_figure_of_the_page_is_there():
    docs = ROOT / "docs"
    links = re.findall(r"\]\((figures/[^)]+)\)", (docs / "trainers.md").read_text(encoding="utf-8"))
    assert len(set(links)) == 2
    assert all((docs / link).is_file() for link in links)
