"""A report: one device's perturbed answer to one question, under an id that makes retries harmless.

``id = HMAC-SHA256(device secret, campaign id || slot)[:16]``, the campaign id as its 43 ASCII characters and the slot
as four bytes, little-endian: 0 where a device answers one question, else the question's group. A retry meets its own
id; the id says nothing about the device and links no two campaigns.

The drawn question is a keyed hash of the same secret (:mod:`ldp_client.answering`). Its messages begin with another
word and have another length, so that no message of one is a message of the other and neither tells about the other.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass
from typing import Final

from protocols.document.campaign import Campaign
from protocols.document.questions import Question
from protocols.errors import SecretError
from protocols.exact.coins import SYSTEM_COINS, Coins

ID_BYTES: Final = 16
SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Report:
    """``question`` is its index in the document; ``payload`` has the mechanism's fixed width."""

    question: int
    id: bytes
    payload: bytes


def report_id(secret: bytes, campaign: Campaign, question: Question) -> bytes:
    """The id of a device's report to ``question``. Raises SecretError for a secret that is none."""
    message = campaign.id.encode("ascii") + slot_bytes(campaign, question.group)
    return hmac.digest(check_secret(secret), message, "sha256")[:ID_BYTES]


def slot_bytes(campaign: Campaign, group: int) -> bytes:
    """The slot of a group's answer in this campaign, as it stands in keyed messages."""
    return (group if campaign.privacy.answers == "all" else 0).to_bytes(4, "little")


def make_secret(coins: Coins = SYSTEM_COINS) -> bytes:
    """A new device's secret: four words, little-endian. Coins other than the default are for tests and simulations."""
    return struct.pack("<4Q", *coins.words(4))


def check_secret(secret: bytes) -> bytes:
    """The secret, where it is one: 32 bytes, drawn once for a device. Raises SecretError otherwise."""
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise SecretError(f"a device secret is {SECRET_BYTES} random bytes, not {got}")
    return secret
