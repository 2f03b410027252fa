"""What a device has spent, campaign by campaign, and the caps that it is held to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from fractions import Fraction

from protocols.exact.rationals import float_up


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
        return float_up(total(self.receipts))

    def receipt(self, campaign_id: str) -> Receipt | None:
        """What was contributed to a campaign."""
        return find(self.receipts, campaign_id)

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


def find(receipts: tuple[Receipt, ...], campaign_id: str) -> Receipt | None:
    return next((receipt for receipt in receipts if receipt.campaign_id == campaign_id), None)


def total(receipts: tuple[Receipt, ...]) -> Fraction:
    """Exact, so that no order of contributions and no rounding slips past a cap."""
    return sum((Fraction(receipt.epsilon) for receipt in receipts), Fraction(0))


def _written(epsilon: float) -> str:
    """Four decimals, rounded up."""
    thousands = -(-Fraction(epsilon) * 10_000 // 1)
    return f"{float(Fraction(thousands, 10_000)):g}"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d")
