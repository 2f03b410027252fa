"""Crowds: a campaign that promises what its reports reveal once they are mixed with those of many devices."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from ldp_protocols.fields import Fields, Refusal

LEAST_DEVICES: Final = 100
MOST_DEVICES: Final = 1 << 30
MOST_EPSILON: Final = 64
"""Beyond that nothing is promised, and exp(epsilon) is soon no number."""
LEAST_DELTA: Final = 1e-15
MOST_DELTA: Final = 1e-6
"""Whoever is told (epsilon, delta) may learn everything of one device with probability delta."""
MOST_DAYS: Final = 3650
_LIKE: Final = '{"epsilon": 1.0, "delta": 1e-9, "devices": 20000, "honest": 0.5}'


@dataclass(frozen=True)
class Crowd:
    """The promise: whoever sees answers only as the relay lets them go, mixed in batches, learns (epsilon, delta) of
    one device at most.

    ``devices`` are those of a batch; of these the share ``honest`` at least is what it seems to be, and hides its coins
    from whoever looks. ``without_issuer`` is the reason why the relay admits uploads without a token of a person.
    A batch that is not full ``expires`` so many days after its first answer; None lets it wait.
    """

    epsilon: float
    delta: float
    devices: int
    honest: float
    without_issuer: str | None = None
    expires: int | None = None

    @property
    def reports(self) -> int:
        """The reports that the bound counts: those of devices that are honest."""
        return int(Fraction(repr(self.honest)) * self.devices)

    def __str__(self) -> str:
        honest = f"{self.reports:,} or more of them honest"
        return (
            f"epsilon = {self.epsilon:g}, delta = {self.delta:g} of answers mixed {self.devices:,} at a time, {honest}"
        )

    def to_json(self) -> dict[str, Any]:
        values = {"epsilon": self.epsilon, "delta": self.delta, "devices": self.devices, "honest": self.honest}
        open_ended = {"without_issuer": self.without_issuer, "expires": self.expires}
        return values | {name: value for name, value in open_ended.items() if value is not None}


def read_crowd(value: Any, refuse: Refusal) -> Crowd | None:
    """Read a draft's or document's crowd, None where it has none."""
    if value is None:
        return None
    fields = Fields(value, "privacy.crowd", refuse, like=_LIKE)
    epsilon, delta, honest = (fields.number(name) for name in ("epsilon", "delta", "honest"))
    devices = fields.integer("devices", least=LEAST_DEVICES, most=MOST_DEVICES)
    if not 0 < epsilon <= MOST_EPSILON:
        raise fields.error("epsilon", f"must be above 0 and at most {MOST_EPSILON} (1 is common), not {epsilon}")
    if not LEAST_DELTA <= delta <= min(MOST_DELTA, 1 / devices):
        sentence = (
            f"must be from {LEAST_DELTA:g} to {min(MOST_DELTA, 1 / devices):g} (1e-9 is a common choice), not {delta:g}"
        )
        raise fields.error("delta", sentence)
    if not 0 < honest <= 1 or Fraction(repr(honest)) * devices < 1:
        raise fields.error("honest", f"must be above 0 and at most 1 (0.5 is a common choice), not {honest}")
    expires = fields.integer("expires", least=1, most=MOST_DAYS) if fields.has("expires") else None
    crowd = Crowd(epsilon, delta, devices, honest, fields.optional_text("without_issuer"), expires)
    fields.finish()
    return crowd
