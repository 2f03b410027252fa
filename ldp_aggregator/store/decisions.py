"""The decisions of a store about uploads and campaigns, as pure functions of what was read.

A :class:`Batch` is a group of uploads to one campaign, as arrays. The store asks three things of it: which (id, digest)
pairs to insert (:attr:`Batch.candidates`), what to add once it knows which of them it held already
(:meth:`Batch.settle`), and what to tell each uploader.

Whoever calls what decides about a campaign read the arguments inside the transaction that acts on the answer, under
whatever lock its database needs for them to stay true until the commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import DIGEST_BYTES, PayloadMatrix, Sums, lay_out
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_aggregator.store import contract
from ldp_aggregator.store.clocks import GRACE, Moment
from ldp_aggregator.store.contract import Life, Outcome, Standing, StoreError, Submission, to_text
from ldp_protocols import Campaign
from ldp_protocols.document.windows import WINDOW_GRACE
from ldp_protocols.framing import ID_BYTES

RECORD_BYTES: Final = ID_BYTES + DIGEST_BYTES
"""An id and its digest, as they go to the store side by side."""


@dataclass(frozen=True)
class Settlement:
    """Additions of a commit, and the answer to every submission of the batch."""

    sums: Sums
    counted: int
    outcomes: tuple[Outcome, ...]
    vouched: int = 0
    """Counted reports of uploads whose batch a relay vouched for."""
    least_batch: int | None = None
    """The smallest of these batches, less what hid nobody in its upload."""
    revealed: int = 0
    """Reports that were known before and came again outside of a batch."""


@dataclass(frozen=True)
class Batch:
    """All reports of ``submissions`` (of one campaign), ordered by question, then as they came.

    ``run`` gives for every report the position of its id among :attr:`candidates`, -1 where its payload was refused.
    ``untimely`` has the code of each report whose window is not counted now: where it is known it is a success as any
    other, and if it is not it is not counted.
    """

    campaign: Campaign
    submissions: tuple[Submission, ...]
    owners: NDArray[np.int64]
    matrices: Sequence[PayloadMatrix]
    ids: Rows
    digests: NDArray[np.uint64]
    codes: Mapping[int, str]
    untimely: Mapping[int, str]
    run: NDArray[np.int64]
    firsts: NDArray[np.int64]
    """Report of each candidate: the first of its id that is in time, else the first."""

    def refused(self, code: str) -> tuple[Outcome, ...]:
        """The answer to every submission where the campaign takes none."""
        return (Outcome(refused=code),) * len(self.submissions)

    @property
    def candidates(self) -> Rows:
        """Distinct ids in increasing order, each with the digest of its first report; shape (m, RECORD_BYTES). Each is
        looked up, and stored where it is new and in time.
        """
        records = np.empty((len(self.firsts), RECORD_BYTES), dtype=np.uint8)
        records[:, :ID_BYTES] = self.ids[self.firsts]
        records[:, ID_BYTES:] = self.digests[self.firsts].astype("<u8")[:, None].view(np.uint8)
        return records

    @cached_property
    def timely(self) -> NDArray[np.bool_]:
        """Candidates that may be stored where they are new."""
        if not self.untimely:
            return np.ones(len(self.firsts), dtype=np.bool_)
        return ~np.isin(self.firsts, np.fromiter(self.untimely, dtype=np.int64, count=len(self.untimely)))

    def earliest(self, digests: Mapping[int, bytes], limit: int) -> NDArray[np.int64]:
        """Positions of the first ``limit`` candidates, as they came, that are in time and not in ``digests``."""
        unknown = self.timely.copy()
        unknown[np.fromiter(digests, dtype=np.int64, count=len(digests))] = False
        fresh = np.flatnonzero(unknown)
        if len(fresh) <= limit:
            return fresh
        chosen = fresh[np.argsort(self.owners[self.firsts[fresh]], kind="stable")[:limit]]
        return np.sort(chosen)

    def settle(
        self, digests: Mapping[int, bytes], inserted: NDArray[np.int64] | None = None, bar: str | None = None
    ) -> Settlement:
        """Decide every report, given the candidates (position to digest) that the store held already.

        ``inserted`` names the candidates that were stored where not all were that are new and in time: the rest met a
        full campaign, or one whose ``bar`` (a code) they did not pass. What was known is a success in any case.
        """
        # One entry more than there are candidates, so that a refused report's rank of -1 finds one.
        truth = np.append(self.digests[self.firsts], np.uint64(0))
        new = np.ones(len(self.firsts) + 1, dtype=bool)
        new[-1] = False
        if digests:
            positions = np.fromiter(digests, dtype=np.int64, count=len(digests))
            truth[positions] = np.frombuffer(b"".join(digests.values()), dtype="<u8")
            new[positions] = False
        shut = np.zeros_like(new)
        if inserted is not None:
            shut = new.copy()
            shut[inserted] = False
        elif self.untimely:
            shut[:-1] = new[:-1] & ~self.timely
        new &= ~shut
        counted = np.zeros(len(self.ids), dtype=bool)
        counted[self.firsts[new[:-1]]] = True
        left = shut[self.run]
        framed = (self.run >= 0) & ~left
        same = framed & (self.digests == truth[self.run])
        codes = dict(self.codes)
        codes |= dict.fromkeys(np.flatnonzero(framed & ~same).tolist(), contract.CONFLICTING)
        codes |= {row: bar or self.untimely.get(row, contract.CLOSING) for row in np.flatnonzero(left).tolist()}
        outcomes = self._outcomes(counted, same & ~counted, codes)
        if bar is not None:
            outcomes = tuple(_barred(outcome, bar) for outcome in outcomes)
        sums = {question: added for matrix in self.matrices for question, added in matrix.sums(counted).items()}
        return Settlement(sums, int(new.sum()), outcomes, *self._mixed(outcomes))

    def _mixed(self, outcomes: Sequence[Outcome]) -> tuple[int, int | None, int]:
        """Add up what relays vouch for: reports vouched for, the least batch, and what was seen again outside of one.

        An upload of which nothing is new is a relay's second try, and says nothing of its batch.
        """
        vouched, least, revealed = 0, None, 0
        for submission, outcome in zip(self.submissions, outcomes, strict=True):
            if submission.batch is None:
                revealed += outcome.duplicates + sum(code == contract.CONFLICTING for _, code in outcome.rejected)
            elif outcome.counted:
                vouched += outcome.counted
                crowd = max(0, submission.batch - (submission.reports - outcome.counted))
                least = crowd if least is None else min(least, crowd)
        return vouched, least, revealed

    def _outcomes(
        self, counted: NDArray[np.bool_], repeated: NDArray[np.bool_], codes: Mapping[int, str]
    ) -> tuple[Outcome, ...]:
        uploads = len(self.submissions)
        numbers = np.bincount(self.owners[counted], minlength=uploads).tolist()
        duplicates = np.bincount(self.owners[repeated], minlength=uploads).tolist()
        if not codes:
            return tuple(map(Outcome, numbers, duplicates))
        rejected: list[list[tuple[bytes, str]]] = [[] for _ in range(uploads)]
        places: list[list[int]] = [[] for _ in range(uploads)]
        reports = np.bincount(self.owners, minlength=uploads)
        standing = np.empty(len(self.owners), dtype=np.int64)
        standing[np.argsort(self.owners, kind="stable")] = np.arange(len(self.owners)) - np.repeat(
            np.cumsum(reports) - reports, reports
        )
        for row, code in sorted(codes.items()):
            owner = self.owners[row]
            rejected[owner].append((self.ids[row].tobytes(), code))
            places[owner].append(int(standing[row]))
        return tuple(
            Outcome(number, duplicate, tuple(refused), places=tuple(where))
            for number, duplicate, refused, where in zip(numbers, duplicates, rejected, places, strict=True)
        )


def _barred(outcome: Outcome, bar: str) -> Outcome:
    """An upload of which nothing is known is refused as a whole. So is one to a clock that is not settled: it comes
    again whole.
    """
    everything = outcome.rejected and not outcome.duplicates and {code for _, code in outcome.rejected} == {bar}
    is_unsure = bar == contract.UNSETTLED and any(code == bar for _, code in outcome.rejected)
    return Outcome(refused=bar) if everything or is_unsure else outcome


def is_known(answers: Mapping[str, Sequence[Outcome]]) -> bool:
    """True if nothing of a group is new, and something of it was there before. Whoever counts writes all the
    same: what is known takes as long to acknowledge as what is new.
    """
    each = [outcome for outcomes in answers.values() for outcome in outcomes]
    return not any(one.counted for one in each) and any(one.duplicates or one.rejected for one in each)


def needs_time(submissions: Sequence[Submission]) -> bool:
    """True if any is of a campaign with windows, which count what is in time."""
    return any(submission.campaign.windows is not None for submission in submissions)


def gather_by_campaign(submissions: Sequence[Submission], moment: Moment | None = None) -> dict[str, Batch]:
    """A batch for each campaign, in the order of their ids: everybody who locks campaigns locks them in this order.

    ``moment`` may be None if nothing :func:`needs_time`.
    """
    groups: dict[str, list[Submission]] = {}
    for submission in submissions:
        groups.setdefault(submission.campaign.id, []).append(submission)
    return {name: gather(members[0].campaign, members, moment) for name, members in sorted(groups.items())}


def in_order(submissions: Sequence[Submission], answers: Mapping[str, Sequence[Outcome]]) -> list[Outcome]:
    """The outcomes of every campaign's batch, as their submissions came."""
    following = {name: iter(outcomes) for name, outcomes in answers.items()}
    return [next(following[submission.campaign.id]) for submission in submissions]


def gather(campaign: Campaign, submissions: Sequence[Submission], moment: Moment | None = None) -> Batch:
    """Lay out the reports of a group of uploads to one campaign and look for those no device can have sent, or not now.

    ``moment`` may be None for a campaign without windows.
    """
    blocks = sorted(
        ((block.question, owner, block) for owner, submission in enumerate(submissions) for block in submission.blocks),
        key=lambda entry: entry[:2],
    )
    counts = [block.count for _, _, block in blocks]
    owners = np.repeat(np.array([owner for _, owner, _ in blocks], dtype=np.int64), counts)
    ids = np.frombuffer(b"".join(block.ids for _, _, block in blocks), dtype=np.uint8).reshape(-1, ID_BYTES)
    questions = np.repeat(np.array([question for question, _, _ in blocks], dtype=np.int64), counts)
    laid_out = lay_out(campaign, questions, b"".join([block.payloads for _, _, block in blocks]))
    codes: dict[int, str] = {}
    checks = np.empty(len(questions), dtype=np.uint64)
    for matrix in laid_out:
        codes |= matrix.refusals()
        checks[matrix.places] = matrix.digests()
    untimely = {row: code for row, code in _untimely(campaign, questions, moment).items() if row not in codes}
    run, firsts = _runs(ids, codes, untimely)
    return Batch(campaign, tuple(submissions), owners, laid_out, ids, checks, codes, untimely, run, firsts)


def _untimely(campaign: Campaign, questions: NDArray[np.int64], moment: Moment | None) -> dict[int, str]:
    """The code of every report of a window whose answers are not counted yet, or no more."""
    if campaign.windows is None:
        return {}
    if moment is None:
        raise ValueError("a campaign with windows needs the time of the count")
    windows, taken = questions // len(campaign.questions), campaign.windows.counted_at(moment.now)
    early, late = np.flatnonzero(windows >= taken.stop).tolist(), np.flatnonzero(windows < taken.start).tolist()
    over = {row: campaign.windows.opens(int(windows[row]) + 1) + WINDOW_GRACE for row in late}
    codes = {row: contract.WINDOW_OVER if moment.is_past(end) else contract.CLOSING for row, end in over.items()}
    return codes | dict.fromkeys(early, contract.WINDOW_NOT_OPEN)


def _runs(
    ids: Rows, refused: Mapping[int, str], untimely: Mapping[int, str]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For every report the rank of its id among the distinct ids (-1 where refused); for every rank its first report,
    an ``untimely`` one only where there is no other.

    A refused report claims no id: the device may still send a sound one.
    """
    halves = np.ascontiguousarray(ids).view(">u8").astype(np.uint64)
    keys = (halves[:, 1], halves[:, 0])
    if untimely:
        last = np.zeros(len(ids), dtype=bool)
        last[list(untimely)] = True
        order = np.lexsort((last, *keys))
    else:
        order = np.lexsort(keys)
    if refused:
        order = order[~np.isin(order, np.fromiter(refused, dtype=np.int64, count=len(refused)))]
    ordered = halves[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    run = np.full(len(ids), -1, dtype=np.int64)
    run[order] = np.cumsum(starts) - 1
    return run, order[starts].astype(np.int64)


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """A campaign beside its document, as every database keeps it. ``number`` is its key there.

    A campaign has a ``salt`` if and only if it is federated.
    """

    number: int
    id: str
    title: str
    created: datetime
    life: Life
    max_reports: int | None
    salt: bytes | None
    over_since: datetime | None = None
    """Time at which it was first seen to be past its end, or full."""
    overlap: int = 0
    unchecked: int = 0
    """Reports that are, and that may be, in the sums twice; see :class:`Arrivals`."""
    lost_ids: int = 0
    """Reports whose ids were lost with a damaged run."""
    uploads_need: str | None = None

    @property
    def may_become_federated(self) -> bool:
        """The number of reports decides its kind: without one, a first share makes it federated."""
        return self.salt is None and self.max_reports is None

    def arrivals(self, reports: int, vouched: int, least_batch: int | None) -> Arrivals:
        """The arrivals, with the vouched reports and the least batch of the parts."""
        return Arrivals(reports, vouched, least_batch, self.overlap, self.unchecked)


def takes_reports(salt: bytes | None, max_reports: int | None, counted: int) -> bool:
    """A campaign is one of devices, and stays so; before its first report one without a limit may become federated."""
    return salt is None and (max_reports is not None or counted > 0)


def is_over(life: Life, max_reports: int | None, counted: int, now: datetime) -> bool:
    """A campaign will never take a report again: it is closed, past its end, or full."""
    return is_full(max_reports, counted) or life.is_over(now)


def is_full(max_reports: int | None, counted: int) -> bool:
    """A campaign has all the reports that it takes."""
    return max_reports is not None and counted >= max_reports


def ending(row: CampaignRow, counted: int, moment: Moment) -> dict[str, datetime | None]:
    """The columns that a look at a campaign's end changes.

    Safety: one wrong clock ends nothing. It has to have seen the end for a day, and no right one meanwhile; what was
    closed in the future was closed by a wrong one. One that jumped sees nothing.
    """
    now = moment.now
    if not moment.settled or row.life.sealed is not None:
        return {}
    if row.life.closed is not None:
        if row.life.closed <= now:
            return {}
        # Without a look at its end that was an operator, whose word holds, whatever the clock was.
        return {"closed": now} if row.over_since is None else {"closed": None, "over_since": None}
    if not is_over(row.life, row.max_reports, counted, now):
        return {"over_since": None}
    if row.over_since is None or row.over_since > now:
        return {"over_since": now}
    return {"closed": now} if now - row.over_since >= GRACE else {}


def check_reopening(row: CampaignRow) -> None:
    """Check that a campaign can be reopened. Raises StoreError if its ids are gone: reports could count twice."""
    if row.life.sealed is not None:
        text = f"campaign {row.id} is sealed: its ids are gone, and a report sent again would count twice"
        raise StoreError(text, contract.SEALED)


def check_closed(row: CampaignRow) -> datetime:
    """Time at which a campaign was closed. Raises StoreError if devices may still answer."""
    if row.life.closed is None:
        text = f"campaign {row.id} was not closed; 'ldp-aggregator campaign close' comes first"
        raise StoreError(text, contract.NOT_CLOSED)
    return row.life.closed


def check_sealing(row: CampaignRow, now: datetime, *, at_once: bool) -> None:
    """Check that the ids may be dropped. Raises StoreError if it is too early; sealing twice changes nothing."""
    closed = check_closed(row)
    if row.life.sealed is None and now - closed < GRACE and not at_once:
        raise StoreError(
            f"campaign {row.id} was closed at {to_text(closed)} and can be sealed from {to_text(closed + GRACE)} on; "
            "until then 'campaign close --undo' takes it back (--seal-now seals at once)",
            contract.TOO_EARLY,
        )


def refuse_uploads(row: CampaignRow) -> str | None:
    """The code that refuses every upload without a look at its reports: there are no ids to look them up in."""
    if row.salt is not None:
        return contract.TAKES_SHARES
    return None if row.life.sealed is None else contract.CLOSED


def goes_by_time(campaign: Campaign) -> bool:
    """The document says when the campaign takes reports."""
    return campaign.opens is not None or campaign.closes is not None or campaign.windows is not None


def bar_of(row: CampaignRow, campaign: Campaign, moment: Moment) -> str | None:
    """The code that every report meets which is not known, None if the campaign takes new ones."""
    bar = row.life.refusal(moment)
    return contract.UNSETTLED if bar is None and campaign.windows is not None and not moment.settled else bar


def standing(row: CampaignRow, counted: int, moment: Moment) -> Standing:
    """The public standing of a campaign. Raises StoreError if the clock would have to say it, and jumped."""
    bar = row.life.refusal(moment)
    if bar == contract.UNSETTLED:
        raise StoreError("the clock of this server jumped, and has not settled", contract.UNSETTLED)
    word = "full" if is_full(row.max_reports, counted) else _WORDS[bar]
    return Standing(word, row.life.closed or row.life.closes)


_WORDS: Final = {None: "open", contract.NOT_OPEN: "not-yet", contract.CLOSING: "closing", contract.CLOSED: "closed"}


def refuse_node(takes_shares: bool, life: Life, moment: Moment, *, token_in_use: bool) -> str | None:
    """The code that refuses a node's share, or to drop it.

    A token that was revoked or rotated since the request began changes nothing any more.
    """
    if not takes_shares:
        return contract.TAKES_REPORTS
    return life.refusal(moment) if token_in_use else contract.REVOKED


def vouched_part(settlement: Settlement, before: Arrivals) -> int:
    """Reports that a commit adds to those that were vouched for.

    A report that came vouched for and comes again outside of a batch takes one off. Which one came how is not kept: so
    that is done where everything was vouched for, and then something no longer is.
    """
    everything = before.otherwise == 0 and settlement.vouched == settlement.counted
    return settlement.vouched - (settlement.revealed if everything else 0)
