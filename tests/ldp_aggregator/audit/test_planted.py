"""Clients that others have planted, who knew the promise and not the audit: what a black box can catch is caught.

The trials are few; ``LDP_BAYES_AUDIT_TRIALS=20000`` is the command's default.
"""

from __future__ import annotations

import os

import pytest
from audited import Planted
from leaking_clients import LEAKING
from odd_but_sound_clients import SOUND
from planted.witness import compiled, draft

from ldp_aggregator.audit import audit

TRIALS = int(os.environ.get("LDP_BAYES_AUDIT_TRIALS", "1500"))

MISSED = {}
"""What no black box catches, and why; docs/privacy.md has the list."""


@pytest.mark.parametrize("name", LEAKING)
def test_a_planted_leak_is_caught_or_is_a_miss_that_is_told(name):
    leak = LEAKING[name]
    document = compiled(leak.witness.draft).document.decode()
    assert audit(document, Planted(leak.make), TRIALS).passed == (name in MISSED)


SOUND_TO_A_RULE = {
    "uuid-4-ids": "id-not-uniform",
    "counting-ids": "id-not-uniform",
    "time-ordered-ids": "id-not-uniform",
}
"""Nothing of the record is in these ids, but ids of fresh devices are to be uniform."""


@pytest.mark.parametrize("answers", ["one", "all"])
@pytest.mark.parametrize("name", SOUND)
def test_a_client_that_only_looks_odd_passes(name, answers):
    """Wrong with probability 0.001 for each."""
    document = compiled(draft(shapes=True, label=1, answers=answers)).document.decode()
    result = audit(document, Planted(SOUND[name]), TRIALS // 5)
    expected = {SOUND_TO_A_RULE[name]} if name in SOUND_TO_A_RULE else set()
    assert {finding.code for finding in result.findings} == expected
