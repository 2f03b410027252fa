"""Clients that others have planted, who knew the promise and not the audit: what a black box can catch is caught.

Every run takes a few of them; LDP_BAYES_AUDIT_TRIALS (20000, the command's default) takes all of them at length.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from audited import AT_LENGTH, Planted, chosen, trials
from leaking_clients import LEAKING
from odd_but_sound_clients import SOUND
from planted.witness import compiled, draft

from ldp_aggregator.audit import audit

TRIALS = trials(300)

MISSED = {
    "keyed-mark-in-the-id": "only the holder of the key can read it",
    "id-chosen-by-keyed-hash": "only the holder of the key can read it",
    "noise-chosen-by-keyed-hash": "only the holder of the key can read it",
    "one-percent-too-much": "the excess is below the floor that the audit prints",
    "one-device-in-200": "a clear answer is what noise gives anyway: the loss is 1.018 instead of 1",
    "only-on-sundays": "it is asked on another day",
    "only-for-one-person": "that person is not asked",
}
"""What no black box catches, and why; docs/privacy.md has the list."""

RARE = {
    "swapped-for-the-first-value": 3000,
    "gaussian-noise": 6000,
    "noise-cut-at-three-scales": 6000,
    "previous-record-fills-gaps": 6000,
    "one-vector-in-200": 6000,
    "seeded-with-32-bits": 20_000,
}
"""What shows from so many trials on."""

FEW = (
    "id-from-the-record",
    "low-bit-of-the-id-by-class",
    "empty-upload-by-class",
    "padding-by-class",
    "empty-answer-for-missing",
    "stored-for-one-class",
    "retries-by-class",
    "keyed-mark-in-the-id",
)


@pytest.mark.parametrize("name", chosen(LEAKING, FEW))
def test_a_planted_leak_is_caught_or_is_a_miss_that_is_told(name):
    if RARE.get(name, 0) > TRIALS:
        pytest.skip(f"shows from {RARE[name]} trials on")
    leak = LEAKING[name]
    result = audit(
        compiled(leak.witness.draft).document.decode(), Planted(leak.make), TRIALS, rng=np.random.default_rng(1)
    )
    assert result.passed == (name in MISSED)


def test_every_miss_is_a_client():
    assert {*MISSED, *RARE} <= set(LEAKING)


FEW_SOUND = {
    ("honest-step-by-step", "one"),
    ("random-ids", "one"),
    ("uuid-4-ids", "one"),
    ("hashed-coins", "all"),
    ("last-bit-first", "all"),
}

SOUND_TO_A_RULE = {
    "uuid-4-ids": "id-not-uniform",
    "counting-ids": "id-not-uniform",
    "time-ordered-ids": "id-not-uniform",
}
"""Nothing of the record is in these ids, but ids of fresh devices are to be uniform."""


@pytest.mark.parametrize(
    ("name", "answers"),
    [(name, answers) for name, answers in product(SOUND, ("one", "all")) if AT_LENGTH or (name, answers) in FEW_SOUND],
)
def test_a_client_that_only_looks_odd_passes(name, answers):
    """Wrong with probability 0.001 for each."""
    document = compiled(draft(shapes=True, label=1, answers=answers)).document.decode()
    result = audit(document, Planted(SOUND[name]), max(100, TRIALS // 20), rng=np.random.default_rng(1))
    found = {finding.code for finding in result.findings}
    if name not in SOUND_TO_A_RULE:
        assert found == set()
    else:
        # A counter also tells the place in the list, which the audit's own order makes the person's.
        # What then comes from one person alone is told as impossible or as a loss, by chance.
        place = {"tells-beside-the-answer", "tells-of-others-before", "loss-above-claim", "impossible-report"}
        assert SOUND_TO_A_RULE[name] in found
        assert found <= {SOUND_TO_A_RULE[name]} | (place if name == "counting-ids" else set())
