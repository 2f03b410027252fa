"""The privacy settings of a campaign, as its author writes them, validated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from protocols.fields import Fields, Refusal
from protocols.mechanisms import DISCRETE, MOMENTS

MOST_RELEASE: Final = 1 << 40

ANSWERS: Final = ("one", "all")


def discrete_choices() -> tuple[str, ...]:
    """Mechanisms for an index that an author may name."""
    return "auto", *DISCRETE


def continuous_choices() -> tuple[str, ...]:
    """Mechanisms for a number that an author may name; ``sign`` asks with one of those for an index."""
    return "auto", *MOMENTS, "sign"


@dataclass(frozen=True)
class Privacy:
    """``epsilon`` is the total loss of one device, whatever it answers."""

    epsilon: float
    answers: str = "one"
    discrete: str = "auto"
    continuous: str = "auto"
    theta: float | None = None
    release_every: int | None = None
    """Devices that have to answer between one publication and the next; None leaves that to the operator."""

    def to_json(self) -> dict[str, Any]:
        promised = {} if self.release_every is None else {"release_every": self.release_every}
        return {
            "epsilon": self.epsilon,
            "answers": self.answers,
            "discrete": self.discrete,
            "continuous": self.continuous,
            "theta": self.theta,
            **promised,
        }


def read_privacy(value: Any, refuse: Refusal) -> Privacy:
    fields = Fields(value, "privacy", refuse, like='{"epsilon": 1.0}')
    epsilon = fields.number("epsilon")
    if epsilon <= 0:
        raise fields.error("epsilon", f"must be above 0 (1 is a common choice), not {epsilon}")
    for gone in ("xor", "joint"):
        if fields.raw(gone) is not None:
            raise fields.error(gone, "is gone: every feature is asked about by a question of its own. Leave it out")
    theta = fields.number("theta") if fields.has("theta") else fields.raw("theta")
    if theta is not None and not 0 < theta <= 1:
        raise fields.error("theta", f"must be above 0 and at most 1 (null takes the best), not {theta}")
    privacy = Privacy(
        epsilon=epsilon,
        answers=fields.choice("answers", ANSWERS, default="one"),
        discrete=fields.choice("discrete", discrete_choices(), default="auto"),
        continuous=fields.choice("continuous", continuous_choices(), default="auto"),
        theta=theta,
        release_every=_read_release(fields),
    )
    fields.finish()
    return privacy


def _read_release(fields: Fields) -> int | None:
    if fields.has("release_every"):
        return fields.integer("release_every", least=2, most=MOST_RELEASE)
    fields.raw("release_every")
    return None
