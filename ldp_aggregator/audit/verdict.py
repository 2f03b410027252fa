"""The audit itself: ask, observe, bound, and say what was found.

To every kind of evidence belongs its own part of the probability to be wrong about a sound client. Within a kind every
event and every comparison has an equal part of the kind's, whatever their number, and that number is fixed by the
document or by the half of the trials that chooses, never by the one that tests; so the union bound holds, and needs no
independence. Each single part is an exact tail of a binomial law: of the counts of an event (Clopper and Pearson), of
right guesses, of bits of ids, of words that follow a recurrence. A sound client's answers are independent given whose
they are, and its ids are uniform; nothing else is assumed, of the number of trials nothing. What no coin excuses
(lengths, headers, shapes of answers, answers to a device that asks again) has no part: a sound client never breaks it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldp_aggregator.audit import repeats, traffic
from ldp_aggregator.audit.asking import asked_again
from ldp_aggregator.audit.asking.asked_again import Again
from ldp_aggregator.audit.asking.black_box import Answer, Client, Person, Stopwatch, Talk, all_refused, two
from ldp_aggregator.audit.asking.observations import Seen, read_tables, within
from ldp_aggregator.audit.asking.parties import Parties
from ldp_aggregator.audit.asking.people import (
    DRAWN_SHARE,
    WINDOWS,
    Document,
    Lives,
    answers_twice,
    drawn_people,
    people_of,
)
from ldp_aggregator.audit.power import UNSEEN, Floor, floor_of
from ldp_aggregator.audit.repeats import Alike
from ldp_aggregator.audit.searching.comparisons import CHOSEN, Chosen, Claims, search
from ldp_aggregator.audit.searching.events import ALONE, BLOCK, COMPANY, CONFIDENCE, SIDE, WHOLE, Event
from ldp_aggregator.audit.searching.guesses import CLEAR, Guesser, fixed_guesses, games, pair_columns, summed_guesses
from ldp_aggregator.audit.searching.tight_events import stated_loss
from ldp_aggregator.audit.searching.times import ask_times, least_delay, slow_answers
from ldp_aggregator.audit.seeds import public_noise, small_seeds, twisted_ids

LOSS: Final = "loss-above-claim"
SHARE: Final = "answer-above-share"
BESIDE: Final = "tells-beside-the-answer"
BEFORE: Final = "tells-of-others-before"
IMPOSSIBLE: Final = "impossible-report"
RETRY: Final = "retry-differs"
LENGTH: Final = "length-tells"
HEADER: Final = "header-tells"
MALFORMED: Final = "malformed-report"
ID_REPEATS: Final = "id-repeats"
ID_UNEVEN: Final = "id-not-uniform"
COINS: Final = "coins-repeat"
SEED: Final = "seed-guessed"
STUDY: Final = "study-answered-twice"
TWICE: Final = "answers-twice"
SLOW: Final = "time-tells"
UNSEALED: Final = "sent-in-the-clear"
DRAW_REPEATS: Final = "draw-repeats"
DRAW_UNEVEN: Final = "draw-not-uniform"
TOKEN: Final = "wrong-token"  # noqa: S105 - the code of a finding
ERASED: Final = "erase-keeps"
REFUSED: Final = "check-refused"

CHECKS: Final = {
    LOSS: "no event tells any two people apart by more than epsilon",
    IMPOSSIBLE: "no report is possible for one person and impossible for another",
    SHARE: "the answer to each question keeps to that question's epsilon",
    BESIDE: "ids, headers, questions and the number of uploads have one law, whoever the person is",
    BEFORE: "a device's answer does not depend on whom the process served before",
    LENGTH: "an upload's length depends on the questions only",
    HEADER: "so does everything around ids and payloads",
    MALFORMED: "every payload is one that its mechanism gives, every id has 16 bytes",
    RETRY: "a device that is asked again sends the same bytes: in another process, after a kill, with another record",
    ID_REPEATS: "ids of fresh devices, and of one device in two campaigns, never repeat",
    ID_UNEVEN: "ids of fresh devices are uniform",
    COINS: "coins are tossed anew: in every process, for every device and every campaign",
    SEED: "no usual generator gives ids or noise from public bytes, small numbers or the time in seconds",
    STUDY: "a device answers one campaign of a study, also where two ask it at once",
    TWICE: "in a series a device answers once in its life",
    UNSEALED: "what is sealed goes to the relay, and the gateway can open it; nothing goes to the aggregator itself",
    DRAW_REPEATS: "no seal, blinding factor or salt of a token is drawn twice",
    DRAW_UNEVEN: "ephemeral keys, blinded token requests, their factors and salts are uniform",
    TOKEN: "a token is the issuer's, and of the ids of its answer",
    ERASED: "a device that was erased is another one, and keeps nothing of the former one",
    REFUSED: "every check is answered: there is none of which all lines are refused",
    SLOW: "answers take as long for one person as for another, but for a tolerance",
}
"""Subjects of an audit: the code of a finding, and what must hold."""

FIXED: Final = "fixed guesses"
GAMES: Final = "games"
SUM: Final = "sum"
ALIKE: Final = "coins"
LAGS: Final = "coins at every lag"
TRAFFIC: Final = "traffic"
UNEVEN: Final = "uneven ids"
REPEATED: Final = "repeated ids"
TWISTED: Final = "twisted ids"
SEEDED: Final = "seeds that anybody finds"
TIME: Final = "time"

SHARES: Final = {
    FIXED: 0.33,
    GAMES: 0.15,
    SUM: 0.1,
    WHOLE: 0.08,
    BLOCK: 0.05,
    SIDE: 0.05,
    COMPANY: 0.05,
    ALONE: 0.03,
    ALIKE: 0.03,
    LAGS: 0.02,
    TRAFFIC: 0.02,
    UNEVEN: 0.03,
    REPEATED: 0.01,
    TWISTED: 0.01,
    SEEDED: 0.02,
    TIME: 0.02,
}
"""Parts of the whole. Guesses prove the most of a sound client."""

_TRAFFIC_CODES: Final = {
    traffic.CLEAR: UNSEALED,
    traffic.FORM: HEADER,
    traffic.RETRIED: RETRY,
    traffic.REPEATED: DRAW_REPEATS,
    traffic.UNEVEN: DRAW_UNEVEN,
    traffic.TOKEN: TOKEN,
    traffic.ERASED: ERASED,
    traffic.REFUSED: REFUSED,
}

TWINS: Final = 256
"""Fresh devices of either of two people that are the first of both processes."""

_TOLD: Final = 2
"""Findings of one code that are told in full."""


@dataclass(frozen=True)
class Finding:
    """A problem, by a stable code."""

    code: str
    text: str


@dataclass(frozen=True)
class Audit:
    """``lower_bound`` of the true loss holds with a confidence of 99.9 %; ``events`` are sorted by how far their bounds
    come towards their claims, and beyond; ``stated`` is the loss of the document's own probabilities; the last
    ``drawn`` people are those whose records were drawn, who were asked less often.
    """

    claim: float
    stated: float
    trials: int
    people: tuple[Person, ...]
    drawn: int
    uploads: int
    events: tuple[Event, ...]
    findings: tuple[Finding, ...]
    floor: Floor

    @property
    def lower_bound(self) -> float:
        return max([0.0, *(event.bound for event in self.events if event.scope != COMPANY)])

    @property
    def reached(self) -> float:
        """The part of the stated loss that was found."""
        return self.lower_bound / self.stated

    @property
    def passed(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "claim": self.claim,
            "stated_loss": self.stated,
            "lower_bound": self.lower_bound,
            "reached": self.reached,
            "confidence": CONFIDENCE,
            "trials": self.trials,
            "people": len(self.people),
            "drawn": self.drawn,
            "uploads": self.uploads,
            "floor": self.floor.to_json(),
            "unseen": list(UNSEEN),
            "findings": [{"code": finding.code, "text": finding.text} for finding in self.findings],
            "events": [event.to_json() for event in self.events],
        }


def audit(
    document: str,
    client: Client,
    trials: int,
    *,
    at_once: bool = False,
    wrong: float = 1 - CONFIDENCE,
    rng: np.random.Generator | None = None,
    stopwatch: Stopwatch | None = None,
    talk: Talk | None = None,
) -> Audit:
    """Ask ``client`` for ``trials`` uploads of every person, and compare what it tells with what the document claims.

    Sound for any client: a correct one fails with probability at most ``wrong``. How much is found depends on the
    trials. ``at_once``: two lives of the client may be asked at the same time. ``rng`` tosses the audit's own coins, by
    which it draws people and picks whose uploads it guesses; seeded, an audit of a seeded client repeats itself.
    ``stopwatch`` says how long answers take; without one nobody looks at time. ``talk`` begins dialogues with a client,
    without which nobody looks at its traffic: what a relay and an issuer see, later sends, erasure.
    """
    rng = np.random.default_rng() if rng is None else rng
    parties = Parties(document)
    document, client = parties.document, parties.client(client)
    value: Document = json.loads(document)
    claim = float(value["privacy"]["epsilon"])
    fixed, lives = people_of(value, rng), Lives.of(document)
    ordinary = fixed
    if lives is not None:
        document, value, client, fixed = lives.document, lives.value, lives.client(client), lives.people(fixed)
    people = (*fixed, *drawn_people(value, fixed, rng))
    counts = [trials] * len(fixed) + [-(-trials // DRAWN_SHARE)] * (len(people) - len(fixed))
    seen, twins = _ask(document, client, people, counts, at_once)
    again = asked_again.ask_again(document, client, fixed, at_once)
    studied = asked_again.answers_to_one_study(document, client, fixed, at_once)
    alphas = {kind: share * wrong for kind, share in SHARES.items()}

    guesser = Guesser(value, people, seen, len(fixed))
    alone = asked_again.ask_alone(document, client, guesser, rng, at_once)
    sent = None if talk is None else traffic.ask_traffic(parties, talk, ordinary, trials, at_once)
    times = None if stopwatch is None else ask_times(document, stopwatch, people, rng)
    guessed = _bounded(fixed_guesses(guesser, rng), alphas[FIXED])
    played = _bounded(games(guesser, rng), alphas[GAMES])
    summed = _bounded(summed_guesses(guesser, rng), alphas[SUM])
    chosen, claims = Chosen(), Claims(claim, lambda number: guesser.claim(BLOCK, number))
    search(people, seen, claims, chosen)
    pair_columns(guesser, chosen)
    found = [_bounded(chosen.of(scope), alphas[scope]) for scope in (WHOLE, BLOCK, SIDE, COMPANY)]
    found.append(_bounded(asked_again.alone_guesses(guesser, alone), alphas[ALONE]))
    noticed, of_traffic = ([], []) if sent is None else traffic.findings(parties, sent, claims, alphas[TRAFFIC])
    bounded = [pair for of_kind in (guessed, played, summed, *found) for pair in of_kind]
    events = sorted((*(event for event, _ in bounded), *of_traffic), key=lambda event: event.claim - event.bound)
    further = [of for of in (*twins, again.first, again.other_campaign, alone.answers) if any(of)]
    ids = [one for tables in (seen.tables, *map(read_tables, further)) for one in repeats.ids_of(tables)]
    other = next((number for number, person in enumerate(fixed) if person.label != fixed[0].label), 0)
    twice = None if lives is None else answers_twice(again.first)
    findings = [
        *_loss_findings(events),
        *(Finding(LENGTH, text) for text in repeats.different_lengths(seen)),
        *(Finding(HEADER, text) for text in repeats.different_headers(seen, 0 if lives is None else WINDOWS)),
        *(Finding(MALFORMED, text) for text in repeats.malformed_answers(value, seen)),
        *(Finding(MALFORMED, text) for text in repeats.malformed_ids(seen)),
        *(Finding(RETRY, text) for text in again.differences()),
        *_findings_of(ID_REPEATS, repeats.repeated_ids(ids, alphas[REPEATED])),
        *_findings_of(ID_UNEVEN, repeats.uneven_ids(seen, alphas[UNEVEN])),
        *_findings_of(COINS, twisted_ids(seen, alphas[TWISTED])),
        *_coin_findings(value, seen, twins, again, alphas[ALIKE]),
        *_lag_findings(value, seen, alphas[LAGS]),
        *_findings_of(STUDY, studied.twice),
        *_findings_of(TWICE, twice),
        *_findings_of(SLOW, None if times is None else slow_answers(times, alphas[TIME])),
        *_findings_of(SEED, public_noise(document, seen, sorted({0, other}), len(twins[0]), alphas[SEEDED] / 2)),
        *_findings_of(SEED, small_seeds(document, ids, alphas[SEEDED] / 2)),
        *(Finding(_TRAFFIC_CODES[rule], text) for rule, text in noticed),
        *(Finding(REFUSED, text) for text in again.refusals()),
        *_findings_of(REFUSED, studied.refused),
        *_findings_of(REFUSED, all_refused("devices alone in their process", alone.answers)),
    ]
    floor = floor_of(
        claim,
        [(event, alpha) for event, alpha in guessed if event.scope == WHOLE],
        [(event, alpha) for event, alpha in played if event.name == CLEAR],
        seen.half(0, True),
        len(people),
        alphas[WHOLE] / CHOSEN,
        None if times is None else least_delay(times, alphas[TIME]),
    )
    result = tuple(events), tuple(_first_of_each(findings)), floor
    return Audit(claim, _stated(value), trials, people, len(people) - len(fixed), len(seen.person), *result)


def _ask(
    document: str, client: Client, people: Sequence[Person], trials: Sequence[int], at_once: bool
) -> tuple[Seen, tuple[list[Answer], list[Answer]]]:
    """Ask two processes in opposite orders, each for half of ``trials``, after the same twins in the same order."""
    count = min(TWINS, trials[0])
    twins = [person for person in people[:2] for _ in range(count)]
    halves = [of - of // 2 for of in trials], [of // 2 for of in trials]
    orders = list(range(len(people))), list(range(len(people)))[::-1]

    def life(process: int) -> list[Answer]:
        lines = [people[number] for number in orders[process] for _ in range(halves[process][number])]
        answers = client(document, [*twins, *lines], None)
        if len(answers) != len(twins) + len(lines):
            raise ChildProcessError(f"the client answered {len(answers)} of {len(twins) + len(lines)} lines")
        return answers

    lives = two(life, at_once)
    answers = [answer for of in lives for answer in of[len(twins) :]]
    person = np.concatenate([np.repeat(of, [halves[process][n] for n in of]) for process, of in enumerate(orders)])
    process = np.repeat([0, 1], [sum(half) for half in halves])
    tables = read_tables(answers, chooses=within(person, len(people)) % 2 == 0)
    seen = Seen(len(people), person, process, tables)
    return seen, (lives[0][: len(twins)], lives[1][: len(twins)])


def _bounded(events: Iterator[Event] | Sequence[Event], alpha: float) -> list[tuple[Event, float]]:
    """The events with their bounds, and the probability at which each may be wrong: ``alpha`` in all."""
    listed = list(events)
    return [(event.bounded(alpha / len(listed)), alpha / len(listed)) for event in listed]


def _stated(document: Document) -> float:
    """The worst of the questions that a device may answer; with ``all``, the sum over the groups."""
    groups: dict[int, float] = {}
    for number, question in enumerate(document["questions"]):
        group = question.get("group", number)
        groups[group] = max(groups.get(group, 0.0), stated_loss(question))
    return sum(groups.values()) if document["privacy"].get("answers") == "all" else max(groups.values())


def _loss_findings(events: Sequence[Event]) -> Iterator[Finding]:
    codes = {WHOLE: LOSS, BLOCK: SHARE, SIDE: BESIDE, COMPANY: BEFORE, ALONE: LOSS}
    for event in events:
        if event.excessive:
            never = not event.others and event.scope in (WHOLE, BLOCK)
            code = IMPOSSIBLE if never else codes[event.scope]
            yield Finding(
                code, f"{event}; the loss is at least {event.bound:.4g}, above the {event.claim:g} of the {event.scope}"
            )


def _findings_of(code: str, text: str | None) -> list[Finding]:
    return [] if text is None else [Finding(code, text)]


def _coin_findings(
    document: Document, seen: Seen, twins: tuple[list[Answer], list[Answer]], again: Again, alpha: float
) -> Iterator[Finding]:
    alikes: list[Alike] = []
    for person in (0, 1):
        usual = repeats.usual_matches(seen, person)
        count = len(twins[0]) // 2
        ours = [answers[person * count : (person + 1) * count] for answers in twins]
        if all(any(answers) for answers in ours):
            alikes += repeats.coins_between("the same list in two processes", ours[0], ours[1], usual)
        devices = [answers[person : asked_again.DEVICES : 2] for answers in (again.first, again.other_campaign)]
        if all(any(answers) for answers in devices):
            alikes += repeats.coins_between("one device in two campaigns", devices[0], devices[1], usual)
    # As many as the document allows, so that the number does not depend on what was seen.
    most = max(len(alikes), 2 * repeats.PLACES * (2 + len(document["questions"])))
    for alike in alikes:
        if alike.excessive(alpha / most):
            yield Finding(COINS, str(alike))


def _lag_findings(document: Document, seen: Seen, alpha: float) -> Iterator[Finding]:
    """Coins that repeat at any lag, of whole uploads and of each question."""
    for person in (0, 1):
        places = 2 * (2 + len(document["questions"])) * max(1, repeats.lags_of(seen, person))
        for alike in repeats.coins_within(seen, person):
            if alike.excessive(alpha / places):
                yield Finding(COINS, str(alike))


def _first_of_each(findings: Sequence[Finding]) -> Iterator[Finding]:
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.code] = counts.get(finding.code, 0) + 1
        if counts[finding.code] <= _TOLD:
            yield finding
    for code, times in counts.items():
        if times > _TOLD:
            yield Finding(code, f"and {times - _TOLD} further findings of this kind")


_SHOWN: Final = 8


def markdown(result: Audit, document: str, client: str) -> str:
    """A conformance report in Markdown. ``client`` says what was audited, in the operator's words."""
    value: dict[str, Any] = json.loads(document)
    codes = {finding.code for finding in result.findings}
    verdict = "found nothing" if result.passed else "**failed**: " + ", ".join(sorted(codes))
    mechanisms = sorted({question["mechanism"] for question in value["questions"]})
    lines = [
        "# Audit of a client",
        "",
        f"The audit {verdict}.",
        "",
        "| | |",
        "|---|---|",
        f"| client | `{_cell(client)}` |",
        f"| campaign | {_cell(value['title'])}: {len(value['questions'])} questions, {', '.join(mechanisms)} |",
        f"| answers | {value['privacy'].get('answers', 'one')} |",
        f"| claim | epsilon {result.claim:g} |",
        f"| loss of the document's own probabilities | {result.stated:.4g} |",
        f"| loss at least (confidence {100 * CONFIDENCE:g} %) | {result.lower_bound:.4g}, "
        f"{100 * result.reached:.0f} % of the above |",
        f"| people | {len(result.people)}, of whom a lot drew {result.drawn} |",
        f"| uploads | {result.uploads}; {result.trials} of each person, an eighth of it of those drawn |",
        "",
        "## What was checked",
        "",
        "| code | what must hold | |",
        "|---|---|---|",
        *(
            f"| `{code}` | {promise} | {'**broken**' if code in codes else 'held'} |"
            for code, promise in CHECKS.items()
        ),
        "",
    ]
    if result.findings:
        lines += ["## What was found", "", *(f"* `{f.code}`: {_cell(f.text)}" for f in result.findings), ""]
    lines += [
        "## The most telling events",
        "",
        "| loss at least | allowed | of the | event | seen |",
        "|---|---|---|---|---|",
        *(
            f"| {e.bound:.4f} | {e.claim:.4g} | {e.scope} | {_cell(e.name)} | "
            f"{e.ones} of {e.one_trials}, {e.others} of {e.other_trials} |"
            for e in result.events[:_SHOWN]
            if math.isfinite(e.bound)
        ),
        "",
        "## What could have been found, and what could not",
        "",
        *(f"* {text}" for text in result.floor.sentences()),
        "",
        "No audit of this kind sees:",
        "",
        *(f"* {text}" for text in UNSEEN),
        "",
        "An audit proves leaks, never their absence.",
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
