"""Campaigns with a crowd that would never be shown, or are none of devices."""

import pytest
from crowds import crowd_draft

from ldp_aggregator.service.drafts import check_kind
from ldp_protocols import Campaign, DraftError

CAMPAIGN = Campaign.compile(crowd_draft(issuer=None))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ({"federated": True, "max_reports": None}, "privacy.crowd"),
        ({"federated": False, "max_reports": 19_999}, "max_reports"),
    ],
)
def test_a_crowd_is_of_devices_and_all_of_it_may_be_counted(kind, field):
    with pytest.raises(DraftError) as caught:
        check_kind(CAMPAIGN, **kind)
    assert caught.value.field == field
    check_kind(CAMPAIGN, federated=False, max_reports=20_000)
    check_kind(CAMPAIGN, federated=False, max_reports=None)
