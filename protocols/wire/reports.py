"""A report: one device's perturbed answer to one question, under an id that makes retries harmless.

``id = HMAC-SHA256(device secret, campaign id || slot)[:16]``, the campaign id as its 43 ASCII characters and the slot
as four bytes, little-endian: 0 where a device answers one question, else the question's group. A retry meets its own
id; the id says nothing about the device and links no two campaigns.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

from protocols.document.campaign import Campaign
from protocols.document.questions import Question

ID_BYTES: Final = 16
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Report:
    """``question`` is its index in the document; ``payload`` has the mechanism's fixed width."""

    question: int
    id: bytes
    payload: bytes


def report_id(secret: bytes, campaign: Campaign, question: Question) -> bytes:
    """The id of a device's report to ``question``."""
    slot = question.group if campaign.privacy.answers == "all" else 0
    message = campaign.id.encode("ascii") + slot.to_bytes(4, "little")
    return hmac.digest(secret, message, "sha256")[:ID_BYTES]
