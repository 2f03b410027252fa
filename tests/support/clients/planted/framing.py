"""Leaks through everything around the answers: encoding, number and order of uploads."""

from __future__ import annotations

import math

import msgpack

from planted.client import PlantedClient, Record, Sent, class_of, read
from planted.witness import BLUE, RED, RED_NO, Found, Leak, Sampled, draft, reports
from protocols import Campaign, encode_upload

_EMPTY_BLOCKS = b"\x92\x01\x90"


class LongHeaderByClass(PlantedClient):
    """The version is written as two bytes for one class: the same number, another msgpack encoding.

    Leaks the class to everybody who sees the upload before the server refuses it. Unbounded. Found by a tester that
    compares bytes, and not by one that decodes with an ordinary msgpack library first.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        (upload,) = super().uploads(campaign, record, label)
        return [b"\x92\xcc\x01" + upload[2:] if class_of(campaign, label) else upload]


class TrailingByteByClass(PlantedClient):
    """A line feed after the upload for one class, left over from another writer.

    Leaks the class to everybody who sees the length. Unbounded. Found.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        (upload,) = super().uploads(campaign, record, label)
        return [upload + b"\n" * class_of(campaign, label)]


class TwiceForOneClass(PlantedClient):
    """One class sends its upload twice; the server counts it once, "so it does no harm".

    Leaks the class to everybody who counts. Unbounded. Found by a tester that looks at the number of uploads.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        return super().uploads(campaign, record, label) * (1 + class_of(campaign, label))


class SplitByClass(PlantedClient):
    """With ``answers: "all"`` one class sends all answers in one upload, the other one by one.

    Leaks the class to everybody who counts. Unbounded. Found by a tester that looks at the number of uploads.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        answers = self.reports(campaign, record, label)
        if class_of(campaign, label):
            return [encode_upload([report]) for report in answers]
        return [encode_upload(answers)]


class OrderByRecord(PlantedClient):
    """With ``answers: "all"`` answers go one by one, in the order of the record's own keys and values.

    Leaks to everybody which of two values comes first in the alphabet. Unbounded. Found by a tester that looks at the
    order of uploads, and not by one that sorts them by question first.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        def key(question: int) -> str:
            feature = campaign.questions[question].feature
            return "" if feature is None else str(read(record, feature))

        answers = sorted(self.reports(campaign, record, label), key=lambda report: key(report.question))
        return [encode_upload([report]) for report in answers]


class EmptyUploadByClass(PlantedClient):
    """A device of one class first sends an upload without reports, as a test of the connection.

    Leaks the class to everybody who sees requests. Unbounded. Found by a tester that looks at every upload, and not by
    one that skips what does not decode.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        probe = [_EMPTY_BLOCKS] if class_of(campaign, label) else []
        return probe + super().uploads(campaign, record, label)


def _long(campaign: Campaign, sent: Sent) -> bool:
    return sent[0][0][1] == 0xCC and msgpack.unpackb(sent[0][0])[0] == 1


def _split(campaign: Campaign, sent: Sent) -> bool:
    return len(sent[0]) > 1


def _shape_first(campaign: Campaign, sent: Sent) -> bool:
    (report,) = reports(campaign, sent[0][0])
    return campaign.questions[report.question].feature == "shape"


LEAKS = {
    "long-header-by-class": Leak(
        LongHeaderByClass, math.inf, Found.YES, Sampled(RED_NO, RED, _long, draft()), delta=1.0
    ),
    "trailing-byte-by-class": Leak(
        TrailingByteByClass,
        math.inf,
        Found.YES,
        Sampled(RED_NO, RED, lambda campaign, sent: sent[0][0].endswith(b"\n"), draft(discrete="she")),
        delta=1.0,
    ),
    "twice-for-one-class": Leak(
        TwiceForOneClass, math.inf, Found.YES, Sampled(RED_NO, RED, _split, draft()), delta=1.0
    ),
    "split-by-class": Leak(
        SplitByClass, math.inf, Found.YES, Sampled(RED_NO, RED, _split, draft(shapes=True, answers="all")), delta=1.0
    ),
    "order-by-record": Leak(
        OrderByRecord,
        math.inf,
        Found.PERHAPS,
        Sampled(({"colour": "red", "shape": "a"}, "yes"), BLUE, _shape_first, draft(shapes=True, answers="all")),
        delta=1.0,
    ),
    "empty-upload-by-class": Leak(
        EmptyUploadByClass,
        math.inf,
        Found.YES,
        Sampled(RED_NO, RED, lambda campaign, sent: sent[0][0] == _EMPTY_BLOCKS, draft()),
        delta=1.0,
    ),
}
