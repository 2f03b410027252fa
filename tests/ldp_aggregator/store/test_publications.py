"""Releases: what is published of a campaign whose document fixes when, on every store."""

from __future__ import annotations

import pytest

from ldp_aggregator.service.publishing import UntrainableError, publish_trained, tally_to_publish
from ldp_aggregator.store import UnknownCampaignError, open_store
from ldp_aggregator.store.merging import merge_stores


def fixed(make_campaign, every):
    return make_campaign(privacy={"epsilon": 1.0, "discrete": "de", "release_every": every})


async def count(store, campaign, numbers, make_submission, make_report):
    await store.count([make_submission(campaign, [make_report(campaign, number) for number in numbers])])


async def test_what_is_published_stands_still_until_so_many_more_have_answered(
    store, make_campaign, make_submission, make_report
):
    campaign = fixed(make_campaign, 10)
    await store.create_campaign(campaign)
    seen = []
    for first, end in ((0, 9), (9, 10), (10, 19), (19, 33), (33, 42), (42, 43)):
        await count(store, campaign, range(first, end), make_submission, make_report)
        seen.append(int((await tally_to_publish(store, campaign)).n.sum()))
        assert int((await tally_to_publish(store, campaign)).n.sum()) == seen[-1]
    assert seen == [0, 10, 10, 33, 33, 43]
    assert (await store.tally(campaign.id)).n.tolist() == [43]


async def test_every_release_is_a_tally_of_what_was_counted_then(store, make_campaign, make_submission, make_report):
    campaign = fixed(make_campaign, 4)
    await store.create_campaign(campaign)
    await count(store, campaign, range(5), make_submission, make_report)
    assert (await tally_to_publish(store, campaign)).counts[0].tolist() == [1] * 5 + [0] * 59
    await count(store, campaign, range(5, 8), make_submission, make_report)
    assert (await tally_to_publish(store, campaign)).counts[0].tolist() == [1] * 5 + [0] * 59
    await store.close_campaign(campaign.id)
    assert (await tally_to_publish(store, campaign)).counts[0].tolist() == [1] * 5 + [0] * 59


async def test_without_fixed_counts_everything_is_published(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    await count(store, campaign, range(3), make_submission, make_report)
    assert (await tally_to_publish(store, campaign)).n.tolist() == [3]


async def test_a_model_is_made_of_what_was_released(store, make_campaign, make_submission, make_report):
    campaign = fixed(make_campaign, 20)
    await store.create_campaign(campaign)
    await count(store, campaign, range(19), make_submission, make_report)
    with pytest.raises(UntrainableError, match="nothing before 20 devices"):
        await publish_trained(store, [campaign.id])
    await count(store, campaign, range(19, 30), make_submission, make_report)
    assert (await publish_trained(store, [campaign.id], anyway=True))[0] == 30
    await count(store, campaign, range(30, 40), make_submission, make_report)
    assert (await publish_trained(store, [campaign.id], anyway=True))[0] == 30


async def test_a_release_of_an_unknown_campaign_says_so(store):
    with pytest.raises(UnknownCampaignError):
        await store.released_tally("A" * 43, 10)


async def test_what_either_store_released_is_released_in_the_merged_one(
    tmp_path, make_campaign, make_submission, make_report
):
    """The next release waits for reports that neither has published."""
    campaign = fixed(make_campaign, 10)
    for name, numbers in (("a", range(15)), ("b", range(15, 27))):
        one = await open_store(tmp_path / name)
        await one.create_campaign(campaign)
        await count(one, campaign, numbers, make_submission, make_report)
        await tally_to_publish(one, campaign)
        await one.close()
    merge_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    merged = await open_store(tmp_path / "c")
    await count(merged, campaign, range(27, 36), make_submission, make_report)
    assert (await tally_to_publish(merged, campaign)).n.tolist() == [27]
    await count(merged, campaign, [36], make_submission, make_report)
    assert (await tally_to_publish(merged, campaign)).n.tolist() == [37]
    await merged.close()
