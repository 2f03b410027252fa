"""The reports in an upload, one by one: what a relay looks at before it keeps them."""

from __future__ import annotations

from collections.abc import Iterator

from protocols import Campaign, PayloadError, Report, decode_upload
from protocols.wire.reports import ID_BYTES


def reports_of(upload: bytes, campaign: Campaign) -> Iterator[Report]:
    """The reports of an upload. Raises UploadError."""
    for block in decode_upload(upload, campaign):
        width = campaign.questions[block.question].mechanism.width
        for position in range(block.count):
            identifier = block.ids[position * ID_BYTES : (position + 1) * ID_BYTES]
            yield Report(block.question, identifier, block.payloads[position * width : (position + 1) * width])


def read_reports(upload: bytes, campaign: Campaign) -> tuple[list[Report], dict[str, str]]:
    """The reports that a device can have sent, and the others with their codes."""
    reports, refused = [], {}
    for report in reports_of(upload, campaign):
        mechanism = campaign.questions[report.question].mechanism
        try:
            mechanism.check(report.payload)
        except PayloadError as error:
            refused[report.id.hex()] = error.code
        else:
            reports.append(report)
    return reports, refused
