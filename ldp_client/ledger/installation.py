"""What an install must not lose: the receipts of its contributions, its consents (to what, when, with
whom) and its secret, in one stored value.

One value, so that damage is noticed: a device that forgot a receipt would answer, and lose privacy, a second time.
"""

from __future__ import annotations

from collections.abc import Mapping

from ldp_client.errors import StorageError
from ldp_client.ledger.receipts import Receipt, find
from ldp_client.storage.checksummed import pack, unpack
from ldp_client.storage.contract import MARK, PUBLISHERS, SCOPES, WAITING, Transaction
from ldp_client.storage.scoped import scope_prefix
from protocols.light import TYPE_CHECKING, astuple, field, frozen, replace

if TYPE_CHECKING:
    from typing import Final

_KEY: Final = "device"
_SHARED: Final = (SCOPES, WAITING, MARK, PUBLISHERS)
"""What a storage may hold although nobody has agreed to anything yet, or only scopes have, devices of their own."""


@frozen
class Consent:
    """One decision about one campaign, with a copy of what it was about.

    The campaign's id is the digest of its whole document; title, purpose and loss are kept in words as they were shown.
    ``granted_at`` and ``withdrawn_at`` are the device's clock; a person who said no at once has granted nothing.
    """

    url: str
    title: str
    purpose: str
    epsilon: float
    granted_at: float | None
    withdrawn_at: float | None

    @property
    def given(self) -> bool:
        """Whether it holds."""
        return self.granted_at is not None and self.withdrawn_at is None


@frozen
class Installation:
    """Everything of a device that must not be lost. The secret is made when a person first agrees, and never leaves."""

    secret: bytes = field(default=b"", repr=False)
    enabled: bool = True
    consents: Mapping[str, Consent] = field(default_factory=dict)
    receipts: tuple[Receipt, ...] = ()

    def receipt(self, campaign_id: str) -> Receipt | None:
        return find(self.receipts, campaign_id)

    def consent(self, campaign_id: str) -> Consent | None:
        """The consent to a campaign, None where it is not given."""
        consent = self.consents.get(campaign_id)
        return consent if consent is not None and consent.given else None

    def granted(self, campaign_id: str, consent: Consent, secret: bytes) -> Installation:
        """With a consent, and with its secret, made when a person first agrees."""
        return replace(self, secret=secret, consents={**self.consents, campaign_id: consent})

    def withdrawn(self, campaign_id: str, url: str, now: float) -> Installation:
        """Without that consent; what it was about is kept."""
        before = self.consents.get(campaign_id) or Consent(url, "", "", 0.0, None, None)
        return replace(self, consents={**self.consents, campaign_id: replace(before, withdrawn_at=now)})

    def with_receipt(self, receipt: Receipt) -> Installation:
        """With a receipt, in place of an earlier one of the same campaign."""
        others = self.without_receipt(receipt.campaign_id).receipts
        return replace(self, receipts=(*others, receipt))

    def without_receipt(self, campaign_id: str) -> Installation:
        """As if that contribution had not been made; for one of which nothing has left."""
        return replace(self, receipts=tuple(one for one in self.receipts if one.campaign_id != campaign_id))


def read_installation(transaction: Transaction, scope: str = "") -> Installation | None:
    """The device as it is stored, None for a new install. Raises StorageError for damage."""
    prefix = scope_prefix(scope)
    stored = transaction.get(prefix + _KEY)
    if stored is None:
        # Safety: the device is the first thing ever written. Where something else is there without it, it was lost.
        if any(prefix or not key.startswith(_SHARED) for key, _ in transaction.items(prefix, 1)):
            raise StorageError("storage-corrupt")
        return None
    try:
        secret, enabled, consents, receipts = unpack(prefix + _KEY, stored)
        return Installation(
            secret,
            enabled,
            {campaign_id: Consent(*values) for campaign_id, values in consents.items()},
            tuple(_read_receipt(*values) for values in receipts),
        )
    except (TypeError, ValueError, AttributeError):
        raise StorageError("storage-corrupt") from None


def _read_receipt(
    campaign_id: str,
    title: str,
    study: str | None,
    epsilon: float,
    questions: list[int],
    at: float,
    url: str,
    fate: str,
) -> Receipt:
    return Receipt(campaign_id, title, study, epsilon, tuple(questions), at, url, fate)


def write_installation(transaction: Transaction, device: Installation, scope: str = "") -> None:
    """Store the device, replacing what was there."""
    key = scope_prefix(scope) + _KEY
    consents = {campaign_id: astuple(consent) for campaign_id, consent in device.consents.items()}
    receipts = [astuple(receipt) for receipt in device.receipts]
    transaction.put(key, pack(key, [device.secret, device.enabled, consents, receipts]))
