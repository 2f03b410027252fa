"""Clients that others have planted, who knew the promise and not the audit: what a black box can catch is caught.

The trials are few; ``LDP_BAYES_AUDIT_TRIALS=20000`` is the command's default.
"""

from __future__ import annotations

import os

import pytest
from audited import Planted
from leaking_clients import LEAKING

from ldp_aggregator.audit import audit
from protocols import Campaign

TRIALS = int(os.environ.get("LDP_BAYES_AUDIT_TRIALS", "1500"))

MISSED = {}
"""What no black box catches, and why; docs/privacy.md has the list."""


@pytest.mark.parametrize("name", LEAKING)
def test_a_planted_leak_is_caught_or_is_a_miss_that_is_told(name):
    leak = LEAKING[name]
    document = Campaign.compile(leak.witness.draft).document.decode()
    assert audit(document, Planted(leak.make), TRIALS).passed == (name in MISSED)
