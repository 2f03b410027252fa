"""One node's noisy statistics on the wire: canonical msgpack, exactly one valid encoding.

``[1, campaign id, [integer, ...]]``, the integers being the vector of :mod:`ldp_aggregator.trainers.statistics` for the
campaign's schema. A share says nothing about the node: who sent it is known from its token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.statistics import parts_of
from protocols.campaign import Campaign
from protocols.errors import ProtocolError

Integers = NDArray[np.int64]

MEDIA_TYPE: Final = "application/vnd.ldp-bayes.statistics+msgpack"
SHARE_VERSION: Final = 1

LARGEST: Final = 1 << 62
"""Magnitude of an entry: beyond the sums of 2^40 rows, and far beyond the noise of any usable epsilon."""


class ShareError(ProtocolError):
    """Bytes that are not the one valid encoding of a share for this campaign; nothing in them is merged."""

    code = "malformed-share"


def encode_share(campaign: Campaign, vector: Integers) -> bytes:
    """The one encoding of a node's noisy statistics."""
    values = [int(value) for value in vector]
    _check(values, campaign)
    return _pack(campaign.id, values)


def decode_share(data: bytes, campaign: Campaign) -> Integers:
    """The statistics in a share. Raises ShareError, saying what would be right."""
    wanted = _length(campaign)
    try:
        value = msgpack.unpackb(
            data,
            raw=False,
            max_array_len=max(wanted, 3),
            max_str_len=len(campaign.id),
            max_bin_len=0,
            max_map_len=0,
            max_ext_len=0,
        )
    except Exception as error:  # msgpack raises many types; each means the same here.
        raise ShareError(f"not one msgpack value of this format ({type(error).__name__})") from None
    if not (type(value) is list and len(value) == 3 and type(value[0]) is int and value[0] == SHARE_VERSION):
        raise ShareError(f"a share is [{SHARE_VERSION}, campaign id, [integer, ...]]")
    _, campaign_id, values = value
    if campaign_id != campaign.id:
        raise ShareError(f"the share is for another campaign than {campaign.id}")
    if type(values) is not list:
        raise ShareError("the statistics of a share are a list of integers")
    _check(values, campaign)
    if _pack(campaign.id, values) != data:
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
    return parts_of(Schema.of_campaign(campaign))[-1].stop


def _pack(campaign_id: str, values: Sequence[object]) -> bytes:
    packed: bytes = msgpack.packb([SHARE_VERSION, campaign_id, values], use_bin_type=True)
    return packed
