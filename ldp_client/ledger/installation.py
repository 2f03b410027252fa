"""What an install must not lose: the receipts of its contributions, its consents and its secret, in one stored value.

One value, so that damage is noticed: a device that forgot a receipt would answer, and lose privacy, a second time.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from ldp_client.errors import ConsentError, RefusedError, StorageError
from ldp_client.ledger.receipts import Caps, Receipt, find, total
from ldp_client.storage.checksummed import pack, unpack
from ldp_client.storage.contract import SCOPES, Transaction
from protocols import Campaign
from protocols.exact.rationals import exact_epsilon, float_up
from protocols.wire.reports import SECRET_BYTES

_KEY: Final = "device"


@dataclass(frozen=True)
class Installation:
    """Everything of a device that must not be lost. The secret is made once and never leaves."""

    secret: bytes = field(repr=False)
    consents: Mapping[str, bool]
    receipts: tuple[Receipt, ...]

    @classmethod
    def make(cls) -> Installation:
        return cls(os.urandom(SECRET_BYTES), {}, ())

    def receipt(self, campaign_id: str) -> Receipt | None:
        return find(self.receipts, campaign_id)

    def consented(self, campaign_id: str) -> bool:
        return self.consents.get(campaign_id, False)

    def with_consent(self, campaign_id: str, *, given: bool) -> Installation:
        return replace(self, consents={**self.consents, campaign_id: given})

    def with_receipt(self, receipt: Receipt) -> Installation:
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
        spent = total(self.receipts)
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


def read_installation(transaction: Transaction) -> Installation | None:
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
        return Installation(
            secret,
            consents,
            tuple(
                Receipt(campaign_id, title, study, epsilon, tuple(questions), at)
                for campaign_id, title, study, epsilon, questions, at in receipts
            ),
        )
    except (TypeError, ValueError):
        raise StorageError("storage-corrupt") from None


def write_installation(transaction: Transaction, device: Installation) -> None:
    """Store the device, replacing what was there."""
    receipts = [[r.campaign_id, r.title, r.study, r.epsilon, list(r.questions), r.at] for r in device.receipts]
    transaction.put(_KEY, pack(_KEY, [device.secret, dict(device.consents), receipts]))
