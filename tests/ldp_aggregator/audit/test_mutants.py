"""Each planted flaw is caught, with its reason; the same clients without it pass.

Every run takes a few of the clients and few trials; LDP_BAYES_AUDIT_TRIALS (20000, the command's default) takes all of
them at length. The audit is wrong about a sound client with probability at most 0.1 %, and all seeds here are fixed.
"""

from __future__ import annotations

import numpy as np
import pytest
from audited import chosen, trials
from mutants import MUTANTS, Copy, RealClient, document_of, question, two_features
from mutants_around import AROUND, Around

from ldp_aggregator.audit import Audit, Client, audit
from ldp_aggregator.audit.verdict import IMPOSSIBLE, LOSS

FEW = trials(300)
SOME = trials(1200)
MANY = trials(2500)
"""Enough to find most of a single question's loss."""

ON_SOME_MODELS = ("a model that is right", "wrong answers in the clear")
"""Flaws that show only with people about whom a model is wrong: of ten audits, 300 trials find them in none."""

ON_DRAWN = (
    "two values together in the clear",
    "values in between in the clear",
    "numbers in between in the clear",
)
"""Flaws that show with people who are drawn, who are asked an eighth as often."""

TIGHT = {
    "de": (4, 1.0),
    "sue": (8, 1.0),
    "oue": (8, 1.0),
    "the": (8, 1.0),
    "ss": (8, 1.0),
    "she": (2, 1.0),
    "laplace": (2, 1.0),
    "onebit": (2, 1.0),
    "sign": (2, 1.0),
}
"""Mechanism to cells (classes) and epsilon; all but ``the`` have an event of the whole of exp(epsilon)."""


def audited(document: str, client: Client, times: int) -> Audit:
    return audit(document, client, times, rng=np.random.default_rng(1))


def codes(result: Audit) -> set[str]:
    """What is impossible for somebody is a loss above the claim too: chance says which of the two is told."""
    found = {finding.code for finding in result.findings}
    return found | {LOSS} if IMPOSSIBLE in found else found


@pytest.mark.parametrize(
    "flaw",
    chosen(MUTANTS, ["true bit not cleared", "floating-point noise", "fresh noise on retry"]),
)
def test_a_flaw_of_a_mechanism_is_caught(flaw):
    assert MUTANTS[flaw][-1] in codes(audited(document_of(flaw), Copy(flaw), FEW))


@pytest.mark.parametrize("mechanism", chosen(["de", "oue", "sue", "laplace"], ["de", "laplace"]))
def test_the_same_copy_without_a_flaw_passes(mechanism):
    assert audited(question(mechanism, 4, 1.0), Copy(None), FEW // 2).findings == ()


@pytest.mark.parametrize(
    "flaw",
    chosen(
        AROUND,
        [
            "the record in the id",
            "the class in the version",
            "coins from a constant seed",
            "the missing cell of a sign in the clear",
            "a model that is right",
            "wrong answers in the clear",
            "what is missing in the clear",
            "noise from the id",
            "both questions of an evaluation",
        ],
    ),
)
def test_a_flaw_around_a_mechanism_is_caught(flaw):
    make, code = AROUND[flaw]
    assert code in codes(audited(make(), Around(flaw), SOME if flaw in ON_SOME_MODELS else FEW))


@pytest.mark.parametrize("flaw", chosen(AROUND, ["coins from a constant seed"]))
def test_the_same_client_without_the_flaw_passes(flaw):
    assert audited(AROUND[flaw][0](), Around("none"), FEW // 2).findings == ()


@pytest.mark.parametrize("mechanism", chosen(TIGHT, ["de"]))
def test_a_real_mechanism_passes_and_most_of_its_own_loss_is_found(mechanism):
    size, epsilon = TIGHT[mechanism]
    result = audited(question(mechanism, size, epsilon), RealClient(), MANY)
    assert result.findings == ()
    assert result.lower_bound <= result.stated
    assert result.reached >= 0.85


@pytest.mark.parametrize("flaw", chosen(ON_DRAWN, ["two values together in the clear"]))
def test_no_noise_for_people_whom_nobody_foresees_is_caught(flaw):
    make, code = AROUND[flaw]
    assert code in codes(audited(make(), Around(flaw), MANY))


def test_a_seed_of_48_bits_is_not_caught():
    """It takes 2^24 devices to meet one seed twice, and 2^48 tries to find it."""
    assert audited(question("de", 8, 1.0), Around("a seed of 48 bits"), FEW).passed


def test_a_device_that_answers_two_campaigns_of_a_study_is_caught():
    assert "study-answered-twice" in codes(audited(two_features(), Copy("fresh noise on retry"), FEW))


def test_value_and_square_of_a_number_are_an_answer_too_many():
    """It loses 2 instead of 1, of which it takes more trials to prove the excess."""
    make, code = AROUND["value and square of a number"]
    assert code in codes(audited(make(), Around("value and square of a number"), MANY // 2))


@pytest.mark.parametrize("flaw", ["value and square of a number", "both questions of an evaluation"])
def test_a_campaign_of_few_cells_passes_and_most_of_its_loss_is_found(flaw):
    result = audited(AROUND[flaw][0](), RealClient(), MANY)
    assert result.findings == ()
    assert 0.85 * result.stated <= result.lower_bound <= result.stated


def test_a_campaign_of_several_questions_passes():
    assert audited(two_features(), RealClient(), FEW).findings == ()
