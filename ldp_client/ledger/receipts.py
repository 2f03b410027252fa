"""What a device has spent, campaign by campaign, the caps that it is held to, and whether it would answer another one:
decided from the document, the ledger, the caps and the clock alone.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldp_client.errors import ConfigurationError, RefusedError
from protocols.light import TYPE_CHECKING, frozen

if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Final

    from ldp_client.ledger.installation import Installation
    from protocols import Campaign

WAITING: Final = "waiting"
ON_ITS_WAY: Final = "on-its-way"
ARRIVED: Final = "arrived"
REFUSED: Final = "refused"
EXPIRED: Final = "expired"
DELETED: Final = "deleted"

FATES: Final = {
    WAITING: "on this device; nothing of it has left",
    ON_ITS_WAY: "an upload has begun, and is not known to have arrived",
    ARRIVED: "the server has it",
    REFUSED: "the server says that it refused it; it is not sent again",
    EXPIRED: "given up after its time; it may have arrived",
    DELETED: "deleted by a withdrawal after an upload had begun; it may have arrived",
}
"""What became of a contribution."""


@frozen
class Receipt:
    """One contribution, made once and for good.

    ``epsilon`` is the loss recomputed from the campaign's document; ``questions`` are the indices of the questions
    drawn; ``at`` is the device's clock (seconds since 1970); ``url`` is the aggregator agreed to; ``fate`` is one of
    :data:`FATES`.
    """

    campaign_id: str
    title: str
    study: str | None
    epsilon: float
    questions: tuple[int, ...]
    at: float
    url: str = ""
    fate: str = WAITING


@frozen
class Caps:
    """The most that an app lets its user lose: in one campaign, and over the life of the install."""

    epsilon: float
    total_epsilon: float


def read_cap(name: str, cap: object) -> float:
    """A cap as a plain double, whatever kind of number it came as. Raises ConfigurationError."""
    if not isinstance(cap, (bool, str, bytes)):
        try:
            number = float(cap)  # type: ignore[arg-type]  # what is no number says so
        except (TypeError, ValueError, OverflowError):
            number = 0.0
        if 0 < number < float("inf"):
            return number
    raise ConfigurationError("bad-cap", f"{name} must be a finite number above 0")


@frozen
class Ledger:
    """The receipts and the cap that their sum is held to. ``str()`` tells a person in plain words."""

    receipts: tuple[Receipt, ...]
    max_total_epsilon: float

    @property
    def total_epsilon(self) -> float:
        """Privacy loss over the life of the install, rounded up."""
        return total_up(self.receipts)

    def receipt(self, campaign_id: str) -> Receipt | None:
        """What was contributed to a campaign."""
        return find(self.receipts, campaign_id)

    def __str__(self) -> str:
        cap = _written(self.max_total_epsilon)
        if not self.receipts:
            return f"This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most {cap})."
        campaigns = "1 campaign" if len(self.receipts) == 1 else f"{len(self.receipts)} campaigns"
        lines = [
            f"This device has contributed to {campaigns}. Privacy loss so far: epsilon {_written(self.total_epsilon)} "
            f"of at most {cap}."
        ]
        for receipt in self.receipts:
            answers = "1 answer" if len(receipt.questions) == 1 else f"{len(receipt.questions)} answers"
            lines.append(
                f'* "{plain(receipt.title)}" on {_day(receipt.at)}: {answers}, with noise added on this device; '
                f"epsilon {_written(receipt.epsilon)}; {FATES[receipt.fate]}."
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
    from protocols.exact.rationals import float_up

    return float_up(total(receipts))


def refusal(device: Installation, campaign: Campaign, caps: Caps, now: float, tolerance: float) -> RefusedError | None:
    """Why this device will not answer ``campaign``, None where it would. ``tolerance``: by how many seconds the clock
    ``now`` may be wrong.
    """
    from fractions import Fraction

    from protocols.exact.rationals import exact_epsilon

    if not device.enabled:
        return RefusedError("switched-off", "contributing is switched off on this device")
    if campaign.opens is not None and now + tolerance < campaign.opens.timestamp():
        return RefusedError("campaign-not-open", f"the campaign opens at {campaign.opens:%Y-%m-%d %H:%M} UTC")
    if campaign.closes is not None and now - tolerance > campaign.closes.timestamp():
        return RefusedError("campaign-closed", f"the campaign closed at {campaign.closes:%Y-%m-%d %H:%M} UTC")
    costs = f"the campaign costs epsilon {campaign.realised_epsilon:.6g}"
    if campaign.loss > exact_epsilon(caps.epsilon):
        return RefusedError("loss-above-cap", f"{costs}, above the cap of {caps.epsilon:g}")
    if total(device.receipts) + Fraction(campaign.realised_epsilon) > exact_epsilon(caps.total_epsilon):
        return RefusedError(
            "total-above-cap",
            f"{costs} and {total_up(device.receipts):.6g} is spent; the cap over the life of this install is "
            f"{caps.total_epsilon:g}",
        )
    if campaign.study is not None and any(receipt.study == campaign.study for receipt in device.receipts):
        return RefusedError(
            "study-answered", "this device has answered another campaign of the same study; one is the most"
        )
    return None


def plain(text: str) -> str:
    """A text of the server's on one line of its own: what would move the cursor, break the line, turn the direction of
    writing or close the quotation mark is escaped.
    """
    return "".join(
        c if c.isprintable() and c != '"' else c.encode("unicode_escape").decode() if c != '"' else "'" for c in text
    )


def _written(epsilon: float) -> str:
    """Four decimals, rounded up."""
    from fractions import Fraction

    thousands = -(-Fraction(epsilon) * 10_000 // 1)
    return f"{float(Fraction(thousands, 10_000)):g}"


def _day(seconds: float) -> str:
    from datetime import datetime, timezone

    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
    except (OverflowError, OSError, ValueError):
        # The clock was that wrong.
        return "an unknown day"
