"""The archive as a server writes it: the accepted reports of a commit, a file a slot, before anybody gets an answer.

The reports of a group are written as *pending* files, then counted, then published: without what the store refused,
and without uploads that were nothing but repetitions. A process that dies in between leaves pending files. Whoever
starts next counts their reports (:meth:`ArchivedCounts.recover`): those that had been counted are duplicates, those
that had not are counted now, and in both cases store and archive agree. The same is done, before anything else, with a
group of which the store did not say whether it was counted.

A pending file is called as it will be (:mod:`ldp_aggregator.archive.recount`), in the folder ``pending``.

Commits of a few reports make small files: of one slot :data:`COMPACT_AT` that this server wrote become one, and as many
of these again. The large file is there before the small ones go, so a recount at any moment counts every report once.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldp_aggregator.archive.locations import (
    Place,
    Reports,
    decode_file,
    encode_file,
    joined,
    without_refused,
)
from ldp_aggregator.archive.recount import DOCUMENT, REPORTS, SUFFIX, check_slots, file_name, slot_of
from ldp_aggregator.counting.payloads import payload_rows
from ldp_aggregator.store.contract import (
    LOG,
    UNAVAILABLE,
    UNSETTLED,
    Counting,
    Outcome,
    StoreError,
    Submission,
    told_of,
)
from ldp_protocols import Campaign
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import Block

PENDING: Final = "pending"
COMPACT_AT: Final = 64
"""Files of one slot and about one size that become one."""
SMALL_ROWS: Final = 1 << 16
"""Files with more rows stay as they are."""


@dataclass(frozen=True)
class PendingFile:
    """Reports of a campaign under the name that they will have."""

    campaign: Campaign
    slot: int
    name: str
    reports: Mapping[int, Reports]

    @property
    def rows(self) -> int:
        return sum(len(reports.ids) for reports in self.reports.values())

    @property
    def pending(self) -> str:
        return f"{self.campaign.id}/{PENDING}/{self.name}"

    @property
    def published(self) -> str:
        return f"{self.campaign.id}/{REPORTS}/{self.name}"


class Archive:
    """An archive of reports, as a server writes it. Not for several threads at once.

    ``slots`` is the number of files a large group becomes, and how many parts a recount can run on at once.
    """

    def __init__(self, place: Place, slots: int = 16) -> None:
        check_slots(slots)
        self._place = place
        self.url = place.url
        self._slots = slots
        self._announced: set[str] = set()
        self._compactor = ThreadPoolExecutor(1, thread_name_prefix="archive-compactor")
        self._small: dict[tuple[str, int, int], list[str]] = {}
        """Names of the files that this server published, by campaign, slot and how often they were put together."""

    def write(self, submissions: Sequence[Submission]) -> list[PendingFile]:
        """Write the reports of a group, but for those that no device can have sent. Raises StoreError."""
        group = secrets.token_hex(8)
        files = [
            PendingFile(campaign, slot, file_name(slot, self._slots, group), reports)
            for campaign, parts in self._by_campaign(submissions)
            for slot, reports in parts
        ]
        for file in files:
            if file.campaign.id not in self._announced:
                self._place.put(f"{file.campaign.id}/{DOCUMENT}", file.campaign.document)
                self._announced.add(file.campaign.id)
            self._place.put(file.pending, encode_file(file.reports))
        return files

    def tidy(self, files: Sequence[PendingFile]) -> Future[None] | None:
        """Merge small files if there are many, in a thread beside, after these were published."""
        due = [file for file in files if self._note(file.campaign, file.slot, 0, file.published, file.rows)]
        if not due:
            return None
        return self._compactor.submit(self._compact_all, [(file.campaign, file.slot) for file in due])

    def forget(self, campaign_id: str) -> None:
        """Remove everything that is archived of a campaign. Raises StoreError, and may be called again."""
        self._announced.discard(campaign_id)
        self._place.remove_folder(campaign_id)

    def publish(self, files: Sequence[PendingFile]) -> None:
        """Make pending files a part of the archive, as they are. Raises StoreError, and may be called again.

        A file that somebody else has published meanwhile is there.
        """
        for file in files:
            self._place.move(file.pending, file.published)

    def publish_some(self, files: Sequence[PendingFile], accepted: Sequence[Submission]) -> None:
        """Make a part of the archive what of the pending files belongs to ``accepted``. Raises StoreError."""
        counted = {(one.id, slot): reports for one, parts in self._by_campaign(accepted) for slot, reports in parts}
        for file in files:
            reports = counted.get((file.campaign.id, file.slot))
            if reports is not None:
                self._place.put(file.published, encode_file(reports))
            self._place.remove(file.pending)

    def replace(self, file: PendingFile, accepted: Submission) -> None:
        """Make a part of the archive what there is in place of a pending file. Raises StoreError."""
        if accepted.blocks:
            self._place.put(file.published, encode_file(_gathered(file.campaign, accepted.blocks)))
        self._place.remove(file.pending)

    def left(self, campaign_id: str) -> int:
        """Count the files that a process has left pending of a campaign."""
        return sum(name.endswith(SUFFIX) for name in self._place.names(f"{campaign_id}/{PENDING}"))

    def pending(self, campaign: Campaign) -> list[PendingFile]:
        """Read what a process has left of a campaign."""
        found = []
        for name in self._place.names(f"{campaign.id}/{PENDING}"):
            if not name.endswith(SUFFIX):
                continue  # Nothing that a server writes, so nothing that it may count.
            try:
                data = self._place.read(name)
            except StoreError:
                if name in self._place.names(f"{campaign.id}/{PENDING}"):
                    raise
                continue  # Somebody else has published it.
            found.append(PendingFile(campaign, 0, name.rsplit("/", 1)[-1], decode_file(data, campaign, name)))
        return found

    def _note(self, campaign: Campaign, slot: int, level: int, name: str, rows: int) -> bool:
        """Remember a file that was published; whether its like are enough to be put together."""
        if rows > SMALL_ROWS:
            return False
        like = self._small.setdefault((campaign.id, slot, level), [])
        like.append(name)
        return len(like) >= COMPACT_AT

    def _compact_all(self, due: Sequence[tuple[Campaign, int]]) -> None:
        for campaign, slot in due:
            try:
                level = 0
                while self._compact(campaign, slot, level):
                    level += 1
            except StoreError as error:  # Nothing is lost: the small files are there.
                about = {"campaign": campaign.id, **told_of(error)}
                LOG.warning("archived files were not put together", extra=about)

    def _compact(self, campaign: Campaign, slot: int, level: int) -> bool:
        """Put the files of a level together; whether that makes the next one due."""
        names = self._small.pop((campaign.id, slot, level), [])
        if len(names) < COMPACT_AT:
            self._small.setdefault((campaign.id, slot, level), []).extend(names)
            return False
        together = joined(decode_file(self._place.read(name), campaign, name) for name in names)
        name = f"{campaign.id}/{REPORTS}/{file_name(slot, self._slots, secrets.token_hex(8))}"
        self._place.put(name, encode_file(together))
        for old in names:
            self._place.remove(old)
        return self._note(campaign, slot, level + 1, name, sum(len(one.ids) for one in together.values()))

    def _by_campaign(
        self, group: Sequence[Submission]
    ) -> Iterator[tuple[Campaign, list[tuple[int, dict[int, Reports]]]]]:
        for campaign in {one.campaign.id: one.campaign for one in group}.values():
            blocks = [block for one in group if one.campaign.id == campaign.id for block in one.blocks]
            yield campaign, self._divided(_gathered(campaign, blocks))

    def _divided(self, gathered: Mapping[int, Reports]) -> list[tuple[int, dict[int, Reports]]]:
        parts: dict[int, dict[int, Reports]] = {}
        for question, reports in gathered.items():
            places = slot_of(reports.ids, self._slots)
            for slot in np.unique(places).tolist():
                chosen = places == slot
                parts.setdefault(slot, {})[question] = Reports(reports.ids[chosen], reports.payloads[chosen])
        return sorted(parts.items())


class ArchivedCounts:
    """A store that archives what it counts. A report that was counted is archived before :meth:`count` returns.

    One :meth:`count` at a time. If the store or the archive fails, a group may be counted although its uploaders
    were told that it was not: their next try is a duplicate then.
    """

    def __init__(self, store: Counting, archive: Archive) -> None:
        self._store = store
        self._archive = archive
        self._unsettled: dict[str, list[PendingFile]] = {}
        """Pending files by campaign, so that one that cannot be counted does not hold up the others."""
        self._unread: dict[str, Campaign] = {}
        """Campaigns of which something is pending that cannot be read: they wait, and nobody else."""

    async def count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """See :meth:`ldp_aggregator.store.contract.Counting.count`."""
        failed = await self._settle({one.campaign.id for one in submissions})
        open_ones = [one for one in submissions if one.campaign.id not in failed]
        if not open_ones:
            await self._store.beat()  # Where that fails too, it is the database, and no campaign.
        counted = iter(await self._count(open_ones) if open_ones else ())
        return [Outcome(refused=UNAVAILABLE) if one.campaign.id in failed else next(counted) for one in submissions]

    async def beat(self) -> None:
        """Write, durably, and change nothing."""
        await self._settle(set(self._unsettled))
        await self._store.beat()

    async def recover(self, campaigns: Sequence[Campaign]) -> int:
        """Count and publish what other processes have left pending; returns the number of files.

        What cannot be counted now is tried again with the next upload to its campaign.
        """
        number = 0
        self._unread = {campaign.id: campaign for campaign in campaigns}
        for campaign in campaigns:
            try:
                number += await self._read_pending(campaign)
            except StoreError as error:  # What is strange in one stops no other.
                LOG.error("archived reports wait", extra={"campaign": campaign.id, **told_of(error)})
        await self._settle(set(self._unsettled))
        return number

    async def _read_pending(self, campaign: Campaign) -> int:
        files = await asyncio.to_thread(self._archive.pending, campaign)
        if files:
            self._unsettled.setdefault(campaign.id, []).extend(files)
        self._unread.pop(campaign.id, None)
        return len(files)

    async def _count(self, submissions: Sequence[Submission]) -> list[Outcome]:
        files = await asyncio.to_thread(self._archive.write, submissions)
        for file in files:
            self._unsettled.setdefault(file.campaign.id, []).append(file)
        outcomes = await self._store.count(submissions)
        answered = list(zip(submissions, outcomes, strict=True))
        unsure = {one.campaign.id for one, outcome in answered if outcome.refused == UNAVAILABLE}
        files = [file for file in files if file.campaign.id not in unsure]
        if all(one.counted and not one.rejected for one in outcomes):
            await asyncio.to_thread(self._archive.publish, files)
            self._archive.tidy(files)
        else:
            accepted = [_accepted(*one) for one in answered]
            await asyncio.to_thread(self._archive.publish_some, files, accepted)
        for file in files:
            self._unsettled.pop(file.campaign.id, None)
        return outcomes

    async def _settle(self, campaigns: set[str]) -> dict[str, StoreError]:
        """Count groups of which nobody knows whether they were counted; returns the campaigns for which that failed."""
        failed = {}
        for campaign_id in sorted(campaigns & (self._unsettled.keys() | self._unread.keys())):
            try:
                if campaign_id in self._unread:
                    await self._read_pending(self._unread[campaign_id])
                if campaign_id in self._unsettled:
                    await self._settle_campaign(campaign_id)
            except StoreError as error:  # The next one may be sound.
                LOG.error("archived reports wait", extra={"campaign": campaign_id, **told_of(error)})
                failed[campaign_id] = error
        return failed

    async def _settle_campaign(self, campaign_id: str) -> None:
        files = self._unsettled[campaign_id]
        while files:
            file = files[-1]
            gathered = sorted(file.reports.items())
            blocks = [Block(question, one.ids.tobytes(), one.payloads.tobytes()) for question, one in gathered]
            submission = Submission(file.campaign, tuple(blocks))
            [outcome] = await self._store.count([submission])
            if outcome.refused in (UNAVAILABLE, UNSETTLED):
                raise StoreError(f"campaign {campaign_id} cannot be counted now")
            accepted = _accepted(submission, outcome, repeated=True)
            if accepted.reports == submission.reports:
                await asyncio.to_thread(self._archive.publish, [file])
            else:
                await asyncio.to_thread(self._archive.replace, file, accepted)
            files.pop()
        del self._unsettled[campaign_id]


def _gathered(campaign: Campaign, blocks: Sequence[Block]) -> dict[int, Reports]:
    """All sound reports of a campaign by question."""
    payloads: dict[int, list[bytes]] = {}
    ids: dict[int, list[bytes]] = {}
    for block in blocks:
        payloads.setdefault(block.question, []).append(block.payloads)
        ids.setdefault(block.question, []).append(block.ids)
    gathered = {}
    for question in sorted(payloads):
        rows = payload_rows(campaign.counted[question], b"".join(payloads[question]))
        names = np.frombuffer(b"".join(ids[question]), dtype=np.uint8).reshape(-1, ID_BYTES)
        reports = without_refused(campaign, question, Reports(names, rows))
        if len(reports.ids):
            gathered[question] = reports
    return gathered


def _accepted(submission: Submission, outcome: Outcome, *, repeated: bool = False) -> Submission:
    """The accepted reports of an upload; one of duplicates alone has some only if ``repeated``."""
    if outcome.refused is not None or not (outcome.counted or repeated):
        return Submission(submission.campaign, ())
    wrong = set(outcome.places)
    if not wrong:
        return submission
    blocks, start = [], 0
    for block in sorted(submission.blocks, key=lambda one: one.question):
        width = len(block.payloads) // block.count
        left = [row for row in range(block.count) if start + row not in wrong]
        start += block.count
        if left:
            ids = b"".join(block.ids[ID_BYTES * row : ID_BYTES * (row + 1)] for row in left)
            payloads = b"".join(block.payloads[width * row : width * (row + 1)] for row in left)
            blocks.append(Block(block.question, ids, payloads))
    return Submission(submission.campaign, tuple(blocks))
