"""Clients to audit whose mechanisms are right and who leak around them: in ids, headers, coins, and for some people."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgpack
from mutants import Remembering, SeededCoins, question
from mutants_joint import JOINT_FLAWS

from ldp_aggregator.audit import Answer, Person
from ldp_client import perturb
from ldp_client.answering import draw_questions, item_of
from protocols import Campaign, Report, encode_upload
from protocols.encoding import encode

Flaw = Callable[[Campaign, Person, "Around"], Answer]


class Around:
    """The real perturbation with a flaw around it; a seed for every process, and a memory for devices."""

    def __init__(self, flaw: str, seed: int = 7) -> None:
        self._flaw = FLAWS[flaw]
        self.random = random.Random(seed)
        self.coins = SeededCoins(seed)
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


def _kind_of_bit_by_class(campaign: Campaign, person: Person, client: Around) -> Answer:
    """One class draws again, once, where it would answer an xor, "because that holds the class"."""
    reports = client.reports(campaign, person)
    kind = campaign.questions[reports[0].question].kind
    if kind == "xor" and person.label == campaign.label.classes[0]:
        reports = client.reports(campaign, person)
    return (encode_upload(reports),)


def _both_bits(campaign: Campaign, person: Person, client: Around) -> Answer:
    """Who draws one bit of a feature answers the other, too, with the whole of epsilon each."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    others = [q for q in campaign.groups[asked.group] if q.index != asked.index]
    reports = [report]
    for other in others:
        item = encode(campaign, other, person.record, campaign.label.classes.index(person.label), client.coins)
        reports.append(Report(other.index, client.random.randbytes(16), other.perturb(item, client.coins)))
    return (encode_upload(reports),)


def _equal_bits_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """An xor of 0 is taken for "no answer" and not perturbed."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    if asked.kind != "xor":
        return (encode_upload([report]),)
    item = encode(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    payload = report.payload if item else bytes(1)
    return (encode_upload([Report(report.question, report.id, payload)]),)


def _a_candidate_that_is_right(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A device whose candidate is wrong draws again, once, "so that nobody is offended"."""
    secret = client.random.randbytes(32)
    (asked,) = draw_questions(campaign, secret)
    if not item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins):
        secret = client.random.randbytes(32)
    return (encode_upload(perturb(campaign, person.record, person.label, secret=secret, coins=client.coins)),)


def _wrong_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A vote of 0 is taken for "no answer" and not perturbed."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    vote = item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    return (encode_upload([Report(report.question, report.id, report.payload if vote else bytes(1))]),)


def _votes_on_all(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A device votes on every candidate, with the whole of epsilon each."""
    label = campaign.label.classes.index(person.label)
    votes = [
        asked.perturb(item_of(campaign, asked, person.record, label, client.coins), client.coins)
        for asked in campaign.questions
    ]
    return (encode_upload([Report(n, client.random.randbytes(16), vote) for n, vote in enumerate(votes)]),)


def _missing_in_the_clear(campaign: Campaign, person: Person, client: Around) -> Answer:
    """A missing value is taken for "no answer" and its cell not perturbed."""
    (report,) = client.reports(campaign, person)
    asked = campaign.questions[report.question]
    item = item_of(campaign, asked, person.record, campaign.label.classes.index(person.label), client.coins)
    missing = isinstance(item, int) and asked.kind == "pair" and item >= asked.domain_size - len(campaign.label.classes)
    return (encode_upload([Report(report.question, report.id, bytes([item]) if missing else report.payload)]),)


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
    "the kind of bit by the class": _kind_of_bit_by_class,
    "both bits of a feature": _both_bits,
    "equal bits in the clear": _equal_bits_in_the_clear,
    **JOINT_FLAWS,
    "a candidate that is right": _a_candidate_that_is_right,
    "wrong votes in the clear": _wrong_in_the_clear,
    "votes on all candidates": _votes_on_all,
    "what is missing in the clear": _missing_in_the_clear,
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


def triple() -> str:
    """A campaign with two features of two values, asked about at once."""
    return categories([2, 2], epsilon=3.0, discrete="auto")


def number(epsilon: float = 3.0, *, missing: bool = False) -> str:
    """A campaign with a number, asked about by the bits of value and square at once; it may be ``missing``."""
    value = json.loads(categories([2]))
    return Campaign.compile(
        {
            **{key: value[key] for key in ("version", "title", "label")},
            "features": [{"name": "x", "kind": "continuous", "missing": missing, "low": 0, "high": 10}],
            "privacy": {"epsilon": epsilon, "joint": True},
        }
    ).document.decode()


def scores() -> str:
    """An evaluation round of three candidates."""
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
            "candidates": [
                {"name": name, "model": {**head, "features": used}}
                for name, used in (("both", told), ("one", told[:1]), ("prior", []))
            ],
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
    "the kind of bit by the class": (lambda: categories([2], discrete="auto"), "tells-beside-the-answer"),
    "both bits of a feature": (lambda: categories([2], discrete="auto"), "loss-above-claim"),
    "equal bits in the clear": (lambda: categories([2], discrete="auto"), "loss-above-claim"),
    "the parts of a triple for themselves": (lambda: triple(), "loss-above-claim"),
    "the first cell of a triple in the clear": (lambda: triple(), "loss-above-claim"),
    "the class of signs in the clear": (lambda: number(), "loss-above-claim"),
    "the missing cell of signs in the clear": (lambda: number(missing=True), "loss-above-claim"),
    "the missing share of signs told twice": (lambda: number(2.5, missing=True), "loss-above-claim"),
    "a triple drawn by the class": (lambda: triple(), "tells-beside-the-answer"),
    "a candidate that is right": (lambda: scores(), "tells-beside-the-answer"),
    "wrong votes in the clear": (lambda: scores(), "impossible-report"),
    "votes on all candidates": (lambda: scores(), "loss-above-claim"),
    "what is missing in the clear": (lambda: categories([3], missing=True), "loss-above-claim"),
}
"""Flaw, a campaign that it shows in, the code of what the audit finds."""
