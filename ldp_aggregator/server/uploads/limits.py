"""How much one device can have to send: its answers to one question of each group, and nothing more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from ldp_aggregator.counting.sheets import MOST_LAYOUTS, ById
from ldp_aggregator.service.settings import Limits
from protocols import Campaign, Report, encode_upload
from protocols.wire.reports import ID_BYTES

LEAST_BYTES: Final = 8 << 10
"""Shorter uploads are read in any case, and told what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Most:
    """Reports and bytes of one upload."""

    reports: int
    bytes: int


def most_from_a_device(campaign: Campaign, limits: Limits) -> Most:
    """What an upload without a token may hold."""
    needed = _needed(ById(campaign))
    return Most(min(needed.reports, limits.reports_per_upload), min(needed.bytes, limits.body_bytes))


def most_from_a_relay(limits: Limits) -> Most:
    """What an upload with a relay's token may hold."""
    return Most(limits.reports_per_upload, limits.body_bytes)


@lru_cache(maxsize=MOST_LAYOUTS)
def _needed(key: ById) -> Most:
    groups = key.campaign.groups
    widest = [max(members, key=lambda question: question.mechanism.width) for members in groups]
    longest = encode_upload([Report(q.index, bytes(ID_BYTES), bytes(q.mechanism.width)) for q in widest])
    # The number of another question of the same group may take two bytes more.
    return Most(len(groups), max(LEAST_BYTES, len(longest) + 2 * len(groups)))
