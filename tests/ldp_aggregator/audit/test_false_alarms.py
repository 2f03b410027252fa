"""A sound client fails as seldom as is promised: once in 1,000 audits at the most.

LDP_BAYES_AUDITS (600, say) plays more of them than the few that every run affords.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from mutants import question
from mutants_around import categories
from scipy.stats import binom
from sound_clients import Vectorised

from ldp_aggregator.audit import audit
from ldp_aggregator.audit.budget import SHARES

AUDITS = int(os.environ.get("LDP_BAYES_AUDITS", "4"))
CAMPAIGNS = {
    "de": lambda: question("de", 4, 1.0),
    "oue": lambda: question("oue", 8, 1.0),
    "laplace": lambda: question("laplace", 2, 1.0),
    "one of several": lambda: categories([3, 4], discrete="oue"),
    "all of several": lambda: categories([4], epsilon=2.0, answers="all", discrete="de"),
}


def test_the_kinds_of_evidence_share_the_probability_to_be_wrong():
    assert sum(SHARES.values()) == pytest.approx(1.0)
    assert min(SHARES.values()) > 0


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_sound_clients_pass(name):
    """Seeds are fixed; a correct audit fails one of so many runs with probability 0.001 each."""
    document = CAMPAIGNS[name]()
    failed = [
        (seed, result.findings)
        for seed in range(AUDITS // 4)
        if not (result := audit(document, Vectorised(seed), 200, rng=np.random.default_rng([1, seed]))).passed
    ]
    assert len(failed) <= binom.ppf(1 - 1e-4, max(1, AUDITS // 4), 1e-3), failed


def test_an_audit_that_may_be_wrong_one_time_in_two_is_wrong_no_more_often():
    """The same bounds at a probability where being wrong would be seen. False alarm of this test: 1e-3 at the most."""
    document = question("de", 2, 1.0)
    wrong = sum(
        not audit(document, Vectorised(seed), 100, wrong=0.5, rng=np.random.default_rng([1, seed])).passed
        for seed in range(AUDITS)
    )
    assert wrong <= binom.ppf(1 - 1e-3, AUDITS, 0.5)
