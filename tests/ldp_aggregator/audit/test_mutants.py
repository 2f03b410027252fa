"""Each planted flaw is caught; the same copies without it, and the real client, pass.

By default a bounded number of trials; set LDP_BAYES_AUDIT_TRIALS (100000, say) for more. The audit is wrong about a
sound client with probability at most 1 %, and every seed here is fixed.
"""

from __future__ import annotations

import os

import pytest
from mutants import MUTANTS, Copy, RealClient, document_of, question, two_features

from ldp_aggregator.audit import audit
from protocols import Campaign

TRIALS = int(os.environ.get("LDP_BAYES_AUDIT_TRIALS", "20000"))
REAL_TRIALS = TRIALS // 2 if TRIALS <= 20_000 else TRIALS
LONG = 100_000

TIGHT = {
    "de": (4, 1.0),
    "sue": (8, 1.0),
    "oue": (8, 1.0),
    "ss": (8, 1.0),
    "she": (2, 1.0),
    "laplace": (2, 1.0),
    "onebit": (2, 1.0),
    "sign": (2, 1.0),
}
"""Mechanism to cells (classes) and epsilon; all have an event of the whole of exp(epsilon)."""


@pytest.mark.parametrize("flaw", MUTANTS)
def test_the_flaw_is_caught(flaw):
    result = audit(document_of(flaw), Copy(flaw), TRIALS)
    assert not result.passed
    assert MUTANTS[flaw][-1] in {finding.code for finding in result.findings}


@pytest.mark.parametrize("flaw", MUTANTS)
def test_the_same_copy_without_the_flaw_passes(flaw):
    result = audit(document_of(flaw), Copy(None), TRIALS)
    assert result.findings == ()
    assert result.lower_bound <= result.claim


@pytest.mark.parametrize("mechanism", TIGHT)
def test_a_real_mechanism_passes_and_most_of_its_loss_is_found(mechanism):
    size, epsilon = TIGHT[mechanism]
    result = audit(question(mechanism, size, epsilon), RealClient(), REAL_TRIALS)
    assert result.findings == ()
    assert (0.85 if TRIALS >= LONG else 0.7) * epsilon <= result.lower_bound <= epsilon


def test_thresholding_passes_and_tells_clearly_less_than_it_may():
    document = question("the", 8, 1.0)
    result = audit(document, RealClient(), REAL_TRIALS)
    assert result.findings == ()
    assert 0.7 < result.lower_bound <= Campaign.parse(document.encode()).realised_epsilon < 0.9


def test_a_campaign_of_several_questions_passes():
    result = audit(two_features(), RealClient(), REAL_TRIALS)
    assert result.findings == ()
    assert 0.5 < result.lower_bound <= 1.0
