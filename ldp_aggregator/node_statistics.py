"""One node's noisy statistics on the wire: canonical msgpack, exactly one valid encoding.

``[1, campaign id, [integer, ...]]``, the integers being the vector of :func:`parts_of` the campaign's
schema. A share says nothing about the node: who sent it is known from its token.

``["other rows", 1, campaign id, [integer, ...]]`` is the same, and a node's word that no row in it was in a share that
it sent before for this campaign.

``["distributed", 1, campaign id, nodes, honest, serial, [integer, ...]]`` is a share whose noise is a part of what
epsilon takes (:mod:`ldp_aggregator.trainers.federation.distributed_noise`); the serial is drawn at random and tells a
share from its copy. It is no share in the first sense, and is refused as one.

The vector, of which a Naive Bayes model is made, is in the order of the schema: one count per class; for a counted
feature one cell per (value, class), index value * k + class; for a Gaussian feature k sums of t and then k sums of
1 - t^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from protocols.document.campaign import Campaign
from protocols.document.schema import ContinuousFeature, Feature, Label
from protocols.errors import ProtocolError

Integers = NDArray[np.int64]

CLASSES: Final = "classes"
TABLE: Final = "table"
SUM: Final = "sum"
SQUARE: Final = "square"


@dataclass(frozen=True)
class Part:
    """A query, or one half of a query for sum and square: its place in the vector.

    ``feature`` is None for the class counts.
    """

    kind: str
    feature: Feature | None
    start: int
    stop: int

    @property
    def query(self) -> str:
        """The query that it is (part of), as budgets list it."""
        if self.feature is None:
            return "class counts"
        return self.feature.name if self.kind == TABLE else f"{self.feature.name}: sum and square"


def parts_of(label: Label, features: Sequence[Feature]) -> tuple[Part, ...]:
    """The queries of a schema, in the order of the vector."""
    k = len(label.classes)
    parts = [Part(CLASSES, None, 0, k)]
    for feature in features:
        start = parts[-1].stop
        if isinstance(feature, ContinuousFeature) and feature.bins is None:
            parts += [Part(SUM, feature, start, start + k), Part(SQUARE, feature, start + k, start + 2 * k)]
        else:
            parts.append(Part(TABLE, feature, start, start + feature.size * k))
    return tuple(parts)


MEDIA_TYPE: Final = "application/vnd.ldp-bayes.statistics+msgpack"
SHARE_VERSION: Final = 1
DISTRIBUTED: Final = "distributed"
OTHER_ROWS: Final = "other rows"

LARGEST: Final = 1 << 62
"""Magnitude of an entry: beyond the sums of 2^40 rows, and far beyond the noise of any usable epsilon."""
MOST_NODES: Final = 1 << 20
"""That share their noise: the squares of so many numbers of nodes still add up within 63 bits."""
SERIAL_BITS: Final = 63

_ID_LENGTH: Final = 43
_FORM: Final = 7
"""Entries of the longest form."""
_HEAD_BYTES: Final = 128
_INTEGER_BYTES: Final = 9


class ShareError(ProtocolError):
    """Bytes that are not the one valid encoding of a share for this campaign; nothing in them is merged."""

    code = "malformed-share"


class DistributedShareError(ShareError):
    """A share of distributed noise where one with all its noise is due."""

    code = "distributed-share"


@dataclass(frozen=True)
class Releases:
    """The shares that a node has sent for one campaign, so far as it differs: its first share, ``replacements`` that
    may be of the same rows, and ``other_rows`` that it declared to be of others. A share that is sent again is none of
    them.
    """

    replacements: int = 0
    other_rows: int = 0


@dataclass(frozen=True, eq=False)
class DistributedShare:
    """A node's statistics with a part of the noise: epsilon holds for sums with ``honest`` such shares or more."""

    vector: Integers
    nodes: int
    honest: int
    serial: int

    def summand(self) -> Integers:
        """Return the vector that secure aggregation adds up: 1, nodes, nodes^2, honest, honest^2, and then the
        statistics.

        Whoever sees nothing but the sum knows from the first five how many shares are in it, and that they are alike:
        s times a sum of s squares is the square of the sum where all are equal, and only there.
        """
        head = [1, self.nodes, self.nodes**2, self.honest, self.honest**2]
        return np.concatenate((np.array(head, dtype=np.int64), self.vector))


SUM_HEAD: Final = 5
"""Entries of a summand before the statistics."""


def encode_share(campaign: Campaign, vector: Integers, *, other_rows: bool = False) -> bytes:
    """The one encoding of a node's noisy statistics."""
    values = [int(value) for value in vector]
    _check(values, campaign)
    return _pack([*([OTHER_ROWS] if other_rows else []), SHARE_VERSION, campaign.id, values])


def decode_share(data: bytes, campaign: Campaign) -> Integers:
    """The statistics in a share. Raises ShareError, saying what would be right."""
    value = _unpack(data, max(_length(campaign), _FORM))
    _refuse_distributed(value)
    plain = value[1:] if value[:1] == [OTHER_ROWS] else value
    if not (len(plain) == 3 and type(plain[0]) is int and plain[0] == SHARE_VERSION):
        raise ShareError(
            f'a share is [{SHARE_VERSION}, campaign id, [integer, ...]], or that with "{OTHER_ROWS}" before it'
        )
    return _vector(data, value, plain[1], campaign)


def has_other_rows(share: bytes) -> bool:
    """Tell whether a share, which was decoded, is declared to be of rows that its node has not sent before."""
    return share.startswith(_OTHER_ROWS_HEAD)


def encode_distributed(campaign: Campaign, share: DistributedShare) -> bytes:
    """The one encoding of a share of distributed noise."""
    values = [int(value) for value in share.vector]
    _check(values, campaign)
    return _pack([DISTRIBUTED, SHARE_VERSION, campaign.id, share.nodes, share.honest, share.serial, values])


def decode_distributed(data: bytes, campaign: Campaign) -> DistributedShare:
    """The inverse of :func:`encode_distributed`. Raises ShareError, saying what would be right."""
    value = _unpack(data, max(_length(campaign), _FORM))
    whole = len(value) == _FORM and [type(value[i]) for i in (1, 3, 4, 5)] == [int] * 4
    if not (
        whole
        and value[:2] == [DISTRIBUTED, SHARE_VERSION]
        and 1 <= value[4] <= value[3] <= MOST_NODES
        and 0 <= value[5] < 1 << SERIAL_BITS
    ):
        raise ShareError(
            f'a share of distributed noise is ["{DISTRIBUTED}", {SHARE_VERSION}, campaign id, nodes, honest, serial, '
            f"[integer, ...]], honest from 1 to nodes, nodes at most {MOST_NODES}"
        )
    return DistributedShare(_vector(data, value, value[2], campaign), *value[3:6])


def campaign_of(data: bytes) -> str:
    """The id of the campaign that a share names, for a node that sends it. The rest of it is not looked at.

    Raises ShareError, for a share of distributed noise, too: that one is never sent as it is.
    """
    value = _unpack(data, max(len(data), _FORM))
    _refuse_distributed(value)
    plain = value[1:] if value[:1] == [OTHER_ROWS] else value
    if len(plain) != 3 or type(plain[1]) is not str or len(plain[1]) != _ID_LENGTH:
        raise ShareError("this is no share; 'ldp-aggregator node statistics' writes one")
    return plain[1]


def most_bytes(campaign: Campaign) -> int:
    """No share of this campaign is longer."""
    return _HEAD_BYTES + _INTEGER_BYTES * _length(campaign)


def _refuse_distributed(value: list[Any]) -> None:
    if value[:1] == [DISTRIBUTED]:
        raise DistributedShareError(
            "a share of distributed noise: alone it protects less than epsilon, and only sums of such shares leave "
            "secure aggregation; compute one with all its noise for this campaign"
        )


def _unpack(data: bytes, longest: int) -> list[Any]:
    try:
        value = msgpack.unpackb(
            data,
            raw=False,
            max_array_len=longest,
            max_str_len=_ID_LENGTH,
            max_bin_len=0,
            max_map_len=0,
            max_ext_len=0,
        )
    except Exception as error:  # msgpack raises many types; each means the same here.
        raise ShareError(f"not one msgpack value of this format ({type(error).__name__})") from None
    return value if type(value) is list else []


def _vector(data: bytes, value: list[Any], campaign_id: object, campaign: Campaign) -> Integers:
    """The integers, which come last, after all before them but the campaign's id was found right."""
    if campaign_id != campaign.id:
        raise ShareError(f"the share is for another campaign than {campaign.id}")
    values = value[-1]
    if type(values) is not list:
        raise ShareError("the statistics of a share are a list of integers")
    _check(values, campaign)
    if _pack(value) != data:
        raise ShareError("not the shortest msgpack encoding of its content; exactly one encoding is valid")
    return np.array(values, dtype=np.int64)


def _check(values: Sequence[object], campaign: Campaign) -> None:
    wanted = _length(campaign)
    if len(values) != wanted:
        raise ShareError(f"a share for this campaign has {wanted} integers, not {len(values)}")
    for position, value in enumerate(values):
        if type(value) is not int or abs(value) > LARGEST:
            raise ShareError(f"entry {position} must be an integer of magnitude at most 2^62, not {value!r:.40}")


def _length(campaign: Campaign) -> int:
    return parts_of(campaign.label, campaign.asked)[-1].stop


def _pack(value: Sequence[object]) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


_OTHER_ROWS_HEAD: Final = b"\x94" + msgpack.packb(OTHER_ROWS)
"""The first bytes of such a share, an array of four: there is one encoding."""
