"""The windows of a series on every store: counted apart, refused before their time and after it."""

import random
from dataclasses import replace

import numpy as np
import pytest
from cells import cell_campaign, cell_report, count, publish

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.recount import recount
from ldp_aggregator.archive.writer import Archive, ArchivedCounts
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.node_statistics import decode_share, encode_share, parts_of
from ldp_aggregator.service.drafts import check_kind
from ldp_aggregator.store.backup import copy_store, restore_store
from ldp_aggregator.store.contract import Outcome
from ldp_protocols import DocumentError, DraftError

DAY = 86400
COUNT = 20
WINDOWS = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": COUNT}


@pytest.fixture
async def series(store):
    """A campaign of twenty days, which begin now; ``send(window, number)`` uploads one report each."""
    campaign = await publish(store, windows=WINDOWS)

    async def send(*reports):
        return await count(store, campaign, in_windows(campaign, reports))

    return campaign, send


def in_windows(campaign, reports):
    return [replace(cell_report(campaign, number), question=window) for window, number in reports]


def codes(outcome):
    return sorted(code for _, code in outcome.rejected)


async def test_reports_are_counted_by_their_window_while_it_is_open_and_a_week_after(store, series, clock):
    campaign, send = series
    assert codes(await send((0, 0), (1, 1))) == ["window-not-open"]
    clock.step(DAY)
    assert (await send((1, 1), (0, 2), (0, 0))).duplicates == 1
    clock.step(7 * DAY - 1)
    assert (await send((0, 3), (7, 4))).counted == 2
    clock.step(1)
    outcome = await send((0, 5), (0, 3), (8, 6), (9, 7))
    known = "what is known is a success, whatever the window is"
    assert (outcome.counted, outcome.duplicates) == (1, 1), known
    assert codes(outcome) == ["campaign-closing", "window-not-open"]
    clock.step(DAY)
    assert codes(await send((0, 5), (0, 3))) == ["window-over"], "a day after it was seen to be over"
    assert codes(await send((0, 4), (7, 4))) == ["conflicting-report"]
    clock.step(18 * DAY - 1)
    assert (await send((19, 8))).counted == 1
    clock.step(1)
    assert (await send((19, 9))).refused == "campaign-closing"
    assert await send((0, 3), (19, 8)) == Outcome(duplicates=2)
    tally = await store.tally(campaign.id)
    numbers = [int(window.n[0]) for window in tally.windows]
    assert numbers == [3, 1, *[0] * 5, 1, 1, *[0] * 10, 1]
    assert [number for number in range(10) if tally.pooled().counts[0][number]] == [0, 1, 2, 3, 4, 6, 8]


async def test_what_came_too_early_claims_no_id_and_counts_once_later(store, series, clock):
    campaign, send = series
    for _ in range(3):
        assert codes(await send((5, 1))) == ["window-not-open"]
    clock.step(5 * DAY)
    assert (await send((5, 1))).counted == 1
    assert (await send((5, 1))).duplicates == 1
    assert codes(await send((4, 1))) == ["conflicting-report"], "one id, one answer, in one window"
    assert int((await store.tally(campaign.id)).n.sum()) == 1


async def test_of_one_id_in_two_windows_the_one_that_is_in_time_counts_and_a_series_that_is_closed_takes_none(
    store, series, clock
):
    campaign, send = series
    clock.step(9 * DAY)
    outcome = await send((0, 5), (9, 5), (12, 5))
    assert (outcome.counted, codes(outcome)) == (1, ["conflicting-report"] * 2)
    assert [int(window.n[0]) for window in (await store.tally(campaign.id)).windows] == [0] * 9 + [1] + [0] * 10
    await store.close_campaign(campaign.id)
    for late in ((0, 6), (9, 6), (12, 6)):
        assert (await send(late)).refused == "campaign-closing", "whichever window it is of"


async def test_a_series_adds_up_from_its_windows_and_in_any_order(store, series, clock):
    campaign, send = series
    clock.step(5 * DAY)
    drawn = [(random.Random(number).randrange(6), number) for number in range(60)]
    for first in range(0, 60, 7):
        await send(*drawn[first : first + 7])
    tally = await store.tally(campaign.id)
    assert Tally.of_windows(campaign, tally.windows) == tally
    assert tally.pooled().counts[0][:60].tolist() == [1] * 60
    assert int(sum(window.n.sum() for window in tally.windows)) == int(tally.pooled().n.sum()) == 60


def test_a_series_is_of_devices_and_never_of_nodes():
    campaign = cell_campaign(windows=WINDOWS)
    with pytest.raises(DraftError, match="windows"):
        check_kind(campaign, federated=True, max_reports=None)
    statistics = np.zeros(parts_of(campaign.label, campaign.asked)[-1].stop, dtype=np.int64)
    assert encode_share(campaign.one_window, statistics)
    with pytest.raises(DocumentError, match="windows"):
        encode_share(campaign, statistics)
    with pytest.raises(DocumentError, match="windows"):
        decode_share(encode_share(campaign.one_window, statistics), campaign)


async def test_archive_recount_merge_and_restore_keep_every_window_apart(tmp_path, opened, combine, clock):
    campaign = cell_campaign(windows=WINDOWS)
    clock.step(5 * DAY)
    numbers = {"a": range(30), "b": range(25, 50)}
    for name, members in numbers.items():
        store = await opened(name, clock=clock)
        await store.create_campaign(campaign)
        folder = str(tmp_path / f"archive of {name}")
        counts = ArchivedCounts(store, Archive(open_place(folder), 16))
        reports = sorted((number % 7, number) for number in members)
        outcome = await count(counts, campaign, in_windows(campaign, reports))
        assert set(codes(outcome)) == {"window-not-open"}
        found = recount(folder, campaign.id)
        assert found.tally == await store.tally(campaign.id)
        assert (found.refused, found.reports) == (0, sum(number % 7 < 6 for number in members))
    combine("a", "b", "both")
    copy_store(tmp_path / "both", tmp_path / "copy")
    restore_store(tmp_path / "copy", tmp_path / "restored")
    for name in ("both", "restored"):
        store = await opened(name)
        tally = await store.tally(campaign.id)
        assert await store.check() == []
        for window in range(COUNT):
            counted = [number for members in numbers.values() for number in members if number % 7 == window < 6]
            assert tally.window(window).counts[0].sum() == len(counted)
            assert set(np.flatnonzero(tally.window(window).counts[0])) == set(counted)
