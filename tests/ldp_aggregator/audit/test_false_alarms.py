"""A sound client fails as seldom as is promised: once in 1,000 audits at the most.

That this is so is shown part by part in test_budget.py, exactly; here it is seen of the whole. LDP_BAYES_AUDITS (1000,
say) plays so many audits over all campaigns, instead of the few that every run affords.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from audited import Client
from audited_campaigns import CAMPAIGNS, campaign, question
from scipy.stats import binom
from sound_clients import Vectorised

from ldp_aggregator.audit import audit

_AUDITS = os.environ.get("LDP_BAYES_AUDITS")
AT_LENGTH = _AUDITS is not None
EACH = max(1, int(_AUDITS or 0) // len(CAMPAIGNS))
"""Audits of every campaign."""

FEW = ("oue", "onebit", "all of several", "one, with a projection")
TRIALS = 100
MANY = {
    "one": campaign(*[2] * 80, label=1),
    "all": campaign(numbers=7, label=1, epsilon=4.0, answers="all", continuous="onebit"),
}


@pytest.mark.parametrize("name", CAMPAIGNS if AT_LENGTH else FEW)
def test_sound_clients_pass(name):
    """Seeds are fixed; a correct audit fails one of so many runs with probability 0.001 each."""
    document = CAMPAIGNS[name]
    failed = [
        (seed, result.findings)
        for seed in range(EACH)
        if not (result := audit(document, Client(seed), TRIALS, rng=np.random.default_rng([1, seed]))).passed
    ]
    assert len(failed) <= binom.ppf(1 - 1e-4, EACH, 1e-3), failed


@pytest.mark.parametrize("wrong", [0.5, 0.05])
def test_an_audit_that_may_be_wrong_more_often_is_wrong_no_more_often_than_that(wrong):
    """The same parts of probabilities at which being wrong would be seen. False alarm: 1e-3 at the most for each."""
    document = question("de", 2, 1.0)
    times = 14 * EACH if AT_LENGTH else 8
    failed = sum(
        not audit(document, Vectorised(seed), TRIALS, wrong=wrong, rng=np.random.default_rng([1, seed])).passed
        for seed in range(times)
    )
    assert failed <= binom.ppf(1 - 1e-3, times, wrong)


@pytest.mark.skipif(not AT_LENGTH, reason="takes half a minute of processor time; LDP_BAYES_AUDITS runs it")
@pytest.mark.parametrize("answers", MANY)
def test_a_sound_client_of_very_many_questions_passes(answers):
    """More questions, and with all of them more ways to answer, than are looked at one by one."""
    assert audit(MANY[answers], Vectorised(1), TRIALS, rng=np.random.default_rng([1, 1])).findings == ()
