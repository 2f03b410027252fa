"""How much one device can have to send: its answers to one question of each group, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ldp_aggregator.counting.sheets import MOST_LAYOUTS, ById
from protocols import Campaign, Report, encode_upload
from protocols.wire.reports import ID_BYTES

LEAST_BYTES: Final = 4 << 10
"""Shorter uploads are read in any case, and told what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Most:
    """Reports and bytes of one upload."""

    reports: int
    bytes: int


def most_from_a_device(campaign: Campaign) -> Most:
    """What an upload without a token may hold."""
    return _most(ById(campaign))


@lru_cache(maxsize=MOST_LAYOUTS)
def _most(key: ById) -> Most:
    groups = key.campaign.groups
    widest = [max(members, key=lambda question: question.mechanism.width) for members in groups]
    longest = encode_upload([Report(q.index, bytes(ID_BYTES), bytes(q.mechanism.width)) for q in widest])
    # A message pack's length may take four bytes more for each where questions have larger numbers.
    return Most(len(groups), max(LEAST_BYTES, len(longest) + 4 * len(groups)))
