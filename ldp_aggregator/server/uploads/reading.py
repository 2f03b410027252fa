"""From a group of uploads to submissions: those of one report to a campaign become one submission."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ldp_aggregator.counting.singles import read_singles
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.store.contract import UNAVAILABLE, Outcome, Submission
from protocols import Campaign, UploadError, decode_upload

_COUNTED: Final = Outcome(counted=1)


class Upload(Protocol):
    """An upload whose sender waits."""

    @property
    def campaign(self) -> Campaign: ...

    @property
    def reports(self) -> int:
        """How many reports it holds, or about how many."""
        ...

    @property
    def since(self) -> float:
        """When it was asked for, on the clock of ``time.perf_counter``."""
        ...

    def settle(self, outcome: Outcome) -> None:
        """Answer after the commit."""
        ...

    def refuse(self, problem: ProblemError) -> None:
        """Answer that nothing of it was counted."""
        ...


class RawUpload(Upload, Protocol):
    """An upload of a device as it came."""

    @property
    def body(self) -> bytes: ...


class ReadUpload(Upload, Protocol):
    """An upload that was decoded already."""

    @property
    def submission(self) -> Submission: ...


@dataclass(frozen=True, slots=True)
class Bundle:
    """A submission, and whose it is: one upload's, or one report each of several, in their order."""

    submission: Submission
    uploads: Sequence[Upload]

    def settle(self, outcome: Outcome) -> None:
        """Tell everybody what became of his upload."""
        if len(self.uploads) == 1 or (outcome.refused is not None and not outcome.absent):
            for upload in self.uploads:
                upload.settle(outcome)
            return
        special = {place: Outcome(rejected=(one,)) for place, one in zip(outcome.places, outcome.rejected, strict=True)}
        special |= dict.fromkeys(outcome.absent, Outcome(refused=UNAVAILABLE))
        for place, upload in enumerate(self.uploads):
            upload.settle(special.get(place, _COUNTED))


Refusals = list[tuple[Upload, ProblemError]]


def bundle(raw: Iterable[RawUpload], read: Iterable[ReadUpload]) -> tuple[list[Bundle], Refusals]:
    """The submissions of a group, and uploads that are none."""
    bundles = [Bundle(upload.submission, (upload,)) for upload in read]
    refusals: Refusals = []
    by_campaign: dict[str, list[RawUpload]] = {}
    for upload in raw:
        by_campaign.setdefault(upload.campaign.id, []).append(upload)
    for uploads in by_campaign.values():
        campaign = uploads[0].campaign
        found = read_singles(campaign, [upload.body for upload in uploads])
        if found.order:
            bundles.append(Bundle(Submission(campaign, found.blocks), [uploads[place] for place in found.order]))
        for upload in (uploads[place] for place in found.others):
            try:
                submission = read_upload(campaign, upload.body, most=len(campaign.groups))
            except ProblemError as problem:  # noqa: PERF203 - one bad upload fails no other
                refusals.append((upload, problem))
            else:
                bundles.append(Bundle(submission, (upload,)))
    return bundles, refusals


def read_upload(campaign: Campaign, body: bytes, *, most: int) -> Submission:
    """The strict way; at most so many reports. Raises ProblemError."""
    try:
        submission = Submission(campaign, decode_upload(body, campaign))
    except UploadError as error:
        raise ProblemError(error.code, str(error)) from None
    if submission.reports > most:
        raise ProblemError("too-many-reports", f"at most {most} are accepted, not {submission.reports}")
    return submission
