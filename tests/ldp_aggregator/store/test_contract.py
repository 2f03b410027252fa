"""The contract of ``Store``, held by every implementation."""

from __future__ import annotations

import asyncio
import random
from datetime import datetime, timedelta, timezone

import pytest

from ldp_aggregator.counting.parts import COMPACT_AT
from ldp_aggregator.server.keeper import Closed, close_due
from ldp_aggregator.store import Outcome, StoredToken, StoreError, UnknownCampaignError
from ldp_aggregator.store.decisions import GRACE

UNKNOWN_ID = "A" * 43


def cells_of(tally):
    return tally.counts[0].tolist()


async def test_a_campaign_is_kept_byte_for_byte_and_once(store, make_campaign):
    campaign = make_campaign()
    assert await store.create_campaign(campaign) is True
    assert await store.create_campaign(campaign, max_reports=5) is False
    assert await store.document(campaign.id) == campaign.document
    state = await store.state(campaign.id)
    assert (state.title, state.reports, state.max_reports, state.model_version) == ("Cells", 0, None, None)
    assert [listed.id for listed in await store.campaigns()] == [campaign.id]


async def test_campaigns_are_listed_oldest_first(store, make_campaign, clock):
    campaigns = [make_campaign(title=title) for title in ("first", "second", "third")]
    for campaign in campaigns:
        await store.create_campaign(campaign)
        clock.step(1)
    assert [state.title for state in await store.campaigns()] == ["first", "second", "third"]


async def test_what_names_an_unknown_campaign_says_so(store, make_campaign, make_submission, make_report):
    ends = (store.close_campaign, store.end_campaign, store.reopen_campaign, store.seal_campaign, store.delete_campaign)
    for ask in (store.document, store.state, *ends, store.tally, store.model):
        with pytest.raises(UnknownCampaignError, match=UNKNOWN_ID):
            await ask(UNKNOWN_ID)
    with pytest.raises(UnknownCampaignError):
        await store.publish_model(UNKNOWN_ID, "{}")
    campaign = make_campaign()
    outcomes = await store.count([make_submission(campaign, [make_report(campaign, 1)])])
    assert outcomes == [Outcome(refused="unknown-campaign")]


async def test_every_report_is_counted_in_its_cell(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    uploads = [make_submission(campaign, [make_report(campaign, number)]) for number in range(10)]
    uploads.append(make_submission(campaign, [make_report(campaign, number) for number in range(10, 40)]))
    outcomes = await store.count(uploads)
    assert [outcome.counted for outcome in outcomes] == [1] * 10 + [30]
    tally = await store.tally(campaign.id)
    assert cells_of(tally) == [1] * 40 + [0] * 24
    assert tally.n.tolist() == [40]
    assert (await store.state(campaign.id)).reports == 40


async def test_a_duplicate_is_a_success_and_is_not_counted(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, number) for number in range(8)])
    await store.count([upload])
    more = make_submission(campaign, [make_report(campaign, number) for number in range(4, 12)])
    assert await store.count([upload, more, more]) == [Outcome(0, 8), Outcome(4, 4), Outcome(0, 8)]
    assert cells_of(await store.tally(campaign.id)) == [1] * 12 + [0] * 52
    assert await store.check() == []


async def test_the_same_id_with_another_answer_is_refused(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    honest, other = make_report(campaign, 1, cell=1), make_report(campaign, 1, cell=2)
    await store.count([make_submission(campaign, [honest])])
    [outcome] = await store.count([make_submission(campaign, [other, make_report(campaign, 3)])])
    assert outcome == Outcome(counted=1, rejected=((other.id, "conflicting-report"),))
    assert await store.count([make_submission(campaign, [honest])]) == [Outcome(duplicates=1)]
    assert cells_of(await store.tally(campaign.id))[:4] == [0, 1, 0, 1]


async def test_a_conflict_within_one_group_is_refused_too(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    first, second = make_report(campaign, 1, cell=5), make_report(campaign, 1, cell=6)
    outcomes = await store.count([make_submission(campaign, [report]) for report in (first, second, first)])
    assert outcomes == [Outcome(1), Outcome(rejected=((first.id, "conflicting-report"),)), Outcome(duplicates=1)]
    assert cells_of(await store.tally(campaign.id))[5:7] == [1, 0]


async def test_a_payload_no_device_can_have_sent_claims_no_id(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    bad, good = make_report(campaign, 7, cell=64), make_report(campaign, 7)
    outcomes = await store.count([make_submission(campaign, [bad]), make_submission(campaign, [good])])
    assert outcomes == [Outcome(rejected=((bad.id, "index-out-of-range"),)), Outcome(counted=1)]
    assert int((await store.tally(campaign.id)).n.sum()) == 1
    assert await store.check() == []


async def test_a_group_of_refused_payloads_alone_changes_nothing(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    [outcome] = await store.count([make_submission(campaign, [make_report(campaign, 7, cell=255)])])
    assert outcome.counted == 0
    assert [code for _, code in outcome.rejected] == ["index-out-of-range"]
    assert int((await store.tally(campaign.id)).n.sum()) == 0


async def test_the_same_id_counts_in_each_campaign(store, make_campaign, make_submission, make_report):
    campaigns = [make_campaign(title=title) for title in ("a", "b")]
    for campaign in campaigns:
        await store.create_campaign(campaign)
    outcomes = await store.count([make_submission(c, [make_report(c, number)]) for c in campaigns for number in (1, 2)])
    assert [outcome.counted for outcome in outcomes] == [1, 1, 1, 1]
    for campaign in campaigns:
        assert cells_of(await store.tally(campaign.id))[:4] == [0, 1, 1, 0]


async def test_many_commits_are_compacted_without_changing_the_tally(
    store, make_campaign, make_submission, make_report
):
    cells = 2 * (COMPACT_AT + 20)
    campaign = make_campaign(cells)
    await store.create_campaign(campaign)
    for number in range(cells):
        await store.count([make_submission(campaign, [make_report(campaign, number)])])
    tally = await store.tally(campaign.id)
    assert cells_of(tally) == [1] * cells
    assert tally.n.tolist() == [cells]
    assert (await store.state(campaign.id)).reports == cells
    assert await store.check() == []


async def test_concurrent_groups_count_every_report_once(store, make_campaign, make_submission, make_report):
    campaign = make_campaign(512)
    await store.create_campaign(campaign)
    numbers = [number for number in range(512) for _ in range(2)]
    random.Random(1).shuffle(numbers)
    groups = [numbers[start : start + 32] for start in range(0, len(numbers), 32)]
    results = await asyncio.gather(
        *(
            store.count([make_submission(campaign, [make_report(campaign, number)]) for number in group])
            for group in groups
        )
    )
    assert sum(outcome.counted for outcomes in results for outcome in outcomes) == 512
    assert cells_of(await store.tally(campaign.id)) == [1] * 512


async def test_reports_before_the_opening_are_refused(store, make_campaign, make_submission, make_report, clock):
    opens = (clock.now + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    campaign = make_campaign(opens=opens)
    await store.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, 1)])
    assert await store.count([upload]) == [Outcome(refused="campaign-not-open")]
    assert (await store.state(campaign.id)).status(clock()) == "waiting"
    clock.step(60)
    assert (await store.state(campaign.id)).status(clock()) == "open"
    assert await store.count([upload]) == [Outcome(counted=1)]


async def test_reports_after_the_end_are_refused(store, make_campaign, make_submission, make_report, clock):
    closes = (clock.now + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    campaign = make_campaign(closes=closes)
    await store.create_campaign(campaign)
    assert (await close_due(store, clock())).ids == ()
    clock.step(60)
    assert await store.count([make_submission(campaign, [make_report(campaign, 1)])]) == [
        Outcome(refused="campaign-closed")
    ]
    assert (await store.state(campaign.id)).status(clock()) == "closed"
    assert (await store.state(campaign.id)).life.closed is None


async def test_a_closed_campaign_stays_closed_when_the_clock_is_set_back(
    store, make_campaign, make_submission, make_report, clock
):
    closes = (clock.now + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    campaign = make_campaign(closes=closes)
    await store.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, 1)])
    await store.count([upload])
    clock.step(61)
    await store.close_campaign(campaign.id)
    clock.step(-61)
    assert await store.count([upload]) == [Outcome(refused="campaign-closed")]
    assert cells_of(await store.tally(campaign.id))[1] == 1


async def test_closing_keeps_the_tally_and_happens_once(store, make_campaign, make_submission, make_report, clock):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    upload = make_submission(campaign, [make_report(campaign, number) for number in range(5)])
    await store.count([upload])
    state = await store.close_campaign(campaign.id)
    clock.step(5)
    assert (await store.close_campaign(campaign.id)).life.closed == state.life.closed
    assert state.status(clock()) == "closed"
    assert await store.count([upload]) == [Outcome(refused="campaign-closed")]
    assert cells_of(await store.tally(campaign.id))[:6] == [1, 1, 1, 1, 1, 0]
    assert await store.check() == []


async def test_a_campaign_takes_exactly_its_greatest_number_of_reports(
    store, make_campaign, make_submission, make_report, clock
):
    campaign = make_campaign()
    await store.create_campaign(campaign, max_reports=10)
    await store.count([make_submission(campaign, [make_report(campaign, number) for number in range(4)])])
    outcomes = await store.count(
        [
            make_submission(campaign, [make_report(campaign, number) for number in (0, 1, 4, 5, 6)]),
            make_submission(campaign, [make_report(campaign, number) for number in (7, 8, 9, 10, 11)]),
            make_submission(campaign, [make_report(campaign, 12)]),
        ]
    )
    assert sum(outcome.counted for outcome in outcomes) == 6
    assert outcomes[0] == Outcome(counted=3, duplicates=2)
    codes = [code for outcome in outcomes for _, code in outcome.rejected]
    assert codes == ["campaign-closed"] * 3
    assert (await store.state(campaign.id)).reports == 10
    assert await store.check() == []
    assert (await close_due(store, clock())).ids == ()
    clock.step(GRACE.total_seconds())
    assert (await close_due(store, clock())).ids == (campaign.id,)
    assert (await store.state(campaign.id)).life.closed is not None


async def test_a_retry_to_a_full_campaign_is_still_a_duplicate(store, make_campaign, make_submission, make_report):
    campaign = make_campaign()
    await store.create_campaign(campaign, max_reports=2)
    upload = make_submission(campaign, [make_report(campaign, number) for number in range(2)])
    assert await store.count([upload]) == [Outcome(counted=2)]
    assert await store.count([upload]) == [Outcome(duplicates=2)]


async def test_models_are_versioned_and_the_latest_is_the_default(store, make_campaign):
    campaign = make_campaign()
    await store.create_campaign(campaign)
    assert await store.model(campaign.id) is None
    assert (await store.publish_model(campaign.id, "one")).version == 1
    assert (await store.publish_model(campaign.id, "two")).version == 2
    latest, first = await store.model(campaign.id), await store.model(campaign.id, 1)
    assert (latest.version, latest.document, first.document) == (2, "two", "one")
    assert await store.model(campaign.id, 3) is None
    assert (await store.state(campaign.id)).model_version == 2


async def test_a_token_can_be_revoked_once_and_its_name_is_not_reused(store, clock):
    token = StoredToken("collector of ours", "collector", b"d" * 32, clock())
    await store.add_token(token)
    with pytest.raises(StoreError, match="collector of ours"):
        await store.add_token(StoredToken("collector of ours", "admin", b"e" * 32, clock()))
    assert await store.tokens() == [token]
    clock.step(1)
    assert await store.revoke_token("collector of ours") is True
    assert await store.revoke_token("collector of ours") is False
    assert await store.revoke_token("nobody's") is False
    [revoked] = await store.tokens()
    assert revoked.revoked == datetime(2026, 1, 1, 0, 0, 1, tzinfo=timezone.utc)


async def test_a_token_is_found_by_its_digest_whether_or_not_it_was_revoked(store, clock):
    tokens = [StoredToken(f"token {n}", "relay", bytes([n]) * 32, clock()) for n in range(5)]
    for token in tokens:
        await store.add_token(token)
    assert await store.token(b"\x03" * 32) == tokens[3]
    assert await store.token(b"\x09" * 32) is None
    await store.revoke_token("token 3")
    assert (await store.token(b"\x03" * 32)).revoked == clock()


async def damage(store):
    """Cut every part of every campaign short, behind the store's back."""
    await store._write(lambda db: db.execute("UPDATE parts SET sums = substr(sums, 1, 32)"))


async def test_a_damaged_campaign_harms_no_other_and_can_still_be_closed(
    store, make_campaign, make_submission, make_report, request, clock
):
    closes = (clock.now + timedelta(seconds=60)).isoformat().replace("+00:00", "Z")
    damaged, sound = (make_campaign(title=title, closes=closes) for title in ("damaged", "sound"))
    await store.create_campaign(damaged)
    await store.count([make_submission(damaged, [make_report(damaged, 0)])])
    await damage(store)
    await store.create_campaign(sound)
    for number in range(1, COMPACT_AT + 10):
        both = [make_submission(campaign, [make_report(campaign, number % 64)]) for campaign in (damaged, sound)]
        assert [outcome.refused for outcome in await store.count(both)] == [None, None]
    with pytest.raises(StoreError, match=f"{damaged.id} is damaged: a tally part ends within question 0"):
        await store.tally(damaged.id)
    assert int((await store.tally(sound.id)).n.sum()) == 64
    clock.step(60)
    assert await close_due(store, clock()) == Closed((), {})
    clock.step(GRACE.total_seconds())
    closed = await close_due(store, clock())
    assert (set(closed.ids), closed.failed) == ({damaged.id, sound.id}, {})
    [finding] = await store.check()
    assert finding.campaign == damaged.id
    assert finding.problem.endswith("a tally part ends within question 0")


async def test_a_campaign_whose_ids_are_damaged_fails_no_other(
    store, make_campaign, make_submission, make_report, request
):
    """It is told by fsck, and can be ended."""
    damaged, sound, last = (make_campaign(title=title) for title in ("damaged", "sound", "last"))
    for campaign in (damaged, sound, last):
        await store.create_campaign(campaign)
    if request.node.callspec.params["store"] == "sqlite":
        await store._write(lambda db: db.execute("INSERT INTO runs (name, campaign, ids) VALUES ('ids_1.run', 1, 0)"))
    else:
        await store._write(lambda db: db.execute("ALTER TABLE ids ADD CONSTRAINT ids_1 CHECK (campaign <> 1)"))
    for number in range(3):
        uploads = [make_submission(campaign, [make_report(campaign, number)]) for campaign in (damaged, sound, last)]
        outcomes = await store.count([*uploads, *uploads])
        assert [outcome.refused for outcome in outcomes] == ["store-unavailable", None, None] * 2
        assert [outcome.counted for outcome in outcomes] == [0, 1, 1, 0, 0, 0]
    assert [outcome.refused for outcome in await store.count(uploads[:1])] == ["store-unavailable"]
    assert await store.beat() is None
    for campaign in (sound, last):
        assert cells_of(await store.tally(campaign.id))[:4] == [1, 1, 1, 0]
    if request.node.callspec.params["store"] == "sqlite":
        [finding] = await store.check()
        assert finding.campaign == damaged.id
        assert "cannot be read" in finding.problem
    await store.close_campaign(damaged.id)
    await store.seal_campaign(damaged.id, at_once=True)
    assert await store.check() == []
    await store.delete_campaign(damaged.id)
    if request.node.callspec.params["store"] == "postgres":  # The next test has the same tables.
        await store._write(lambda db: db.execute("ALTER TABLE ids DROP CONSTRAINT ids_1"))


async def test_every_mechanism_is_tallied_as_numpy_does_it_alone(store, make_submission):
    from ldp_aggregator import Tally
    from ldp_client.answering import perturb
    from protocols import Campaign, encode_upload

    campaign = Campaign.compile(
        {
            "version": 1,
            "title": "All kinds",
            "label": {"name": "outcome", "classes": ["yes", "no"]},
            "features": [
                {"name": "colour", "kind": "categorical", "values": ["red", "green", "blue"]},
                {"name": "hours", "kind": "continuous", "low": 0, "high": 7, "missing": False},
            ],
            "privacy": {"epsilon": 2.0, "answers": "all", "discrete": "oue", "continuous": "onebit"},
        }
    )
    await store.create_campaign(campaign)
    people = [perturb(campaign, {"colour": "red", "hours": 3}, "yes") for _ in range(100)]
    await store.count([make_submission(campaign, reports) for reports in people[:60]])
    await store.count([make_submission(campaign, [r for reports in people[40:] for r in reports])])
    expected = Tally.of_uploads(campaign, [encode_upload(reports) for reports in people])
    assert await store.tally(campaign.id) == expected
    assert await store.check() == []


async def test_a_healthy_store_passes_its_check(store):
    assert await store.beat() is None
    assert await store.check() == []
