"""Uploads: how much one may hold, how it is read, which of them are counted together, and what its sender is told.

Pure, and the same for every way on which an upload comes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol

from ldp_aggregator.counting.decoding import MOST_LAYOUTS, ById
from ldp_aggregator.server.problems import ProblemError, retry_later
from ldp_aggregator.service.settings import Limits
from ldp_aggregator.store.contract import UNAVAILABLE, Outcome, Submission
from protocols import Campaign, Report, UploadError, decode_upload, encode_upload
from protocols.wire import ID_BYTES, Block

LEAST_BYTES: Final = 8 << 10
"""Shorter uploads are read in any case, and told what is wrong with them."""
ALL_COUNTED: Final = b'{"rejected": []}'
_COUNTED: Final = Outcome(counted=1)


@dataclass(frozen=True, slots=True)
class UploadBounds:
    """The bounds of an upload: so many reports and bytes. ``batch`` is the number of devices a relay vouches for, which
    is believed as far as the upload holds them.

    ``stranger`` is why a token that was shown makes nobody a relay: whoever sends too much is told that instead.
    """

    campaign: Campaign
    reports: int
    bytes: int
    is_relay: bool = False
    batch: int | None = None
    stranger: ProblemError | None = None

    def check_length(self, length: int) -> None:
        """Raises ProblemError for a body that is too long."""
        if length > self.bytes:
            text = f"at most {self.bytes} bytes are accepted, not {length}"
            raise self.stranger or ProblemError("body-too-large", text)


def for_a_device(campaign: Campaign, limits: Limits, stranger: ProblemError | None = None) -> UploadBounds:
    """Bound what a device can have to send: its answers to one question of each group, and nothing more."""
    longest = min(_longest(ById(campaign)), limits.body_bytes)
    return UploadBounds(campaign, min(len(campaign.groups), limits.reports_per_upload), longest, stranger=stranger)


def for_a_relay(campaign: Campaign, limits: Limits, batch: int | None) -> UploadBounds:
    """With a relay's token."""
    return UploadBounds(campaign, limits.reports_per_upload, limits.body_bytes, is_relay=True, batch=batch)


@lru_cache(maxsize=MOST_LAYOUTS)
def _longest(key: ById) -> int:
    groups = key.campaign.groups
    widest = [max(members, key=lambda question: question.mechanism.width) for members in groups]
    longest = encode_upload([Report(q.index, bytes(ID_BYTES), bytes(q.mechanism.width)) for q in widest])
    # The number of another question of the same group may take two bytes more.
    return max(LEAST_BYTES, len(longest) + 2 * len(groups))


class Upload(Protocol):
    """An upload as it came, whose sender waits."""

    terms: UploadBounds
    body: bytes
    since: float
    """When it was asked for, on the clock of ``time.perf_counter``."""

    def settle(self, outcome: Outcome) -> None:
        """Answer after the commit."""
        ...

    def refuse(self, problem: ProblemError) -> None:
        """Answer that nothing of it was counted."""
        ...


def reports_about(upload: Upload) -> int:
    """Count the reports of an upload, or some more: no report is shorter than its id and a byte."""
    return 1 if not upload.terms.is_relay else max(1, len(upload.body) // (ID_BYTES + 1))


def read_upload(terms: UploadBounds, body: bytes) -> Submission:
    """The strict way. Raises ProblemError."""
    try:
        submission = Submission(terms.campaign, decode_upload(body, terms.campaign))
    except UploadError as error:
        raise ProblemError(error.code, str(error)) from None
    if terms.batch is not None:
        # What is known already of a batch's other uploads is seen by nobody here: each hides what it holds itself.
        answers = len(terms.campaign.groups) if terms.campaign.privacy.answers == "all" else 1
        submission = replace(submission, batch=min(terms.batch, submission.reports // answers))
    if submission.reports > terms.reports:
        text = f"at most {terms.reports} are accepted, not {submission.reports}"
        raise terms.stranger or ProblemError("too-many-reports", text)
    return submission


def answer_to(outcome: Outcome) -> bytes:
    """The body of a 200: the reports that were not counted. Raises ProblemError where the whole upload was refused."""
    if outcome.refused is not None:
        again = outcome.refused == UNAVAILABLE
        raise retry_later(outcome.refused) if again else ProblemError(outcome.refused)
    if not outcome.rejected:
        return ALL_COUNTED
    return json.dumps({"rejected": [[report.hex(), code] for report, code in outcome.rejected]}).encode()


@dataclass(frozen=True, slots=True)
class Bundle:
    """A submission, and whose it is: one upload's, or one report each of several, in their order."""

    submission: Submission
    uploads: Sequence[Upload]

    def settle(self, outcome: Outcome) -> None:
        """Tell everybody what became of his upload."""
        if len(self.uploads) == 1 or outcome.refused is not None:
            for upload in self.uploads:
                upload.settle(outcome)
            return
        special = {place: Outcome(rejected=(one,)) for place, one in zip(outcome.places, outcome.rejected, strict=True)}
        for place, upload in enumerate(self.uploads):
            upload.settle(special.get(place, _COUNTED))


def bundle(group: Iterable[Upload]) -> tuple[list[Bundle], list[tuple[Upload, ProblemError]]]:
    """The submissions of a group, of which the reports that devices sent alone are one a campaign; and uploads that are
    none.
    """
    bundles: list[Bundle] = []
    refusals: list[tuple[Upload, ProblemError]] = []
    alone: dict[str, list[tuple[Block, Upload]]] = {}
    for upload in group:
        try:
            submission = read_upload(upload.terms, upload.body)
        except ProblemError as problem:
            refusals.append((upload, problem))
            continue
        if submission.reports == 1 and not upload.terms.is_relay:
            alone.setdefault(submission.campaign.id, []).append((submission.blocks[0], upload))
        else:
            bundles.append(Bundle(submission, (upload,)))
    bundles += [_together(reports) for reports in alone.values()]
    return bundles, refusals


def _together(reports: list[tuple[Block, Upload]]) -> Bundle:
    """One submission of uploads of one report each to a campaign."""
    reports.sort(key=lambda report: report[0].question)
    blocks = []
    for question, asked in groupby((block for block, _ in reports), key=attrgetter("question")):
        members = list(asked)
        payloads = b"".join([block.payloads for block in members])
        blocks.append(Block(question, b"".join([block.ids for block in members]), payloads))
    uploads = [upload for _, upload in reports]
    return Bundle(Submission(uploads[0].terms.campaign, tuple(blocks)), uploads)
