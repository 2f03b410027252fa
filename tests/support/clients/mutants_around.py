"""Clients to audit whose mechanisms are right and who leak around them: in ids, headers, coins, and for some people."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgpack
from mutants import LARGE, Remembering, SeededCoins, question
from planted.randomness import HashCoins

from ldp_aggregator.audit import Answer, Person
from ldp_client import perturb
from ldp_client.answering import draw_questions, encode, item_of
from protocols import Campaign, Report, encode_upload
from protocols.exact.coins import Coins
from protocols.mechanisms import DirectEncoding
from protocols.wire import report_id

Flaw = Callable[[Campaign, Person, "Around"], Answer]


class Around:
    """The real perturbation with a flaw around it; a seed for every process, and a memory for devices."""

    def __init__(self, flaw: str, seed: int = 7) -> None:
        self._flaw = FLAWS[flaw]
        # An audit tries small numbers as seeds.
        self.random = random.Random(LARGE - seed)
        self.coins = SeededCoins(LARGE + seed)
        self.constant = SeededCoins(0)
        self._remembering = Remembering()

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None) -> list[Answer]:
        campaign = Campaign.parse(document.encode())
        self.constant = SeededCoins(0)
        return self._remembering.answers(document, people, storage, lambda person: self._flaw(campaign, person, self))

    def reports(self, campaign: Campaign, person: Person) -> tuple[Report, ...]:
        return perturb(campaign, person.record, person.label, secret=self.random.randbytes(32), coins=self.coins)


def _sound(campaign: Campaign, person: Person, client: Around) -> Answer:
    return (encode_upload(client.reports(campaign, person)),)


def _record_in_the_id(campaign: Campaign, person: Person, client: Around) -> Answer:
    told = (repr(dict(person.record)) + person.label)[-12:].encode("ascii", "replace")
    tag = (told + client.random.randbytes(16))[:16]
    return (encode_upload([Report(of.question, tag, of.payload) for of in client.reports(campaign, person)]),)


def _class_in_the_version(campaign: Campaign, person: Person, client: Around) -> Answer:
    blocks = [[of.question, of.id, of.payload] for of in client.reports(campaign, person)]
    return (msgpack.packb([1 + campaign.label.classes.index(person.label), blocks]),)


def _constant_seed(campaign: Campaign, person: Person, client: Around) -> Answer:
    """The answer's coins alone: secrets, and so ids and questions, are fresh."""
    secret = client.random.randbytes(32)
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=client.constant)),)


def _everything_from_a_constant_seed(campaign: Campaign, person: Person, client: Around) -> Answer:
    """The secret is the first thing that is drawn from the coins."""
    return (encode_upload(perturb(campaign, person.record, person.label, coins=client.constant)),)


def _middle_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Middle classes, and people with a middle value."""
    ends = [(f.values[0], f.values[-1], None) for f in campaign.features]
    values = [person.record.get(f.name) for f in campaign.features if not hasattr(person.record, "unreadable")]
    middle = any(value not in of for value, of in zip(values, ends, strict=False))
    if middle or person.label not in (campaign.label.classes[0], campaign.label.classes[-1]):
        clear = bytes([campaign.label.classes.index(person.label)])
        return (encode_upload([Report(0, client.random.randbytes(16), clear)]),)
    return _sound(campaign, person, client)


def _drawn_after_looking(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Where some values are missing, a question is drawn about the others."""
    present = [f.name for f in campaign.features if f.name in person.record]
    while True:
        reports = client.reports(campaign, person)
        if len(present) in (0, len(campaign.features)) or {
            campaign.questions[of.question].feature for of in reports
        } <= {None, *present}:
            return (encode_upload(reports),)


def _not_clipped(campaign: Campaign, person: Person, client: Around) -> Answer:
    """The excess of a value beyond the bounds is added to the noisy cell."""
    value = None if hasattr(person.record, "unreadable") else person.record.get("value")
    reports = client.reports(campaign, person)
    if isinstance(value, (int, float)) and 1 < abs(value) < 1e6:
        at = 4 * campaign.label.classes.index(person.label)
        moved = []
        for of in reports:
            cell = int.from_bytes(of.payload[at : at + 4], "little", signed=True) + int((2 * value - 2) * 4096)
            moved.append(
                Report(
                    of.question, of.id, of.payload[:at] + cell.to_bytes(4, "little", signed=True) + of.payload[at + 4 :]
                )
            )
        return (encode_upload(moved),)
    return (encode_upload(reports),)


def _rarely_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """One answer to the label's question in 2,000, in the form of unary encodings."""
    reports = client.reports(campaign, person)
    if client.random.random() < 1 / 2000:
        true = campaign.label.classes.index(person.label)
        reports = tuple(Report(of.question, of.id, (1 << true).to_bytes(len(of.payload), "little")) for of in reports)
    return (encode_upload(reports),)


def _reseeded(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A generator seeded anew for every question of a device."""
    seed = client.random.getrandbits(64)
    one_by_one: list[Report] = []
    secret = client.random.randbytes(32)
    for number in range(len(campaign.groups)):
        reports = perturb(_only(campaign, number), person.record, person.label, secret=secret, coins=SeededCoins(seed))
        one_by_one += [
            Report(campaign.groups[number][0].index, client.random.randbytes(16), of.payload) for of in reports
        ]
    return (encode_upload(one_by_one),)


_ALONE: dict[tuple[str, int], Campaign] = {}


def _only(campaign: Campaign, group: int) -> Campaign:
    """The campaign with the questions of one group."""
    key = campaign.id, group
    if key not in _ALONE:
        value: dict[str, Any] = json.loads(campaign.document)
        value["questions"] = [q for q in value["questions"] if q["group"] == group]
        value["privacy"] |= {"answers": "one", "epsilon": value["questions"][0]["epsilon"]}
        _ALONE[key] = Campaign.parse(json.dumps(value, separators=(",", ":")).encode())
    return _ALONE[key]


def _more_than_claimed(campaign: Campaign, person: Person, client: Around) -> Answer:
    """1.8 times the epsilon for every question."""
    key = campaign.id, -1
    if key not in _ALONE:
        value = json.loads(campaign.document)
        features = [{k: f[k] for k in ("name", "kind", "values", "missing")} for f in value["features"]]
        privacy = {**value["privacy"], "epsilon": 1.8 * value["privacy"]["epsilon"]}
        draft = {k: value[k] for k in ("version", "title", "label")}
        _ALONE[key] = Campaign.compile({**draft, "features": features, "privacy": privacy})
    return (encode_upload(client.reports(_ALONE[key], person)),)


def _both_of_a_number(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Who draws the value of a number answers its square, too, with the whole of epsilon each."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    others = [q for q in campaign.groups[asked.group] if q.index != asked.index]
    reports = [report]
    for other in others:
        item = encode(campaign, other, person.record, campaign.label.classes.index(person.label), client.coins)
        reports.append(Report(other.index, client.random.randbytes(16), other.perturb(item, client.coins)))
    return (encode_upload(reports),)


def _a_model_that_is_right(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A device that the model is wrong about draws again, once, "so that nobody is offended"."""
    secret = client.random.randbytes(32)
    (asked,) = draw_questions(campaign, secret)
    if not item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins):
        secret = client.random.randbytes(32)
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=client.coins)),)


def _wrong_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """An item 0 is taken for "no answer" and not perturbed."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    item = item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    return (encode_upload([Report(report.question, report.id, report.payload if item else bytes(1))]),)


def _both_questions(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A device answers both questions, with the whole of epsilon each."""
    label = campaign.label.classes.index(person.label)
    answers = [
        asked.perturb(item_of(campaign, asked, person.record, label, client.coins), client.coins)
        for asked in campaign.questions
    ]
    return (encode_upload([Report(n, client.random.randbytes(16), answer) for n, answer in enumerate(answers)]),)


def _noise_from_the_id(campaign: Campaign, person: Person, client: Around) -> Answer:
    """The coins are a hash of the report's id, which everybody sees."""
    secret = client.random.randbytes(32)
    coins = HashCoins(report_id(secret, campaign, draw_questions(campaign, secret)[0]))
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=coins)),)


def _seed_of_48_bits(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Secret and coins come from 48 random bits, which somebody may try one after the other."""
    seed = client.random.randbytes(6)
    secret = hashlib.sha256(b"secret" + seed).digest()
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=HashCoins(seed))),)


def _in_the_clear_if(campaign: Campaign, person: Person, client: Around, holds: bool) -> Answer:
    """An honest answer; where ``holds``, one whose coins are all 0."""
    coins = _Zeros() if holds else client.coins
    secret = client.random.randbytes(32)
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=coins)),)


class _Zeros(Coins):
    def words(self, count: int) -> Sequence[int]:
        return [0] * count


def _two_values_together(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Who has the middle value of the first feature *and* of the second is answered without noise."""
    middle = [feature.values[len(feature.values) // 2] for feature in campaign.features[:2]]
    return _in_the_clear_if(campaign, person, client, [_held(person, number) for number in (0, 1)] == middle)


def _values_in_between(campaign: Campaign, person: Person, client: Around) -> Answer:
    """All values but every third are answered without noise."""
    held = _held(person, 0)
    values = campaign.features[0].values
    return _in_the_clear_if(campaign, person, client, held in values and values.index(held) % 3 != 0)


def _numbers_in_between(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Numbers from .55 to .7 of the range are answered without noise."""
    held = _held(person, 0, "x")
    return _in_the_clear_if(
        campaign, person, client, isinstance(held, (int, float)) and not isinstance(held, bool) and 5.5 < held < 7
    )


def _held(person: Person, number: int, name: str | None = None) -> object:
    held = None if hasattr(person.record, "unreadable") else person.record.get(name or f"f{number}")
    return held if isinstance(held, (str, int, float)) else None


def _missing_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A missing value is taken for "no answer" and its cell not perturbed."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    item = item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    held = None if hasattr(person.record, "unreadable") else person.record.get(asked.feature or "")
    if not isinstance(item, int) or asked.feature is None or held is not None:
        return (encode_upload([report]),)
    told = item if isinstance(asked.mechanism, DirectEncoding) else 1 << item
    return (encode_upload([Report(report.question, report.id, told.to_bytes(len(report.payload), "little"))]),)


FLAWS: dict[str, Flaw] = {
    "none": _sound,
    "the record in the id": _record_in_the_id,
    "the class in the version": _class_in_the_version,
    "coins from a constant seed": _constant_seed,
    "secrets and coins from a constant seed": _everything_from_a_constant_seed,
    "middle classes and values in the clear": _middle_in_the_clear,
    "a question drawn after looking": _drawn_after_looking,
    "values that are not clipped": _not_clipped,
    "one answer in 2000 in the clear": _rarely_in_the_clear,
    "a generator seeded anew for every question": _reseeded,
    "1.8 times the claim in every answer": _more_than_claimed,
    "value and square of a number": _both_of_a_number,
    "a model that is right": _a_model_that_is_right,
    "wrong answers in the clear": _wrong_in_the_clear,
    "both questions of an evaluation": _both_questions,
    "what is missing in the clear": _missing_in_the_clear,
    "the missing cell of a sign in the clear": _missing_in_the_clear,
    "noise from the id": _noise_from_the_id,
    "a seed of 48 bits": _seed_of_48_bits,
    "two values together in the clear": _two_values_together,
    "values in between in the clear": _values_in_between,
    "numbers in between in the clear": _numbers_in_between,
}


def categories(
    sizes: Sequence[int],
    classes: int = 2,
    epsilon: float = 1.0,
    answers: str = "one",
    discrete: str = "de",
    *,
    missing: bool = False,
) -> str:
    """A campaign with a feature of so many values for each of the sizes; the label is asked as often as one, so that a
    question that is drawn by the class shows.
    """
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": [f"c{number}" for number in range(classes)], "weight": 1},
            "features": [
                {
                    "name": f"f{number}",
                    "kind": "categorical",
                    "missing": missing,
                    "values": [str(value) for value in range(size)],
                }
                for number, size in enumerate(sizes)
            ],
            "privacy": {"epsilon": epsilon, "answers": answers, "discrete": discrete},
        }
    ).document.decode()


def number(*, missing: bool = False) -> str:
    """A campaign with a number, of whose value or square the sign is asked; it may be ``missing``."""
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["c0", "c1"]},
            "features": [{"name": "x", "kind": "continuous", "missing": missing, "low": 0, "high": 10}],
            "privacy": {"epsilon": 1.0, "discrete": "de", "continuous": "sign"},
        }
    ).document.decode()


def scores() -> str:
    """An evaluation of one model."""
    value = json.loads(categories([3, 2], discrete="de"))
    table = {"f0": [[0.6, 0.2], [0.3, 0.3], [0.1, 0.5]], "f1": [[0.8, 0.3], [0.2, 0.7]]}
    features = [{key: f[key] for key in ("name", "kind", "values")} for f in value["features"]]
    told = [{**feature, "likelihood": table[feature["name"]]} for feature in features]
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["c0", "c1"], "prior": [0.45, 0.55]}
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["c0", "c1"]},
            "features": features,
            "privacy": {"epsilon": 1.0},
            "asks": "score",
            "study": "s",
            "evaluation": {"model": {**head, "features": told}},
        }
    ).document.decode()


AROUND: dict[str, tuple[Callable[[], str], str]] = {
    "the record in the id": (lambda: categories([3]), "tells-beside-the-answer"),
    "the class in the version": (lambda: categories([3]), "header-tells"),
    # Of several questions, fresh secrets choose others in every process, and so the number of coins.
    "coins from a constant seed": (lambda: question("de", 6, 1.0), "coins-repeat"),
    "secrets and coins from a constant seed": (lambda: categories([3]), "coins-repeat"),
    "middle classes and values in the clear": (lambda: categories([5], classes=3), "impossible-report"),
    "a question drawn after looking": (lambda: categories([5, 5]), "tells-beside-the-answer"),
    "values that are not clipped": (lambda: question("laplace", 2, 1.0), "impossible-report"),
    "one answer in 2000 in the clear": (lambda: question("oue", 40, 1.0), "loss-above-claim"),
    "a generator seeded anew for every question": (
        lambda: categories([16, 16], epsilon=3.0, answers="all", discrete="oue"),
        "loss-above-claim",
    ),
    "1.8 times the claim in every answer": (
        lambda: categories([8, 8, 8], answers="all", discrete="oue"),
        "answer-above-share",
    ),
    "value and square of a number": (lambda: number(), "loss-above-claim"),
    "a model that is right": (lambda: scores(), "tells-beside-the-answer"),
    "wrong answers in the clear": (lambda: scores(), "impossible-report"),
    "both questions of an evaluation": (lambda: scores(), "loss-above-claim"),
    "what is missing in the clear": (lambda: categories([3], missing=True), "loss-above-claim"),
    "the missing cell of a sign in the clear": (lambda: number(missing=True), "loss-above-claim"),
    "noise from the id": (lambda: question("oue", 8, 1.0), "seed-guessed"),
    "two values together in the clear": (lambda: categories([5, 5, 4]), "loss-above-claim"),
    "values in between in the clear": (lambda: categories([40, 3]), "loss-above-claim"),
    "numbers in between in the clear": (lambda: number(), "loss-above-claim"),
}
"""Flaw, a campaign that it shows in, the code of what the audit finds."""
