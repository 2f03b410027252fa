"""Releases: what is published of a campaign whose document fixes when, on every store."""

from __future__ import annotations

import asyncio
import hashlib
import itertools

import pytest
from postgres import empty

from ldp_aggregator.service.publishing import UntrainableError, publish_trained, tally_to_publish
from ldp_aggregator.store import Submission, UnknownCampaignError, open_store
from ldp_aggregator.store.combining import combine_stores
from protocols import Report, decode_upload, encode_upload


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


async def test_a_release_of_an_unknown_campaign_says_so(store, make_campaign):
    with pytest.raises(UnknownCampaignError):
        await store.released_tally(make_campaign(), 10)


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
    combine_stores(tmp_path / "a", tmp_path / "b", tmp_path / "c")
    merged = await open_store(tmp_path / "c")
    await count(merged, campaign, range(27, 36), make_submission, make_report)
    assert (await tally_to_publish(merged, campaign)).n.tolist() == [27]
    await count(merged, campaign, [36], make_submission, make_report)
    assert (await tally_to_publish(merged, campaign)).n.tolist() == [37]
    await merged.close()


def asking_everything(make_campaign, every):
    """Two groups of 64 and 2 cells."""
    return make_campaign(
        label={"name": "label", "classes": ["yes", "no"]},
        privacy={"epsilon": 1.0, "discrete": "de", "answers": "all", "release_every": every},
    )


async def test_where_everything_is_asked_every_group_has_to_have_so_many_new_answers(store, make_campaign):
    campaign = asking_everything(make_campaign, 10)
    await store.create_campaign(campaign)
    seen = []
    for question, first, end in ((0, 0, 30), (1, 0, 9), (1, 9, 10), (1, 10, 25), (0, 30, 35), (1, 25, 30), (0, 35, 40)):
        reports = [
            Report(question, hashlib.sha256(b"%d %d" % (question, n)).digest()[:16], b"\0") for n in range(first, end)
        ]
        await store.count([Submission(campaign, decode_upload(encode_upload(reports), campaign))])
        seen.append((await tally_to_publish(store, campaign)).n.tolist())
    assert seen == [[0, 0], [0, 0], [30, 10], [30, 10], [30, 10], [30, 10], [40, 30]]


async def test_two_instances_release_the_same_and_never_less_apart_than_the_document_says(
    postgres, tmp_path, make_campaign, make_submission, make_report
):
    """Both count and read at once; what they saw is one chain of releases."""
    await empty(postgres.address)
    every = 25
    campaign = make_campaign(1024, privacy={"epsilon": 1.0, "discrete": "de", "release_every": every})
    instances = [await open_store(tmp_path, postgres.address) for _ in range(2)]
    await instances[0].create_campaign(campaign)

    async def answer(instance, numbers):
        seen = []
        for start in range(0, len(numbers), 8):
            await count(instance, campaign, numbers[start : start + 8], make_submission, make_report)
            seen.append((await tally_to_publish(instance, campaign)).counts[0])
        return seen

    numbers = list(range(1024))
    seen = [*(await answer(instances[0], numbers[:8])), *(await answer(instances[1], numbers[8:16]))]
    for found in await asyncio.gather(*(answer(one, numbers[16 + side :: 2]) for side, one in enumerate(instances))):
        seen += found
    chain = sorted({tuple(counts.tolist()) for counts in seen}, key=sum)
    assert len(chain) > 10
    for before, after in itertools.pairwise(chain):
        assert sum(after) - sum(before) >= every
        assert all(one <= other for one, other in zip(before, after, strict=True)), "a release has what the last had"
    assert max(chain[-1]) == 1
    for one in instances:
        assert (await one.tally(campaign.id)).n.tolist() == [1024]
        await one.close()
