"""The lots that a device draws, of its window and its question, before any record is read.

The question is a keyed hash of the device's secret, never of fresh coins: whatever fails, however often the app calls
again, from whichever backup, the device meets the same question. Otherwise
a record whose values cannot be read would choose the question by failing until it is asked about something else, and
the question is public. Over devices its law is that of the weights, as far as HMAC-SHA256 is a pseudo-random function.
The answer's coins are fresh.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from typing import Final

from ldp_protocols import Campaign, Coins, Question
from ldp_protocols.wire import check_secret, slot_bytes

_QUESTION: Final = b"question"
_WINDOW: Final = b"window"
_WORD_BYTES: Final = 8


def draw_questions(campaign: Campaign, secret: bytes) -> tuple[Question, ...]:
    """The questions of this secret's device, drawn by their weights, the same at every call. Raises LdpError."""
    check_secret(secret)
    return tuple(
        draw(pool, KeyedWords(secret, _QUESTION, campaign, slot_bytes(campaign, pool[0].group)))
        for pool in campaign.pools
    )


def draw_window(campaign: Campaign, secret: bytes) -> int:
    """The window of a series in which this secret's device answers, uniform; 0 without windows. Raises LdpError."""
    check_secret(secret)
    return 0 if campaign.windows is None else KeyedWords(secret, _WINDOW, campaign).below(campaign.windows.count)


def draw(questions: Sequence[Question], coins: Coins) -> Question:
    """One question, with probability exactly proportional to its weight; a single question takes no word."""
    ticket = coins.below(sum([question.weight for question in questions]))
    for question in questions:
        ticket -= question.weight
        if ticket < 0:
            return question
    raise AssertionError("a ticket is below the sum of the weights")


class KeyedWords(Coins):
    """Words that are a function of a device's secret and a campaign, for the draws of the question and of the window.

    Word i is the first 8 bytes, little-endian, of HMAC-SHA256(secret, "question" || campaign id || slot || i), for the
    window of HMAC-SHA256(secret, "window" || campaign id || i), slot and i as four bytes, little-endian. A ticket is
    then drawn as from any other words, by rejection: no modulo favours a question.
    """

    def __init__(self, secret: bytes, subject: bytes, campaign: Campaign, slot: bytes = b"") -> None:
        self._secret = secret
        self._message = subject + campaign.id.encode("ascii") + slot
        self._taken = 0

    def words(self, count: int) -> Sequence[int]:
        first, self._taken = self._taken, self._taken + count
        secret, message = self._secret, self._message
        digests = [hmac.digest(secret, message + n.to_bytes(4, "little"), "sha256") for n in range(first, self._taken)]
        return [int.from_bytes(digest[:_WORD_BYTES], "little") for digest in digests]
