"""Proof that a planted flaw is one: an attacker who knows the trick, and what the attacker sees.

A witness names a campaign, two records and how much more often something is seen with the first than with the second.
"""

from __future__ import annotations

import enum
import json
import math
import random
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fractions import Fraction
from typing import Any, NamedTuple

from exact_coins import SeededCoins, enumerate_outcomes
from scipy.stats import beta

from planted.client import Person, PlantedClient, Sent
from protocols import Campaign, Report, decode_upload
from protocols.mechanisms import UnaryEncoding

Make = Callable[..., PlantedClient]
"""A class of planted clients; each call is a new process."""

Event = Callable[[Campaign, Sent], bool]
"""Whether the attacker, shown everything that was sent (before and after restarts), says "the first record"."""

FALSE_ALARM = 1e-7
"""Chance that one bound on a probability is wrong."""

RED: Person = ({"colour": "red", "shape": "round", "size": 100.0}, "yes")
BLUE: Person = ({"colour": "blue", "shape": "round", "size": 100.0}, "yes")
RED_NO: Person = (RED[0], "no")

FRIDAY = datetime(2026, 3, 13, 12, tzinfo=timezone.utc)
SUNDAY = datetime(2026, 3, 15, 12, tzinfo=timezone.utc)


class Found(enum.Enum):
    """Whether a tester that sees only uploads for records of its choice finds a leak in 20,000 trials a person."""

    YES = "any tester that compares whole uploads"
    PERHAPS = "only a tester that looks at rare values, neighbours, restarts, joint cells or large epsilon"
    NEVER = "no tester that knows neither the key nor the moment, and tries no more often"


class Measured(NamedTuple):
    """What a witness has seen of a client."""

    log_odds: float
    delta: float


@dataclass(frozen=True)
class Sampled:
    """``event`` is seen so much more often with ``one`` than with ``other`` that no epsilon-LDP client explains it.

    ``scene`` puts the person among others, ``restarts`` follow the first sending, ``stand_in`` is the same flaw where
    the attack on the real one would take a test too long.
    """

    one: Person
    other: Person
    event: Event
    draft: dict[str, Any]
    trials: int = 60
    restarts: int = 0
    now: datetime = FRIDAY
    scene: Callable[[Person], Sequence[Person]] = lambda person: [person]
    stand_in: Make | None = None

    def measure(self, make: Make, seed: int) -> Measured:
        """``log_odds`` is a lower bound of ln(P(event | one) / P(event | other)), wrong with probability below
        2 FALSE_ALARM; ``delta`` the observed P(event | one) - exp(epsilon) P(event | other).
        """
        seen = [self._count(self.stand_in or make, person, seed + n) for n, person in enumerate((self.one, self.other))]
        low = beta.ppf(FALSE_ALARM, seen[0], self.trials - seen[0] + 1) if seen[0] else 0.0
        high = beta.ppf(1 - FALSE_ALARM, seen[1] + 1, self.trials - seen[1]) if seen[1] < self.trials else 1.0
        epsilon = self.draft["privacy"]["epsilon"]
        delta = max(0.0, (seen[0] - math.exp(epsilon) * seen[1]) / self.trials)
        return Measured(math.log(low / high) if low else -math.inf, delta)

    def _count(self, make: Make, person: Person, seed: int) -> int:
        campaign = compiled(self.draft)
        coins, entropy = SeededCoins(seed), random.Random(-1 - seed).randbytes
        count = 0
        for _ in range(self.trials):
            client = make(coins, entropy, lambda: self.now)
            sent = client(campaign.document, self.scene(person))
            for _ in range(self.restarts):
                sent = [before + after for before, after in zip(sent, client.restart(), strict=True)]
            count += self.event(campaign, sent)
        return count


@dataclass(frozen=True)
class Exact:
    """Every outcome of the coins is followed: the loss between two people is computed, not estimated."""

    one: Person
    other: Person
    draft: dict[str, Any]

    def measure(self, make: Make, seed: int = 0) -> Measured:
        """``log_odds`` is the largest |ln(P(sent | one) / P(sent | other))|, infinite where only one of them can send
        it; ``delta`` the chance of that, for the one for whom it is larger.
        """
        shares = self._shares(make)
        worst = max(abs(math.log(p / q)) if p and q else math.inf for p, q in shares)
        return Measured(worst, float(max(sum(p for p, q in shares if not q), sum(q for p, q in shares if not p))))

    def _shares(self, make: Make) -> list[tuple[Fraction, Fraction]]:
        """The probabilities of everything that one of the two may send, for either."""
        campaign = compiled(self.draft)
        unary = [q.mechanism for q in campaign.questions if isinstance(q.mechanism, UnaryEncoding)]
        edges = sorted({edge for mechanism in unary for edge in (mechanism.true_bit, mechanism.other_bit)})
        one, other = (self._outcomes(make, campaign, person, edges) for person in (self.one, self.other))
        return [(one.get(sent, Fraction(0)), other.get(sent, Fraction(0))) for sent in {*one, *other}]

    def _outcomes(self, make: Make, campaign: Campaign, person: Person, edges: Sequence[int]) -> dict[Any, Fraction]:
        return enumerate_outcomes(
            lambda coins: tuple(map(tuple, make(coins, bytes, lambda: FRIDAY)(campaign.document, [person]))), edges
        )


@dataclass(frozen=True)
class Leak:
    """A client that breaks the promise. Its class says what leaks and to whom.

    ``epsilon`` is the true loss in the witness's campaign, infinite where something is only ever sent for some records
    (or ever more rarely for others); ``delta`` is then the chance of what the campaign's epsilon does not explain.
    """

    make: Make
    epsilon: float
    found: Found
    witness: Sampled | Exact
    delta: float = field(default=0.0, kw_only=True)


def draft(**changes: Any) -> dict[str, Any]:
    """One question about a colour (four values) and the class (two): ``de`` with epsilon 1, unless changed.

    ``shapes`` and ``sizes`` add a second categorical and a continuous feature, ``colours=False`` takes the colour away,
    ``label`` is the weight of the label's own question.
    """
    features = []
    if changes.pop("colours", True):
        features.append(
            {"name": "colour", "kind": "categorical", "missing": False, "values": ["red", "green", "grey", "blue"]}
        )
    if changes.pop("shapes", False):
        features.append({"name": "shape", "kind": "categorical", "missing": False, "values": ["round", "square"]})
    if changes.pop("sizes", False):
        features.append({"name": "size", "kind": "continuous", "missing": False, "low": 0, "high": 100})
    label = {"name": "label", "classes": ["yes", "no"], "weight": changes.pop("label", 0)}
    privacy = {"epsilon": 1.0, "discrete": "de", "continuous": "laplace", **changes}
    return {"version": 1, "title": "Planted", "label": label, "features": features, "privacy": privacy}


def compiled(chosen: dict[str, Any]) -> Campaign:
    """The campaign of a draft. Of one that asks for moments alone, which nobody may draft because no model comes of it,
    the campaign with the label's question taken out: a device answers what it is asked.
    """
    indexed = chosen["privacy"]["continuous"] == "sign" or any(f["kind"] == "categorical" for f in chosen["features"])
    if indexed or chosen["label"]["weight"]:
        return Campaign.compile(chosen)
    told = Campaign.compile({**chosen, "label": {**chosen["label"], "weight": 1}})
    value = json.loads(told.document)
    value["questions"] = [question for question in value["questions"] if question["kind"] != "label"]
    return Campaign.parse(json.dumps(value, separators=(",", ":")).encode())


def reports(campaign: Campaign, upload: bytes) -> list[Report]:
    """The reports in an upload."""
    found = []
    for block in decode_upload(upload, campaign):
        width = len(block.payloads) // block.count
        for n in range(block.count):
            payload = block.payloads[width * n : width * (n + 1)]
            found.append(Report(block.question, block.ids[16 * n : 16 * n + 16], payload))
    return found


def first(campaign: Campaign, sent: Sent, device: int = 0, upload: int = 0) -> Report:
    """The first report in an upload of a device."""
    return reports(campaign, sent[device][upload])[0]


def index(payload: bytes) -> int:
    """The index in a ``de`` payload, or the bits of a bitmap."""
    return int.from_bytes(payload, "little")


def cells(payload: bytes) -> tuple[int, ...]:
    """The cells of a noisy vector."""
    return struct.unpack(f"<{len(payload) // 4}i", payload)
