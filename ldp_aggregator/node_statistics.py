"""One node's noisy statistics on the wire: canonical msgpack, exactly one valid encoding.

``[1, campaign id, [integer, ...]]``, the integers being the vector of :func:`parts_of` the campaign's schema. A share
says nothing about the node: who sent it is known from its token.

``["other rows", 1, campaign id, [integer, ...]]`` is the same, and a node's word that no row in it was in a share that
it sent before for this campaign.

The vector, of which a Naive Bayes model is made, is in the order of the schema: one count per class; for a counted
feature one cell per (value, class), index value * k + class; for a Gaussian feature k sums of t and then k sums of 1 -
t^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_protocols.campaign import Campaign
from ldp_protocols.document.schema import Label
from ldp_protocols.errors import DocumentError
from ldp_protocols.features import Feature

Integers = NDArray[np.int64]

CLASSES: Final = "classes"
TABLE: Final = "table"
SUM: Final = "sum"
SQUARE: Final = "square"


@dataclass(frozen=True)
class Part:
    """A query, or half of one for sum and square, by its place in the vector; ``feature`` is None for class counts."""

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
        if feature.moments:
            parts += [Part(SUM, feature, start, start + k), Part(SQUARE, feature, start + k, start + 2 * k)]
        else:
            parts.append(Part(TABLE, feature, start, start + feature.size * k))
    return tuple(parts)


MEDIA_TYPE: Final = "application/vnd.ldp-bayes.statistics+msgpack"
SHARE_VERSION: Final = 1
OTHER_ROWS: Final = "other rows"

LARGEST: Final = 1 << 62
"""Magnitude of an entry: beyond the sums of 2^40 rows, and far beyond the noise of any usable epsilon."""
_ID_LENGTH: Final = 43
_FORM: Final = 4
"""Entries of the longest form."""
_HEAD_BYTES: Final = 128
_INTEGER_BYTES: Final = 9


def _malformed(problem: str) -> DocumentError:
    return DocumentError("malformed-share", problem)


@dataclass(frozen=True)
class Releases:
    """The distinct shares of a node for one campaign: the first, ``replacements`` that may be of the same rows, and
    ``other_rows``, declared to be of others.
    """

    replacements: int = 0
    other_rows: int = 0


def encode_share(campaign: Campaign, vector: Integers, *, other_rows: bool = False) -> bytes:
    """The one encoding of a node's noisy statistics."""
    values = [int(value) for value in vector]
    _check(values, campaign)
    return _pack([*([OTHER_ROWS] if other_rows else []), SHARE_VERSION, campaign.id, values])


def decode_share(data: bytes, campaign: Campaign) -> Integers:
    """The statistics in a share. Raises DocumentError, saying what would be right."""
    value = _unpack(data, max(_length(campaign), _FORM))
    plain = value[1:] if value[:1] == [OTHER_ROWS] else value
    if not (len(plain) == 3 and type(plain[0]) is int and plain[0] == SHARE_VERSION):
        raise _malformed(
            f'a share is [{SHARE_VERSION}, campaign id, [integer, ...]], or that with "{OTHER_ROWS}" before it'
        )
    if plain[1] != campaign.id:
        raise _malformed(f"the share is for another campaign than {campaign.id}")
    values = value[-1]
    if type(values) is not list:
        raise _malformed("the statistics of a share are a list of integers")
    _check(values, campaign)
    if _pack(value) != data:
        raise _malformed("not the shortest msgpack encoding of its content; exactly one encoding is valid")
    return np.array(values, dtype=np.int64)


def has_other_rows(share: bytes) -> bool:
    """Tell whether a share, which was decoded, is declared to be of rows that its node has not sent before."""
    return share.startswith(_OTHER_ROWS_HEAD)


def campaign_of(data: bytes) -> str:
    """The campaign id of a share, for the node that sends it; the rest is not read. Raises DocumentError."""
    value = _unpack(data, max(len(data), _FORM))
    plain = value[1:] if value[:1] == [OTHER_ROWS] else value
    if len(plain) != 3 or type(plain[1]) is not str or len(plain[1]) != _ID_LENGTH:
        raise _malformed("this is no share; 'ldp-aggregator node submit' writes one")
    return plain[1]


def most_bytes(campaign: Campaign) -> int:
    """No share of this campaign is longer."""
    return _HEAD_BYTES + _INTEGER_BYTES * _length(campaign)


def _unpack(data: bytes, longest: int) -> list[Any]:
    try:
        value = msgpack.unpackb(
            data, raw=False, max_array_len=longest, max_str_len=_ID_LENGTH, max_bin_len=0, max_map_len=0, max_ext_len=0
        )
    except Exception as error:  # msgpack raises many types; each means the same here.
        raise _malformed(f"not one msgpack value of this format ({type(error).__name__})") from None
    return value if type(value) is list else []


def _check(values: Sequence[object], campaign: Campaign) -> None:
    if campaign.windows is not None:
        raise _malformed("a campaign with windows asks devices, each in one window; nodes have no part in it")
    if campaign.issuer is not None:
        raise _malformed("a campaign with an issuer asks devices, each with a token; nodes have no part in it")
    wanted = _length(campaign)
    if len(values) != wanted:
        raise _malformed(f"a share for this campaign has {wanted} integers, not {len(values)}")
    for position, value in enumerate(values):
        if type(value) is not int or abs(value) > LARGEST:
            raise _malformed(f"entry {position} must be an integer of magnitude at most 2^62, not {value!r:.40}")


def _length(campaign: Campaign) -> int:
    return parts_of(campaign.label, campaign.asked)[-1].stop


def _pack(value: Sequence[object]) -> bytes:
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


_OTHER_ROWS_HEAD: Final = b"\x94" + msgpack.packb(OTHER_ROWS)
"""The first bytes of such a share, an array of four: there is one encoding."""
