"""One node's noisy statistics on the wire: canonical msgpack, exactly one valid encoding.

``[1, campaign id, [integer, ...]]``, the integers being the vector of :mod:`ldp_aggregator.counting.layout` for the
campaign's schema. A share says nothing about the node: who sent it is known from its token.

``["distributed", 1, campaign id, nodes, honest, [integer, ...]]`` is a share whose noise is a part of what epsilon
takes (:mod:`ldp_aggregator.trainers.federation.distributed_noise`). It is no share in the first sense, and is refused
as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.layout import parts_of
from protocols.document.campaign import Campaign
from protocols.errors import ProtocolError

Integers = NDArray[np.int64]

MEDIA_TYPE: Final = "application/vnd.ldp-bayes.statistics+msgpack"
SHARE_VERSION: Final = 1
DISTRIBUTED: Final = "distributed"

LARGEST: Final = 1 << 62
"""Magnitude of an entry: beyond the sums of 2^40 rows, and far beyond the noise of any usable epsilon."""

_ID_LENGTH: Final = 43
_FORM: Final = 6
"""Entries of the longer form."""
_HEAD_BYTES: Final = 128
_INTEGER_BYTES: Final = 9


class ShareError(ProtocolError):
    """Bytes that are not the one valid encoding of a share for this campaign; nothing in them is merged."""

    code = "malformed-share"


class DistributedShareError(ShareError):
    """A share of distributed noise where one with all its noise is due."""

    code = "distributed-share"


@dataclass(frozen=True, eq=False)
class DistributedShare:
    """A node's statistics with a part of the noise: epsilon holds for sums with ``honest`` such shares or more."""

    vector: Integers
    nodes: int
    honest: int


def encode_share(campaign: Campaign, vector: Integers) -> bytes:
    """The one encoding of a node's noisy statistics."""
    values = [int(value) for value in vector]
    _check(values, campaign)
    return _pack([SHARE_VERSION, campaign.id, values])


def decode_share(data: bytes, campaign: Campaign) -> Integers:
    """The statistics in a share. Raises ShareError, saying what would be right."""
    value = _unpack(data, max(_length(campaign), _FORM))
    _refuse_distributed(value)
    if not (len(value) == 3 and type(value[0]) is int and value[0] == SHARE_VERSION):
        raise ShareError(f"a share is [{SHARE_VERSION}, campaign id, [integer, ...]]")
    return _vector(data, value, value[1], campaign)


def encode_distributed(campaign: Campaign, share: DistributedShare) -> bytes:
    """The one encoding of a share of distributed noise."""
    values = [int(value) for value in share.vector]
    _check(values, campaign)
    return _pack([DISTRIBUTED, SHARE_VERSION, campaign.id, share.nodes, share.honest, values])


def decode_distributed(data: bytes, campaign: Campaign) -> DistributedShare:
    """The inverse of :func:`encode_distributed`. Raises ShareError, saying what would be right."""
    value = _unpack(data, max(_length(campaign), _FORM))
    numbers_ok = len(value) == _FORM and [type(number) for number in (value[1], value[3], value[4])] == [int] * 3
    if not (numbers_ok and value[:2] == [DISTRIBUTED, SHARE_VERSION] and 1 <= value[4] <= value[3]):
        raise ShareError(
            f'a share of distributed noise is ["{DISTRIBUTED}", {SHARE_VERSION}, campaign id, nodes, honest, '
            "[integer, ...]], honest from 1 to nodes"
        )
    return DistributedShare(_vector(data, value, value[2], campaign), value[3], value[4])


def campaign_of(data: bytes) -> str:
    """The id of the campaign that a share names, for a node that sends it. The rest of it is not looked at.

    Raises ShareError, for a share of distributed noise, too: that one is never sent as it is.
    """
    value = _unpack(data, max(len(data), _FORM))
    _refuse_distributed(value)
    if len(value) != 3 or type(value[1]) is not str or len(value[1]) != _ID_LENGTH:
        raise ShareError("this is no share; 'ldp-aggregator node statistics' writes one")
    return value[1]


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
