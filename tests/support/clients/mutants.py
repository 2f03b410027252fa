"""Clients to audit: copies of the mechanisms, in their simplest form, with one flaw each.

Flaws of the kind that happens: probabilities off by a tenth, a true bit that is never cleared, floating-point noise, a
subset whose order gives the answer away, a question drawn after a look at the record, fresh noise on a retry, a
modulo, a hint in the length. The same copies without the flaw are sound, so that it is the flaw that is caught.
"""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgpack
from studies import Studies

from ldp_aggregator.audit import Answer, Person
from ldp_client import perturb
from protocols import Campaign, encode_upload
from protocols.exact.coins import ONE, Coins

LARGE = 1 << 100


class SeededCoins(Coins):
    """Reproducible words."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def words(self, count: int) -> Sequence[int]:
        return [self._random.getrandbits(64) for _ in range(count)]


class Remembering:
    """What devices have sent, by campaign: a storage in this process's memory, whatever its folder is called."""

    def __init__(self) -> None:
        self._sent: dict[tuple[object, ...], Answer] = {}
        self._studies = Studies()

    def answers(
        self, document: str, people: Sequence[Person], storage: Path | None, fresh: Callable[[Person], Answer]
    ) -> list[Answer]:
        found = []
        for person in people:
            if person.device is None:
                found.append(fresh(person))
                continue
            if self._studies.refuses(document, storage, person.device):
                found.append(())
                continue
            key = storage, document, person.device
            if key not in self._sent:
                self._sent[key] = fresh(person)
            found.append(self._sent[key])
        return found


class RealClient:
    """The client of this distribution, with a seed and, for devices that are asked again, a memory."""

    def __init__(self, seed: int = 1) -> None:
        # An audit tries small numbers as seeds.
        self._coins = SeededCoins(LARGE + seed)
        self._random = random.Random(LARGE - seed)
        self._remembering = Remembering()

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None) -> list[Answer]:
        campaign = Campaign.parse(document.encode())

        def fresh(person: Person) -> Answer:
            secret = self._random.randbytes(32)
            return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=self._coins)),)

        return self._remembering.answers(document, people, storage, fresh)


class Copy:
    """A client made of copies. ``flaw`` is None or the name of a method's flaw below."""

    def __init__(self, flaw: str | None, seed: int = 1) -> None:
        self._flaw = flaw
        self._random = random.Random(seed)
        self._remembering = Remembering()

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None) -> list[Answer]:
        campaign = json.loads(document)
        if self._flaw == "fresh noise on retry":
            return [(self._contribute(campaign, person),) for person in people]
        return self._remembering.answers(
            document, people, storage, lambda person: (self._contribute(campaign, person),)
        )

    def _contribute(self, campaign: Mapping[str, Any], person: Person) -> bytes:
        number, question = self._draw(campaign, person)
        item = self._encode(campaign, question, person)
        payload = getattr(self, "_" + question["mechanism"])(question, item)
        if self._flaw == "class hint in the length" and person.label == campaign["label"]["classes"][0]:
            payload += b"\0"
        return msgpack.packb([1, [[number, self._random.randbytes(16), payload]]])

    def _draw(self, campaign: Mapping[str, Any], person: Person) -> tuple[int, Mapping[str, Any]]:
        questions = list(enumerate(campaign["questions"]))
        if self._flaw == "question drawn after looking":
            questions = [(n, q) for n, q in questions if q["feature"] is None or q["feature"] in person.record]
        return self._random.choice(questions)

    def _encode(self, campaign: Mapping[str, Any], question: Mapping[str, Any], person: Person) -> Any:
        classes = campaign["label"]["classes"]
        label = classes.index(person.label)
        if question["kind"] == "label":
            return label
        (feature,) = [one for one in campaign["features"] if one["name"] == question["feature"]]
        value = _read(person, feature["name"])
        if question["kind"] == "pair":
            values = feature["values"]
            index = values.index(value) if value in values else self._random.randrange(len(values))
            return index * len(classes) + label
        return 1.0 if value == feature["high"] else -1.0, label

    def _chance(self, question: Mapping[str, Any], name: str) -> float:
        return int(question["parameters"][name]) / ONE

    def _de(self, question: Mapping[str, Any], item: int) -> bytes:
        if self._random.random() < self._chance(question, "p"):
            return bytes([item])
        others = question["domain_size"] - 1
        if self._flaw == "modulo bias":
            other = self._random.getrandbits(others.bit_length()) % others
        else:
            other = self._random.randrange(others)
        return bytes([other if other < item else other + 1])

    def _oue(self, question: Mapping[str, Any], item: int) -> bytes:
        p, q = self._chance(question, "p"), self._chance(question, "q")
        if self._flaw == "q too small by a tenth":
            q *= 0.9
        return self._bits(question, item, p, q)

    def _sue(self, question: Mapping[str, Any], item: int) -> bytes:
        p = 1.0 if self._flaw == "true bit not cleared" else self._chance(question, "p")
        return self._bits(question, item, p, self._chance(question, "q"))

    def _bits(self, question: Mapping[str, Any], item: int, p: float, q: float) -> bytes:
        d = question["domain_size"]
        set_bits = [i for i in range(d) if self._random.random() < (p if i == item else q)]
        return sum(1 << i for i in set_bits).to_bytes(-(-d // 8), "little")

    def _ss(self, question: Mapping[str, Any], item: int) -> bytes:
        d, w = question["domain_size"], question["parameters"]["w"]
        included = self._random.random() < self._chance(question, "p")
        others = self._random.sample([i for i in range(d) if i != item], w - included)
        members = [item, *others] if included else others
        if self._flaw != "list not shuffled":
            self._random.shuffle(members)
        return bytes(members)

    def _laplace(self, question: Mapping[str, Any], item: tuple[float, int]) -> bytes:
        value, label = item
        cells = [value if c == label else 0.0 for c in range(question["domain_size"])]
        scale = 2 / question["epsilon"]
        if self._flaw == "floating-point noise":
            return struct.pack(f"<{len(cells)}d", *(cell + self._float_noise(scale) for cell in cells))
        steps = 1 << question["parameters"]["grid"]
        noisy = [round(cell * steps) + self._grid_noise(scale * steps) for cell in cells]
        return struct.pack(f"<{len(noisy)}i", *noisy)

    def _float_noise(self, scale: float) -> float:
        """The textbook's: the inverse of the distribution function, in doubles."""
        u = self._random.random() - 0.5
        return -scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))

    def _grid_noise(self, scale: float) -> int:
        """A difference of two geometric draws is discrete Laplace noise."""
        a = -1 / scale
        first, second = (math.floor(math.log(1 - self._random.random()) / a) for _ in range(2))
        return first - second


def _read(person: Person, name: str) -> object:
    """The value; None, as of a missing one, where the record cannot be read."""
    try:
        return person.record.get(name)
    except RuntimeError:
        return None


def question(mechanism: str, size: int, epsilon: float) -> str:
    """A campaign that asks a label of ``size`` classes, or a value with it."""
    from ldp_aggregator.cli.audit import single_question

    return single_question(mechanism, size, epsilon)


def two_features() -> str:
    """A campaign in which the draw matters."""
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["a", "b"], "weight": 1},
            "features": [
                {"name": n, "kind": "categorical", "missing": False, "values": ["1", "2", "3"]} for n in ("u", "v")
            ],
            "privacy": {"epsilon": 1.0, "discrete": "de"},
        }
    ).document.decode()


MUTANTS = {
    "q too small by a tenth": ("oue", 8, 1.0, "loss-above-claim"),
    "true bit not cleared": ("sue", 4, 1.0, "impossible-report"),
    "floating-point noise": ("laplace", 2, 1.0, "loss-above-claim"),
    "list not shuffled": ("ss", 8, 1.0, "loss-above-claim"),
    "question drawn after looking": (None, 0, 1.0, "impossible-report"),
    "fresh noise on retry": ("oue", 8, 1.0, "retry-differs"),
    "modulo bias": ("de", 6, 1.0, "loss-above-claim"),
    "class hint in the length": ("oue", 8, 1.0, "length-tells"),
}
"""Flaw, the question it is in (mechanism, cells, epsilon), the code of what the audit finds."""


def document_of(flaw: str) -> str:
    """The campaign that a flaw shows in."""
    mechanism, size, epsilon, _ = MUTANTS[flaw]
    return two_features() if mechanism is None else question(mechanism, size, epsilon)
