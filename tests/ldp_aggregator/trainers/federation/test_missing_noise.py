"""What a sum with too little noise loses: by convolution, by its limit, by brute force, and as the page prints it."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from ldp_aggregator.trainers.federation.missing_noise import loss_of_part, most_loss_of_part

PAGE = Path(__file__).resolve().parents[4] / "docs" / "trainers.md"


def losses_everywhere(part, claim, steps):
    """|ln P(x) / P(x + steps)| for x out to 5 scales, with scipy's law: nothing of the code, and not at 0 alone."""
    scale = steps / claim
    masses = stats.nbinom.pmf(np.arange(math.ceil(30 * scale)), part, -math.expm1(-1 / scale))
    law = np.correlate(masses, masses, "full")
    middle, reach = len(masses) - 1, math.ceil(5 * scale)
    places = middle + np.arange(-reach, reach)
    return np.abs(np.log(law[places] / law[places + steps]))


@pytest.mark.parametrize(("claim", "steps"), [(1.0, 1), (0.2, 1), (2.0, 5), (1.0, 60), (0.3, 12)])
@pytest.mark.parametrize("part", [1.0, 0.9, 0.7, 0.5, 0.3])
def test_it_is_the_largest_log_ratio_of_neighbours_anywhere(part, claim, steps):
    assert loss_of_part(part, claim, steps) == pytest.approx(losses_everywhere(part, claim, steps).max(), rel=1e-6)


@pytest.mark.parametrize(("part", "loss"), [(1.0, 1.0), (0.9, 1.19), (0.8, 1.44), (0.7, 1.80), (0.5, 3.1), (0.4, 4.3)])
def test_a_sum_that_claims_one_loses_on_a_grid_of_2000_steps(part, loss):
    assert round(loss_of_part(part, 1.0, 2000), 1 if part <= 0.5 else 2) == loss


@pytest.mark.parametrize("claim", [0.01, 0.1, 1.0, 5.0])
def test_all_of_the_noise_keeps_the_claim(claim):
    for steps in (1, 10, 200):
        assert loss_of_part(1.0, claim, steps) == pytest.approx(claim, rel=1e-9)
    assert most_loss_of_part(1.0, claim) == pytest.approx(claim)


@pytest.mark.parametrize("claim", [0.1, 1.0])
def test_a_finer_grid_loses_more_up_to_the_limit(claim):
    for part in (0.9, 0.8, 0.7):
        losses = [loss_of_part(part, claim, steps) for steps in (1, 10, 100, 1000, 10_000)]
        assert losses == sorted(losses)
        assert losses[-1] < most_loss_of_part(part, claim) < 1.05 * losses[-1]
    assert most_loss_of_part(0.5, claim) == math.inf


def test_small_claims_lose_by_a_larger_factor():
    factors = [most_loss_of_part(0.8, claim) / claim for claim in (2.0, 1.0, 0.5, 0.1)]
    assert factors == sorted(factors)


@pytest.mark.parametrize(
    ("part", "claim", "steps"), [(0.0, 1, 1), (1.1, 1, 1), (0.5, 0, 1), (0.5, math.inf, 1), (0.5, 1, 0)]
)
def test_what_is_no_part_claim_or_grid_is_refused(part, claim, steps):
    with pytest.raises(ValueError, match="must be"):
        loss_of_part(part, claim, steps)


def test_the_table_of_the_page_is_what_the_code_says():
    rows = re.findall(r"^\| (0\.\d|1) \|(.*)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row[0] for row in rows] == ["1", "0.9", "0.8", "0.7", "0.6", "0.5"]
    for part, cells in rows:
        r = float(part)
        for claim, printed in zip((1.0, 0.1), np.array_split(np.array(cells.split("|")), 2), strict=True):
            computed = [loss_of_part(r, claim, 1), loss_of_part(r, claim, 2000), most_loss_of_part(r, claim)]
            wanted = ["unbounded" if math.isinf(loss) else f"{loss / claim:.2f}" for loss in computed]
            assert [cell.strip() for cell in printed] == wanted, part
