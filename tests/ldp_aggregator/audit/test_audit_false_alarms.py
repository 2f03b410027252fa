"""A sound client fails as seldom as is promised: once in 1,000 audits at the most.

That this is so is shown part by part in test_budget.py, exactly; here it is seen of the whole: a few audits in every
run, at length a thousand over all campaigns, and nearly as many that may be wrong more often.
"""

import numpy as np
import pytest
from audited import Client, cases
from audited_campaigns import CAMPAIGNS, campaign, question
from scipy.stats import binom
from sound_clients import Vectorised

from ldp_aggregator.audit import audit

EACH = 1000 // len(CAMPAIGNS)
"""Audits of every campaign at length."""

FEW = ("oue", "onebit", "all of several", "one, with a projection")
TRIALS = 100
MANY = {
    "one": campaign(*[2] * 80, label=1),
    "all": campaign(numbers=7, label=1, epsilon=4.0, answers="all", continuous="onebit"),
}


@pytest.mark.parametrize(("name", "audits"), cases(CAMPAIGNS, dict.fromkeys(FEW, 1), at_length=EACH))
def test_sound_clients_pass(name, audits):
    """Seeds are fixed; a correct audit fails one of so many runs with probability 0.001 each."""
    document = CAMPAIGNS[name]
    failed = [
        (seed, result.findings)
        for seed in range(audits)
        if not (result := audit(document, Client(seed), TRIALS, rng=np.random.default_rng([1, seed]))).passed
    ]
    assert len(failed) <= binom.ppf(1 - 1e-4, audits, 1e-3), failed


@pytest.mark.parametrize(("wrong", "audits"), cases([0.5, 0.05], {0.05: 8}, at_length=14 * EACH))
def test_an_audit_that_may_be_wrong_more_often_is_wrong_no_more_often_than_that(wrong, audits):
    """The same parts of probabilities at which being wrong would be seen. False alarm: 1e-3 at the most for each."""
    document = question("de", 2, 1.0)
    failed = sum(
        not audit(document, Vectorised(seed), TRIALS, wrong=wrong, rng=np.random.default_rng([1, seed])).passed
        for seed in range(audits)
    )
    assert failed <= binom.ppf(1 - 1e-3, audits, wrong)


@pytest.mark.long  # takes half a minute of processor time
@pytest.mark.parametrize("answers", MANY)
def test_a_sound_client_of_very_many_questions_passes(answers):
    """More questions, and with all of them more ways to answer, than are looked at one by one."""
    assert audit(MANY[answers], Vectorised(1), TRIALS, rng=np.random.default_rng([1, 1])).findings == ()
