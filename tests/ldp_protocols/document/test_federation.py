"""What nodes agree to is in the document, and so in its id; documents without it keep their bytes."""

import json

import pytest
from drafts import draft, text

from ldp_aggregator.service.drafts import check_kind
from ldp_client.network.aggregator import read_campaign
from ldp_protocols import Campaign, DocumentError, DraftError
from ldp_protocols.document.federation import Federation

DRAFT = draft(text("ward", "a", "b"))
WINDOWS = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 2}


@pytest.mark.parametrize("said", [{}, {"groups": 3}, {"replacements": 0}, {"groups": 1000, "replacements": 1}])
def test_a_federation_is_in_the_document_as_it_was_said(said):
    campaign, without = Campaign.compile({**DRAFT, "federation": said}), Campaign.compile(DRAFT)
    assert campaign.federation == Federation(**said)
    assert campaign.id != without.id
    assert json.loads(campaign.document) == {**json.loads(without.document), "federation": said}
    assert Campaign.parse(campaign.document, campaign.id).federation == campaign.federation
    assert (without.federation, b"federation" in without.document) == (None, False)
    assert Campaign.compile({**DRAFT, "federation": None}).document == without.document


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"federation": {"groups": 0}}, "federation.groups: must be an integer from 1 to 1000"),
        ({"federation": {"replacements": -1}}, "federation.replacements: must be an integer from 0"),
        ({"federation": {"group": 3}}, "federation.group: unknown key"),
        ({"federation": 3}, "federation: must be an object"),
        ({"federation": {}, "windows": WINDOWS}, "federation: is of a campaign of nodes"),
    ],
)
def test_what_is_no_federation_is_refused(changes, problem):
    with pytest.raises(DraftError, match=problem):
        Campaign.compile({**DRAFT, **changes})


def test_a_campaign_of_nodes_is_made_as_one_and_no_device_answers_it():
    campaign = Campaign.compile({**DRAFT, "federation": {"groups": 3}})
    check_kind(campaign, federated=True, max_reports=None)
    with pytest.raises(DraftError, match="federation: is of nodes"):
        check_kind(campaign, federated=False, max_reports=None)
    with pytest.raises(DocumentError, match="no device") as caught:
        read_campaign(campaign.document, campaign.id)
    assert caught.value.code == "invalid-document"
