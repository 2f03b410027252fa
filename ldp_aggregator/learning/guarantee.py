"""The promise of an estimator, as data: which privacy, between which neighbours, and what it takes for public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

LOCAL_RELATION = "local: any two records of one device"
LOCAL_PUBLIC = ("the campaign document", "which question a device answered")
NO_PRIVACY_RELATION = "none: the model is exact, nothing is protected"


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP under ``relation``; ``public`` lists what the guarantee assumes to be known to everybody.

    ``epsilon`` is the total; None means that there is no guarantee at all.
    """

    epsilon: float | None
    delta: float
    relation: str
    public: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Guarantee:
        """The inverse of :meth:`to_json`."""
        return cls(**{**told, "public": tuple(told["public"])})

    def __str__(self) -> str:
        if self.epsilon is None:
            return f"no privacy ({self.relation})"
        loss = f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else "")
        return f"{loss}; relation: {self.relation}; public: {', '.join(self.public)}"
