"""Each planted flaw is caught, with its reason; the same clients without it pass.

By default a bounded number of trials; set LDP_BAYES_AUDIT_TRIALS (20000, the command's default, or more) for all of
them at length. The audit is wrong about a sound client with probability at most 0.1 %, and the seeds here are fixed.
"""

from __future__ import annotations

import os

import pytest
from mutants import MUTANTS, Copy, RealClient, document_of, question, two_features
from mutants_around import AROUND, Around

from ldp_aggregator.audit import audit

TRIALS = int(os.environ.get("LDP_BAYES_AUDIT_TRIALS", "2500"))

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


def codes(result):
    """What is impossible for somebody is a loss above the claim too: chance says which of the two is told."""
    found = {finding.code for finding in result.findings}
    return found | {LOSS} if IMPOSSIBLE in found else found


@pytest.mark.parametrize("flaw", MUTANTS)
def test_a_flaw_of_a_mechanism_is_caught(flaw):
    assert MUTANTS[flaw][-1] in codes(audit(document_of(flaw), Copy(flaw), TRIALS))


@pytest.mark.parametrize("mechanism", ["de", "oue", "sue", "laplace"])
def test_the_same_copy_without_a_flaw_passes(mechanism):
    assert audit(question(mechanism, 4, 1.0), Copy(None), TRIALS // 2).findings == ()


@pytest.mark.parametrize("flaw", AROUND)
def test_a_flaw_around_a_mechanism_is_caught(flaw):
    make, code = AROUND[flaw]
    assert code in codes(audit(make(), Around(flaw), TRIALS))


@pytest.mark.parametrize("flaw", AROUND)
def test_the_same_client_without_the_flaw_passes(flaw):
    assert audit(AROUND[flaw][0](), Around("none"), TRIALS // 2).findings == ()


@pytest.mark.parametrize("mechanism", TIGHT)
def test_a_real_mechanism_passes_and_most_of_its_own_loss_is_found(mechanism):
    size, epsilon = TIGHT[mechanism]
    result = audit(question(mechanism, size, epsilon), RealClient(), TRIALS)
    assert result.findings == ()
    assert result.lower_bound <= result.stated
    assert result.reached >= 0.85


def test_a_campaign_of_several_questions_passes():
    result = audit(two_features(), RealClient(), TRIALS)
    assert result.findings == ()
    assert 0.85 <= result.reached <= 1.0
