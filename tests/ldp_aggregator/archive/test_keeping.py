"""What a server writes beside its store, and what is made of it after the server died."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from archived import random_kept

from ldp_aggregator.archive.engines.processes import on_processes
from ldp_aggregator.archive.files import ArchiveError, Kept
from ldp_aggregator.archive.keeping import Archive
from ldp_aggregator.archive.places import open_place
from ldp_aggregator.archive.reading import REPORTS, recount
from ldp_aggregator.counting.tally import Tally
from protocols import Campaign
from protocols.wire.upload import Block

MISSING = "A" * 43


def write(archive: Archive, campaign: Campaign, kept: dict[int, Kept]) -> None:
    ids = np.concatenate([one.ids for one in kept.values()])
    archive.write(campaign, ids, {q: one.payloads for q, one in kept.items()}, np.ones(len(ids), dtype=bool))


def tally_of(campaign: Campaign, *groups: dict[int, Kept]) -> Tally:
    tally = Tally(campaign)
    for kept in groups:
        for question, one in kept.items():
            tally.add_block(Block(question, one.ids.tobytes(), one.payloads.tobytes()))
    return tally


def test_what_was_published_is_recounted_here_and_on_processes(campaign: Campaign, tmp_path: Path) -> None:
    groups = [random_kept(campaign, 200, seed) for seed in range(3)]
    for slots, kept in zip((16, 4, 1), groups, strict=True):
        archive = Archive(open_place(str(tmp_path)), slots)
        write(archive, campaign, kept)
        archive.publish()
    found = recount(str(tmp_path), campaign.id)
    assert found.tally == tally_of(campaign, *groups)
    assert found == recount(str(tmp_path), campaign.id, lambda *given: on_processes(*given, workers=2))


def test_servers_that_archive_in_different_slots_still_meet_in_the_same_part(
    campaign: Campaign, tmp_path: Path
) -> None:
    kept = random_kept(campaign, 200, 1)
    for slots in (16, 2, 256, 8):
        archive = Archive(open_place(str(tmp_path)), slots)
        write(archive, campaign, kept)
        archive.publish()
    found = recount(str(tmp_path), campaign.id)
    assert found.tally == tally_of(campaign, kept)
    assert found.duplicates == 3 * found.reports


def test_only_what_was_counted_is_kept(campaign: Campaign, tmp_path: Path) -> None:
    kept = random_kept(campaign, 200, 2)
    ids = np.concatenate([one.ids for one in kept.values()])
    counted = np.arange(len(ids)) % 3 == 0
    archive = Archive(open_place(str(tmp_path)))
    archive.write(campaign, ids, {q: one.payloads for q, one in kept.items()}, counted)
    archive.publish()
    assert recount(str(tmp_path), campaign.id).reports == counted.sum()
    archive.write(campaign, ids, {q: one.payloads for q, one in kept.items()}, np.zeros(len(ids), dtype=bool))
    assert archive.pending(campaign) == []


def test_nothing_pending_is_recounted_and_what_was_rolled_back_is_gone(campaign: Campaign, tmp_path: Path) -> None:
    archive = Archive(open_place(str(tmp_path)))
    write(archive, campaign, random_kept(campaign, 100, 3))
    assert archive.pending(campaign)
    assert recount(str(tmp_path), campaign.id).reports == 0
    archive.discard()
    assert archive.pending(campaign) == []
    archive.publish()
    assert recount(str(tmp_path), campaign.id).reports == 0


def test_whoever_starts_next_gets_the_reports_of_a_process_that_died(campaign: Campaign, tmp_path: Path) -> None:
    kept = random_kept(campaign, 100, 4)
    write(Archive(open_place(str(tmp_path))), campaign, kept)
    following = Archive(open_place(str(tmp_path)))
    tally = Tally(campaign)
    for name in following.pending(campaign):
        for block in following.read_pending(campaign, name):
            tally.add_block(block)
        following.publish_pending(campaign, name)
        assert following.read_pending(campaign, name) == ()
    assert tally == tally_of(campaign, kept) == recount(str(tmp_path), campaign.id).tally
    assert following.pending(campaign) == []


def test_a_file_that_somebody_else_published_is_published(campaign: Campaign, tmp_path: Path) -> None:
    archive, other = (Archive(open_place(str(tmp_path))) for _ in range(2))
    kept = random_kept(campaign, 100, 5)
    write(archive, campaign, kept)
    for name in other.pending(campaign):
        other.publish_pending(campaign, name)
    archive.publish()
    assert recount(str(tmp_path), campaign.id).tally == tally_of(campaign, kept)


def test_a_campaign_that_is_not_there_or_not_itself_is_not_recounted(campaign: Campaign, tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="cannot be read"):
        recount(str(tmp_path), MISSING)
    open_place(str(tmp_path)).put(f"{MISSING}/document.json", campaign.document)
    with pytest.raises(ArchiveError, match="SHA-256"):
        recount(str(tmp_path), MISSING)


def test_a_stray_file_is_named_and_stops_the_recount(campaign: Campaign, tmp_path: Path) -> None:
    archive = Archive(open_place(str(tmp_path)))
    write(archive, campaign, random_kept(campaign, 100, 6))
    archive.publish()
    open_place(str(tmp_path)).put(f"{campaign.id}/{REPORTS}/copy.parquet", b"")
    with pytest.raises(ArchiveError, match=r"copy\.parquet"):
        recount(str(tmp_path), campaign.id)
