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
MANY = trials(2500)
"""Enough to find most of a single question's loss."""

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
            "the kind of bit by the class",
            "equal bits in the clear",
            "a candidate that is right",
            "wrong votes in the clear",
            "what is missing in the clear",
            "votes on all candidates",
        ],
    ),
)
def test_a_flaw_around_a_mechanism_is_caught(flaw):
    make, code = AROUND[flaw]
    assert code in codes(audited(make(), Around(flaw), FEW))


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


def test_both_bits_of_a_feature_are_an_answer_too_many():
    make, code = AROUND["both bits of a feature"]
    assert code in codes(audited(make(), Around("both bits of a feature"), MANY // 2))


@pytest.mark.parametrize(
    "flaw",
    [
        "the parts of a triple for themselves",
        "the first cell of a triple in the clear",
        "the class of signs in the clear",
        "the missing cell of signs in the clear",
        "a triple drawn by the class",
    ],
)
def test_a_flaw_of_a_joint_question_is_caught(flaw):
    make, code = AROUND[flaw]
    assert code in codes(audited(make(), Around(flaw), MANY // 2))


def test_a_missing_share_that_is_told_twice_is_caught():
    """It loses 4.8 instead of 2.5, of which it takes more trials to prove the excess."""
    make, code = AROUND["the missing share of signs told twice"]
    assert code in codes(audited(make(), Around("the missing share of signs told twice"), MANY))


@pytest.mark.parametrize(
    "flaw",
    [
        "the first cell of a triple in the clear",
        "the class of signs in the clear",
        "the missing cell of signs in the clear",
    ],
)
def test_a_campaign_of_joint_questions_passes_and_much_of_its_loss_is_found(flaw):
    """At epsilon 3 and eight cells, or ten, a wrong answer comes once in 27 reports, to be told from none."""
    result = audited(AROUND[flaw][0](), RealClient(), MANY)
    assert result.findings == ()
    assert 0.75 * result.stated <= result.lower_bound <= result.stated


@pytest.mark.parametrize("flaw", ["both bits of a feature", "votes on all candidates"])
def test_a_campaign_of_bits_passes_and_most_of_its_loss_is_found(flaw):
    result = audited(AROUND[flaw][0](), RealClient(), MANY)
    assert result.findings == ()
    assert 0.85 * result.stated <= result.lower_bound <= result.stated


def test_a_campaign_of_several_questions_passes():
    assert audited(two_features(), RealClient(), FEW).findings == ()
