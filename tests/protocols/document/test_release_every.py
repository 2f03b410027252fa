"""``privacy.release_every``: a promise of the document about when anything is published."""

from __future__ import annotations

import json

import pytest

from protocols import Campaign, DraftError

DRAFT = {
    "version": 1,
    "title": "Small",
    "label": {"name": "late", "classes": ["yes", "no"]},
    "features": [{"name": "hours", "kind": "continuous", "low": 0, "high": 1}],
    "study": "s",
}


def compiled(**changes):
    draft = {**DRAFT, **changes}
    return Campaign.compile({**draft, "privacy": {"epsilon": 1.0, **changes.get("privacy", {})}})


def test_it_stands_in_the_document_and_is_read_back():
    campaign = compiled(privacy={"release_every": 5000})
    assert json.loads(campaign.document)["privacy"]["release_every"] == 5000
    assert Campaign.parse(campaign.document, campaign.id).privacy.release_every == 5000


def test_a_document_without_it_does_not_name_it():
    for campaign in (compiled(), compiled(privacy={"release_every": None})):
        assert campaign.privacy.release_every is None
        assert b"release_every" not in campaign.document


@pytest.mark.parametrize("wrong", [0, 1, -5, 1.5, "100", True, (1 << 40) + 1])
def test_a_number_of_devices_that_hides_nobody_is_refused(wrong):
    with pytest.raises(DraftError, match="release_every"):
        compiled(privacy={"release_every": wrong})


def test_it_is_a_promise_of_campaigns_that_ask_everything_too():
    campaign = compiled(privacy={"release_every": 100, "answers": "all"})
    assert Campaign.parse(campaign.document, campaign.id).privacy.release_every == 100


def test_a_moments_round_releases_nothing():
    with pytest.raises(DraftError, match="moments round"):
        compiled(privacy={"release_every": 100}, asks="moments")
