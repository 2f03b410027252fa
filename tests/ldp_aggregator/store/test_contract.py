"""The contract of ``Store``, held by every implementation."""

import asyncio
import random
from datetime import datetime, timedelta, timezone

import drafts
import pytest
from cells import cell_campaign, cell_report, cells_of, count, publish, submission

from ldp_aggregator import Tally
from ldp_aggregator.server.housekeeping import Closed, close_due
from ldp_aggregator.store import Outcome, StoredToken, StoreError
from ldp_aggregator.store.sql.checks import insert
from ldp_client.answering import perturb
from ldp_protocols import Campaign, encode_upload

COMPACT_AT = 64
GRACE = timedelta(days=1)
SMALL = 256


UNKNOWN_ID = "A" * 43


async def test_a_campaign_is_kept_byte_for_byte_and_once_and_listed_after_those_before_it(store, clock):
    campaign = cell_campaign()
    assert await store.create_campaign(campaign) is True
    assert await store.create_campaign(campaign, max_reports=5) is False
    assert await store.document(campaign.id) == campaign.document
    state = await store.state(campaign.id)
    assert (state.title, state.reports, state.max_reports, state.model_version) == ("Cells", 0, None, None)
    for title in ("second", "third"):
        clock.step(1)
        await publish(store, title=title)
    assert [state.title for state in await store.campaigns()] == ["Cells", "second", "third"]


async def test_what_names_an_unknown_campaign_says_so(store):
    ends = (store.close_campaign, store.end_campaign, store.reopen_campaign, store.seal_campaign, store.delete_campaign)
    reads = (store.document, store.state, store.tally, store.model, store.shares, store.share_digests)
    for asked in (
        *(ask(UNKNOWN_ID) for ask in (*ends, *reads)),
        store.publish_model(UNKNOWN_ID, "{}"),
        store.put_share(UNKNOWN_ID, "a", b""),
        store.withdraw_share(UNKNOWN_ID, "a"),
        store.set_uploads_need(UNKNOWN_ID, "relay"),
    ):
        with pytest.raises(StoreError, match=UNKNOWN_ID):
            await asked
    with pytest.raises(StoreError, match="no campaign has the id"):
        await store.released_tally(cell_campaign(), 10)
    assert await count(store, cell_campaign(), [1]) == Outcome(refused="unknown-campaign")


async def test_a_duplicate_is_a_success_and_is_not_counted_but_in_another_campaign(store):
    campaign, other = await publish(store), await publish(store, title="Other")
    await store.count([submission(campaign, range(8))])
    uploads = [submission(one, range(4, 12)) for one in (campaign, campaign, other)]
    assert await store.count([submission(campaign, range(8)), *uploads]) == [
        Outcome(duplicates=8),
        Outcome(counted=4, duplicates=4),
        Outcome(duplicates=8),
        Outcome(counted=8),
    ]
    assert await cells_of(store, campaign) == [1] * 12 + [0] * 52
    assert await cells_of(store, other) == [0] * 4 + [1] * 8 + [0] * 52


async def test_a_conflict_within_one_group_is_refused_too_and_judged_by_what_is_stored(store):
    campaign = await publish(store)
    first, second = (submission(campaign, [cell_report(campaign, 1, cell=cell)]) for cell in (5, 6))
    refused = Outcome(rejected=((cell_report(campaign, 1).id, "conflicting-report"),))
    assert await store.count([first, second, first]) == [Outcome(1), refused, Outcome(duplicates=1)]
    assert await store.count([second, first]) == [refused, Outcome(duplicates=1)]
    assert await cells_of(store, campaign, 7) == [0] * 5 + [1, 0]


async def test_concurrent_groups_count_every_report_once(store):
    campaign = await publish(store, 512)
    numbers = [number for number in range(512) for _ in range(2)]
    random.Random(1).shuffle(numbers)
    groups = [numbers[start : start + 32] for start in range(0, len(numbers), 32)]
    results = await asyncio.gather(
        *(store.count([submission(campaign, [number]) for number in group]) for group in groups)
    )
    assert sum(outcome.counted for outcomes in results for outcome in outcomes) == 512
    assert await cells_of(store, campaign) == [1] * 512


async def test_reports_before_the_opening_are_refused(store, clock):
    campaign = await publish(store, opens=clock.after(60))
    upload = submission(campaign, [1])
    assert await store.count([upload]) == [Outcome(refused="campaign-not-open")]
    assert (await store.state(campaign.id)).status(clock()) == "waiting"
    clock.step(60)
    assert (await store.state(campaign.id)).status(clock()) == "open"
    assert await store.count([upload]) == [Outcome(counted=1)]


async def test_a_campaign_takes_exactly_its_greatest_number_of_reports(store, clock):
    campaign = await publish(store, max_reports=10)
    await count(store, campaign, range(4))
    uploads = [submission(campaign, numbers) for numbers in ((0, 1, 4, 5), *([number] for number in range(6, 16)))]
    outcomes = await store.count(uploads)
    assert [outcome.counted for outcome in outcomes] == [2] + [1] * 4 + [0] * 6, "the earliest are counted"
    assert [code for outcome in outcomes for _, code in outcome.rejected] == ["campaign-closing"] * 6
    assert (await store.standing(campaign.id)).word == "full"
    assert await store.count(uploads[:1]) == [Outcome(duplicates=4)], "a retry is one in a full campaign, too"
    assert (await store.state(campaign.id)).reports == 10
    assert await store.check() == []
    assert (await close_due(store, await store.moment())).ids == ()
    clock.step(GRACE.total_seconds())
    assert (await close_due(store, await store.moment())).ids == (campaign.id,)
    assert (await store.state(campaign.id)).life.closed is not None


async def test_models_are_versioned_and_the_latest_is_the_default(store):
    campaign = await publish(store)
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
    assert await store.token(b"e" * 32) is None
    clock.step(1)
    assert await store.revoke_token("collector of ours") is True
    assert await store.revoke_token("collector of ours") is False
    assert await store.revoke_token("nobody's") is False
    revoked = await store.token(b"d" * 32)
    assert await store.tokens() == [revoked]
    assert revoked.revoked == datetime(2026, 1, 1, 0, 0, 1, tzinfo=timezone.utc)


async def test_a_damaged_campaign_harms_no_other_and_can_still_be_closed(store, clock):
    closes = clock.after(60)
    damaged = await publish(store, closes=closes)
    await count(store, damaged, [0])
    await store._write(lambda db: db.execute("UPDATE parts SET sums = substr(sums, 1, 32)"))
    sound = await publish(store, title="sound", closes=closes)
    for number in range(1, COMPACT_AT + 10):
        both = [submission(campaign, [number % 64]) for campaign in (damaged, sound)]
        assert [outcome.refused for outcome in await store.count(both)] == [None, None]
    with pytest.raises(StoreError, match=f"{damaged.id} is damaged: parts: its bytes are not those of its digest"):
        await store.tally(damaged.id)
    assert int((await store.tally(sound.id)).n.sum()) == 64
    clock.step(60)
    assert await close_due(store, await store.moment()) == Closed((), {})
    clock.step(GRACE.total_seconds())
    closed = await close_due(store, await store.moment())
    assert (set(closed.ids), closed.failed) == ({damaged.id, sound.id}, {})
    [finding] = await store.check()
    assert finding.campaign == damaged.id
    assert finding.problem == "parts: its bytes are not those of its digest"
    await store.delete_campaign(damaged.id)


async def test_a_campaign_whose_ids_are_damaged_fails_no_other(store, request):
    """It is told by fsck, and can be ended."""
    damaged, sound, last = [await publish(store, title=title) for title in ("damaged", "sound", "last")]
    if request.node.callspec.params["store"] == "sqlite":
        missing = {"name": "ids_1.run", "ids": 0}
        await store._write(lambda db: insert(db, "runs", missing, (1, damaged.id)))
    else:
        await store._write(lambda db: db.execute("ALTER TABLE ids ADD CONSTRAINT ids_1 CHECK (campaign <> 1)"))
    for number in range(3):
        uploads = [submission(campaign, [number]) for campaign in (damaged, sound, last)]
        outcomes = await store.count([*uploads, *uploads])
        assert [outcome.refused for outcome in outcomes] == ["store-unavailable", None, None] * 2
        assert [outcome.counted for outcome in outcomes] == [0, 1, 1, 0, 0, 0]
    assert [outcome.refused for outcome in await store.count(uploads[:1])] == ["store-unavailable"]
    assert await store.beat() is None
    for campaign in (sound, last):
        assert await cells_of(store, campaign, 4) == [1, 1, 1, 0]
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


async def test_every_mechanism_is_tallied_as_numpy_does_it_alone(store):
    features = drafts.text("colour", "red", "green", "blue", missing=True), drafts.number("hours", 0, 7)
    privacy = {"epsilon": 2.0, "answers": "all", "discrete": "oue", "continuous": "onebit"}
    campaign = Campaign.compile(drafts.draft(*features, privacy=privacy))
    await store.create_campaign(campaign)
    people = [perturb(campaign, {"colour": "red", "hours": 3}, "a") for _ in range(100)]
    await store.count([submission(campaign, reports) for reports in people[:60]])
    await count(store, campaign, [r for reports in people[40:] for r in reports])
    expected = Tally.of_uploads(campaign, [encode_upload(reports, campaign) for reports in people])
    assert await store.tally(campaign.id) == expected


SIZES = [1, 2, SMALL - 1, SMALL, SMALL + 1, 643, 3000]


@pytest.fixture
async def send(store):
    """Counts an upload of reports, given as numbers or as (number, cell)."""
    campaign = await publish(store, 4096)

    async def upload(members):
        reports = [cell_report(campaign, *(one if isinstance(one, tuple) else (one,))) for one in members]
        outcome = await count(store, campaign, reports)
        return outcome, (await store.tally(campaign.id)).counts[0], reports

    return upload


@pytest.mark.parametrize("size", SIZES)
async def test_a_whole_upload_again_changes_nothing_nor_does_one_of_which_every_answer_is_another(send, size):
    assert (await send(range(size)))[0] == Outcome(counted=size)
    for _ in range(2):
        outcome, counts, _ = await send(range(size))
        assert outcome == Outcome(duplicates=size)
        assert counts[:size].tolist() == [1] * size
    outcome, counts, _ = await send([(number, number + 1) for number in range(size)])
    assert (outcome.counted, outcome.duplicates, len(outcome.rejected)) == (0, 0, size)
    assert counts[: size + 1].tolist() == [1] * size + [0]


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.99])
async def test_what_is_new_in_an_upload_counts_and_another_answer_is_refused(send, size, share):
    known = list(range(0, size, round(1 / share))) if share <= 0.5 else list(range(1, size))
    changed = known[len(known) // 2]
    await send([(number, 4000 if number == changed else number) for number in known])
    outcome, counts, reports = await send(range(size))
    assert (outcome.counted, outcome.duplicates) == (size - len(known), len(known) - 1)
    assert outcome.rejected == ((reports[changed].id, "conflicting-report"),)
    assert counts.sum() == size
    assert counts[changed] == 0


async def test_a_payload_no_device_can_have_sent_claims_no_id_and_is_told_again_with_a_repeated_upload(store, send):
    members = [*range(1000), *((number, 5000) for number in range(1000, 1010))]
    assert (await send(members))[0].counted == 1000
    outcome, counts, reports = await send(members)
    assert (outcome.counted, outcome.duplicates) == (0, 1000)
    assert outcome.rejected == tuple((report.id, "index-out-of-range") for report in reports[1000:])
    assert counts.sum() == 1000
    outcome, counts, _ = await send([(1000, 5000)])
    assert (outcome.rejected, counts.sum()) == (((reports[1000].id, "index-out-of-range"),), 1000)
    assert (await send([1000]))[0] == Outcome(counted=1)
    campaign = cell_campaign(4096)
    bad, good = submission(campaign, [(1001, 5000)]), submission(campaign, [1001])
    assert [outcome.counted for outcome in await store.count([bad, good])] == [0, 1], "within one group, too"
    assert (await store.tally(campaign.id)).n.tolist() == [1002]
