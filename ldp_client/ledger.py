"""What this device has spent: the receipts of its contributions, its consents and its secret, in one stored value.

One value, so that damage is noticed: a device that forgot a receipt would answer, and lose privacy, a second time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from fractions import Fraction
from typing import Final

from ldp_client.errors import ConsentError, RefusedError, StorageError
from ldp_client.records import pack, unpack
from ldp_client.storage import SCOPES, Transaction
from protocols import Campaign
from protocols.exact import exact_epsilon, float_up
from protocols.reports import SECRET_BYTES

_KEY: Final = "device"


@dataclass(frozen=True)
class Receipt:
    """One contribution, made once and for good.

    ``epsilon`` is the loss recomputed from the campaign's document; ``questions`` are the indices of the questions
    drawn; ``at`` is the device's clock (seconds since 1970).
    """

    campaign_id: str
    title: str
    study: str | None
    epsilon: float
    questions: tuple[int, ...]
    at: float


@dataclass(frozen=True)
class Caps:
    """The most that an app lets its user lose: in one campaign, and over the life of the install."""

    epsilon: float
    total_epsilon: float

    def __post_init__(self) -> None:
        for name, cap in (("max_epsilon", self.epsilon), ("max_total_epsilon", self.total_epsilon)):
            if isinstance(cap, bool) or not isinstance(cap, (int, float)) or not 0 < cap < float("inf"):
                raise ValueError(f"{name} must be a finite number above 0")


@dataclass(frozen=True)
class Ledger:
    """The receipts and the caps they are held to. ``str()`` tells a person in plain words."""

    receipts: tuple[Receipt, ...]
    caps: Caps

    @property
    def total_epsilon(self) -> float:
        """Privacy loss over the life of the install, rounded up."""
        return float_up(_total(self.receipts))

    def receipt(self, campaign_id: str) -> Receipt | None:
        """What was contributed to a campaign."""
        return _find(self.receipts, campaign_id)

    def __str__(self) -> str:
        if not self.receipts:
            return (
                "This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most "
                f"{_written(self.caps.total_epsilon)})."
            )
        campaigns = "1 campaign" if len(self.receipts) == 1 else f"{len(self.receipts)} campaigns"
        lines = [
            f"This device has contributed to {campaigns}. Privacy loss so far: epsilon {_written(self.total_epsilon)} "
            f"of at most {_written(self.caps.total_epsilon)}."
        ]
        for receipt in self.receipts:
            answers = "1 answer" if len(receipt.questions) == 1 else f"{len(receipt.questions)} answers"
            lines.append(
                f'* "{receipt.title}" on {_day(receipt.at)}: {answers}, with noise added on this device; '
                f"epsilon {_written(receipt.epsilon)}."
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Device:
    """Everything of a device that must not be lost. The secret is made once and never leaves."""

    secret: bytes = field(repr=False)
    consents: Mapping[str, bool]
    receipts: tuple[Receipt, ...]

    @classmethod
    def make(cls) -> Device:
        return cls(os.urandom(SECRET_BYTES), {}, ())

    def receipt(self, campaign_id: str) -> Receipt | None:
        return _find(self.receipts, campaign_id)

    def consented(self, campaign_id: str) -> bool:
        return self.consents.get(campaign_id, False)

    def with_consent(self, campaign_id: str, *, given: bool) -> Device:
        return replace(self, consents={**self.consents, campaign_id: given})

    def with_receipt(self, receipt: Receipt) -> Device:
        return replace(self, receipts=(*self.receipts, receipt))

    def check(self, campaign: Campaign, caps: Caps) -> None:
        """Raise unless this device may contribute to ``campaign``; looks at no record."""
        if not self.consented(campaign.id):
            raise ConsentError
        if campaign.loss > exact_epsilon(caps.epsilon):
            raise RefusedError(
                "loss-above-cap",
                f"the campaign costs epsilon {campaign.realised_epsilon:.6g}, above the cap of {caps.epsilon:g}",
            )
        spent = _total(self.receipts)
        if spent + Fraction(campaign.realised_epsilon) > exact_epsilon(caps.total_epsilon):
            raise RefusedError(
                "total-above-cap",
                f"the campaign costs epsilon {campaign.realised_epsilon:.6g} and {float_up(spent):.6g} is spent; "
                f"the cap over the life of this install is {caps.total_epsilon:g}",
            )
        if campaign.study is not None and any(receipt.study == campaign.study for receipt in self.receipts):
            raise RefusedError(
                "study-answered", "this device has answered another campaign of the same study; one is the most"
            )


def read_device(transaction: Transaction) -> Device | None:
    """The device as it is stored, None for a new install. Raises StorageError for damage."""
    stored = transaction.get(_KEY)
    if stored is None:
        # Safety: the device is the first thing ever written. Where something else is there without it, it was lost.
        # Scopes sort last and are devices of their own.
        others = transaction.items("", 1)
        if others and not others[0][0].startswith(SCOPES):
            raise StorageError("storage-corrupt")
        return None
    try:
        secret, consents, receipts = unpack(_KEY, stored)
        return Device(
            secret,
            consents,
            tuple(
                Receipt(campaign_id, title, study, epsilon, tuple(questions), at)
                for campaign_id, title, study, epsilon, questions, at in receipts
            ),
        )
    except (TypeError, ValueError):
        raise StorageError("storage-corrupt") from None


def write_device(transaction: Transaction, device: Device) -> None:
    """Store the device, replacing what was there."""
    receipts = [[r.campaign_id, r.title, r.study, r.epsilon, list(r.questions), r.at] for r in device.receipts]
    transaction.put(_KEY, pack(_KEY, [device.secret, dict(device.consents), receipts]))


def _find(receipts: tuple[Receipt, ...], campaign_id: str) -> Receipt | None:
    return next((receipt for receipt in receipts if receipt.campaign_id == campaign_id), None)


def _total(receipts: tuple[Receipt, ...]) -> Fraction:
    """Exact, so that no order of contributions and no rounding slips past a cap."""
    return sum((Fraction(receipt.epsilon) for receipt in receipts), Fraction(0))


def _written(epsilon: float) -> str:
    """Four decimals, rounded up."""
    thousands = -(-Fraction(epsilon) * 10_000 // 1)
    return f"{float(Fraction(thousands, 10_000)):g}"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
