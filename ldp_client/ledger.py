"""The ledger: what an install agreed to and spent.

Receipts, consents (to what, when, with whom) and the secret are one stored value, so that damage is noticed: a device
that forgot a receipt would answer, and lose privacy, a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from ldp_client.errors import StorageError
from ldp_client.storage.contract import MARK, PUBLISHERS, QUEUES, SCOPES, Transaction, pack, scope_prefix, unpack

if TYPE_CHECKING:
    from fractions import Fraction


_KEY: Final = "device"
_SHARED: Final = (SCOPES, QUEUES, MARK, PUBLISHERS)
"""Keys that a storage may hold although nobody has agreed to anything yet, or only scopes have."""

WAITING: Final = "waiting"
ON_ITS_WAY: Final = "on-its-way"
ARRIVED: Final = "arrived"
REFUSED: Final = "refused"
EXPIRED: Final = "expired"
DELETED: Final = "deleted"

FATES: Final = {
    WAITING: "on this device; nothing of it has left",
    ON_ITS_WAY: "an upload has begun, and is not known to have arrived",
    ARRIVED: "handed over",
    REFUSED: "the server says that it refused it; it is not sent again",
    EXPIRED: "given up after its time; it may have arrived",
    DELETED: "deleted by a withdrawal after an upload had begun; it may have arrived",
}
"""The outcomes of a contribution, in words."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One contribution, made once and for good.

    ``epsilon`` is the loss recomputed from the campaign's document; ``questions`` are the indices of the questions
    drawn; ``at`` is the device's clock (seconds since 1970); ``url`` is the aggregator agreed to; ``fate`` is one of
    :data:`FATES`; ``window`` names the window of a series. With a crowd ``epsilon`` is lost only where relay and
    aggregator work together; (``crowd_epsilon``, ``crowd_delta``) is what the document promises where they do not.
    """

    campaign_id: str
    title: str
    study: str | None
    epsilon: float
    questions: tuple[int, ...]
    at: float
    url: str = ""
    fate: str = WAITING
    window: str = ""
    crowd_epsilon: float | None = None
    crowd_delta: float | None = None


@dataclass(frozen=True, slots=True)
class Ledger:
    """The receipts and the cap that their sum is held to. ``str()`` tells a person in plain words."""

    receipts: tuple[Receipt, ...]
    max_total_epsilon: float

    @property
    def total_epsilon(self) -> float:
        """Privacy loss over the life of the install, rounded up."""
        return total_up(self.receipts)

    @property
    def crowd_epsilon(self) -> float:
        """The same where every relay keeps apart from its aggregator, rounded up."""
        return total_up(replace(one, epsilon=one.crowd_epsilon or one.epsilon) for one in self.receipts)

    @property
    def crowd_delta(self) -> float:
        """The probability with which :attr:`crowd_epsilon` may be exceeded then, rounded up."""
        return total_up(replace(one, epsilon=one.crowd_delta or 0.0) for one in self.receipts)

    def receipt(self, campaign_id: str) -> Receipt | None:
        """The receipt of a campaign."""
        return find(self.receipts, campaign_id)

    def __str__(self) -> str:
        from ldp_client.words import plain, written  # Here: only who reads it pays for the words.

        cap = written(self.max_total_epsilon)
        if not self.receipts:
            return f"This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most {cap})."
        campaigns = "1 campaign" if len(self.receipts) == 1 else f"{len(self.receipts)} campaigns"
        lines = [
            f"This device has contributed to {campaigns}. Privacy loss so far: epsilon {written(self.total_epsilon)} "
            f"of at most {cap}."
        ]
        if self.crowd_delta:
            lines[0] += (
                f" Where relays and aggregators keep apart: epsilon {written(self.crowd_epsilon)}, but for a "
                f"probability of {self.crowd_delta:g}."
            )
        for receipt in self.receipts:
            answers = "1 answer" if len(receipt.questions) == 1 else f"{len(receipt.questions)} answers"
            window = receipt.window and f", in {receipt.window}"
            lines.append(
                f'* "{plain(receipt.title)}" on {_day(receipt.at)}{window}: {answers}, with noise added on this '
                f"device; epsilon {written(receipt.epsilon)}{apart(receipt)}; {FATES[receipt.fate]}."
            )
        return "\n".join(lines)


def find(receipts: Iterable[Receipt], campaign_id: str) -> Receipt | None:
    """The receipt of a campaign."""
    return next((receipt for receipt in receipts if receipt.campaign_id == campaign_id), None)


def total(receipts: Iterable[Receipt]) -> Fraction:
    """Exact, so that no order of contributions and no rounding slips past a cap."""
    from fractions import Fraction

    return sum((Fraction(receipt.epsilon) for receipt in receipts), Fraction(0))


def total_up(receipts: Iterable[Receipt]) -> float:
    """:func:`total`, rounded up to a double."""
    from ldp_protocols.exact import float_up

    return float_up(total(receipts))


class Consent(NamedTuple):
    """One decision about one campaign, with a copy of what it was about.

    The campaign's id is the digest of its whole document; title, purpose and loss are kept in words as they were shown.
    ``granted_at`` and ``withdrawn_at`` are the device's clock; a person who said no at once has granted nothing.
    ``gateway`` is the key to which the campaign's uploads are sealed, or its keys and their times, "" where they are
    not: kept here, beside what is unsent, so that nothing leaves in the clear where the document is lost.
    """

    url: str
    title: str
    purpose: str
    epsilon: float
    granted_at: float | None
    withdrawn_at: float | None
    gateway: str = ""

    @property
    def given(self) -> bool:
        """True while it holds."""
        return self.granted_at is not None and self.withdrawn_at is None


@dataclass(frozen=True, slots=True)
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
        return replace(self, consents={**self.consents, campaign_id: before._replace(withdrawn_at=now)})

    def with_receipt(self, receipt: Receipt) -> Installation:
        """With a receipt, in place of an earlier one of the same campaign."""
        return replace(self, receipts=(*self.without_receipt(receipt.campaign_id).receipts, receipt))

    def without_receipt(self, campaign_id: str) -> Installation:
        """As if that contribution had not been made; for one of which nothing has left."""
        return replace(self, receipts=tuple(one for one in self.receipts if one.campaign_id != campaign_id))


def has_devices(transaction: Transaction) -> bool:
    """True if a device, or a scope of one, has its ledger in this storage."""
    return transaction.get(_KEY) is not None or bool(transaction.items(SCOPES, 1))


def read_installation(transaction: Transaction, scope: str = "") -> Installation:
    """The device as it is stored, an empty one for a new install. Raises StorageError for damage."""
    prefix = scope_prefix(scope)
    stored = transaction.get(prefix + _KEY)
    if stored is None:
        # Safety: the device is the first thing ever written. Where something else is there without it, it was lost.
        if any(prefix or not key.startswith(_SHARED) for key, _ in transaction.items(prefix, 1)):
            raise StorageError("storage-corrupt")
        return Installation()
    try:
        secret, enabled, consents, receipts = unpack(prefix + _KEY, stored)
        return Installation(
            secret,
            enabled,
            {campaign_id: Consent(*values) for campaign_id, values in consents.items()},
            tuple(
                Receipt(campaign_id, title, study, epsilon, tuple(questions), *rest)
                for campaign_id, title, study, epsilon, questions, *rest in receipts
            ),
        )
    except (TypeError, ValueError, AttributeError):
        raise StorageError("storage-corrupt") from None


def write_installation(transaction: Transaction, device: Installation, scope: str = "") -> None:
    """Store the device, replacing what was there."""
    key = scope_prefix(scope) + _KEY
    consents = {campaign_id: tuple(consent) for campaign_id, consent in device.consents.items()}
    receipts = [astuple(receipt) for receipt in device.receipts]
    transaction.put(key, pack(key, [device.secret, device.enabled, consents, receipts]))


def apart(receipt: Receipt) -> str:
    """Say beside the local epsilon what a crowd's receipt costs where relay and aggregator keep apart; else nothing."""
    from ldp_client.words import written

    return f", {written(receipt.crowd_epsilon)} where relay and aggregator keep apart" if receipt.crowd_epsilon else ""


def _day(seconds: float) -> str:
    from datetime import datetime, timezone

    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        # The clock was that wrong.
        return "an unknown day"
