"""Words for people: the question, an answer's claim, the truth of a record, and a campaign's promise.

All of it is a function of the campaign's document, the same to the letter in every client: protocols/vectors/words.json
holds them to it. A probability in words is a whole number of hundredths, halves up; a number has six digits, as C's
``%g`` writes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

from ldp_protocols.document.questions import JOINT, LABEL, MOMENT, PRODUCT, RIGHT, SCORE, SIGN, SQUARE, VALUE, signs_of

if TYPE_CHECKING:
    from ldp_protocols import Campaign, Question

_MOST_NAMED: Final = 3
_ESCAPED: Final = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
_UNITS: Final = 10_000
"""An epsilon has four decimals."""

_PEOPLE: Final = 100


@dataclass(frozen=True)
class Sentence:
    """Text of an app in a form that it translates: the ``key``'s own words in another language take the same
    ``parameters``, as ``template``, the English ones, does by ``{name}``. ``str()`` is English.
    """

    key: str
    parameters: Mapping[str, int | str]
    template: str

    def __str__(self) -> str:
        return self.template.format(**self.parameters)


@dataclass(frozen=True)
class Explanation:
    """Two ``sentences`` for the person who is asked, one more for each of ``operator``, ``contact``, ``privacy_url``
    and ``keep_days`` that the campaign has, and a paragraph for the app's privacy ``policy``.
    """

    sentences: tuple[Sentence, ...]
    policy: Sentence

    def __str__(self) -> str:
        return " ".join(map(str, self.sentences))


ANSWERS: Final = (
    "This device answers {answers} of {questions} questions about {label}, once, and changes what it says at random "
    "before anything leaves it: the privacy loss is at most epsilon {epsilon}."
)
HIDDEN: Final = (
    "Where {people} of many people with your answer would say what your device says, at least {others} of as many "
    "people with any other answer would say it, too."
)
BARE: Final = (
    "Where {people} of many people with your answer would say what your device says, fewer than 1 of as many people "
    "with some other answer may say it, too: the noise hides little."
)
_POLICY: Final = (
    'If you agree, this app takes part once in "{title}". Your device answers {answers} of {questions} questions about '
    "{label}, drawn by lot, changes what it says at random (local differential privacy with epsilon {epsilon}) and "
    "sends that to {url}, WAY. What is sent may be true of you or not, and nobody can tell for certain. It carries a "
    "random number, which tells it from others, no name and no identifier of you or the device. You may withdraw at "
    "any time: what has not left is deleted."
)
IN_A_CROWD: Final = (
    "This device answers {answers} of {questions} questions about {label}, once, with noise, in a sealed envelope."
)
CROWD: Final = (
    "Whoever opens envelopes does not know whose they are, and {devices} come at once: at most {crowd_epsilon} (odds "
    "{crowd_odds} to 1) is learned about you. If the two companies broke their promise to keep apart, it would be at "
    "most {epsilon} about that one answer (odds {odds} to 1), and nothing about the others."
)
DIRECT: Final = _POLICY.replace("WAY", "which sees the network address that it comes from, as with any request")
SEALED: Final = _POLICY.replace(
    "WAY", "sealed and by a relay, which sees no answer, while the server sees no address, unless the two work together"
)
MIXED: Final = SEALED + (
    " The relay forwards answers {devices} at a time, mixed: of what the server sees at most epsilon {crowd_epsilon} "
    "(delta {crowd_delta}) is about you."
)


FOR_PEOPLE: Final = (
    ("operator", "{operator} is responsible for this."),
    ("contact", "Questions and complaints go to {contact}."),
    ("privacy_url", "The privacy notice: {privacy_url}"),
    ("keep_days", "Days after its end until nothing is kept by which your answer could be found: at most {keep_days}."),
)
"""Members of a document that its author may leave out, with the sentence of each."""


def explained(campaign: Campaign, url: str) -> Explanation:
    """Tell what a campaign's noise means, in its own numbers; ``url`` is the aggregator that answers are sent to.

    A report that somebody sends with probability P, anybody else sends with probability P exp(-epsilon) or more. In a
    crowd the odds that somebody who looks on gives to one thing about a person grow by exp(epsilon) at most.
    """
    values: dict[str, int | str] = {
        "answers": len(campaign.pools),
        "questions": len(campaign.questions),
        "label": plain(campaign.label.name or campaign.title),
        "epsilon": written(campaign.realised_epsilon),
    }
    others = math.floor(_PEOPLE * math.exp(-campaign.realised_epsilon))
    hidden: dict[str, int | str] = {"people": _PEOPLE, "others": others}
    noise = Sentence("hidden", hidden, HIDDEN) if others else Sentence("bare", {"people": _PEOPLE}, BARE)
    more = values | {"title": plain(campaign.title), "url": url}
    if (crowd := campaign.privacy.crowd) is not None:
        values |= {"odds": _odds(campaign.realised_epsilon), "crowd_odds": _odds(crowd.epsilon)}
        mixed = {"devices": f"{crowd.devices:,}", "crowd_epsilon": written(crowd.epsilon)}
        first = Sentence("crowd-answers", values, IN_A_CROWD)
        policy = Sentence("policy-crowd", more | mixed | {"crowd_delta": f"{crowd.delta:g}"}, MIXED)
        return Explanation((first, Sentence("crowd", values | mixed, CROWD), *_for_people(campaign)), policy)
    policy = Sentence("policy", more, DIRECT) if campaign.gateway is None else Sentence("policy-sealed", more, SEALED)
    return Explanation((Sentence("answers", values, ANSWERS), noise, *_for_people(campaign)), policy)


def _for_people(campaign: Campaign) -> Iterator[Sentence]:
    for name, template in FOR_PEOPLE:
        if (value := getattr(campaign, name)) is not None:
            yield Sentence(name, {name: plain(value) if isinstance(value, str) else value}, template)


def asked(campaign: Campaign, question: Question) -> str:
    """Tell what a question is about."""
    label = campaign.label.name
    if question.kind == RIGHT:
        return f"whether the model is right about {label}"
    if question.kind == SCORE:
        return f"what the model says of {label}, and {label}"
    if question.kind == LABEL:
        return label
    if question.kind in (VALUE, SQUARE):
        return " and ".join(filter(None, (f"{question.feature} ({question.kind})", label)))
    return " and ".join(filter(None, (question.feature, question.other or label)))


def said(campaign: Campaign, question: Question, payload: bytes) -> str:
    """Tell what a payload claims; it is noise as well as truth, and nobody can tell which."""
    mechanism: Any = question.mechanism
    if not hasattr(mechanism, "support"):
        if not hasattr(mechanism, "p"):
            return f"{question.domain_size} numbers, of which noise is the most"
        claim = end_of(campaign, question, int.from_bytes(payload[:-1], "little"), payload[-1])
        return f"{claim} (what lies there says so with probability {_hundredths(mechanism.p)})"
    cells = sorted(mechanism.support(payload))
    named = "; ".join(cell_of(campaign, question, cell) for cell in cells[:_MOST_NAMED])
    chance = f"with probability {_hundredths(mechanism.p)}"
    if not any(mechanism.joint_support):  # It never marks two, so that the one it marks is its answer.
        return f"{named} (true {chance})"
    more = "; ..." if len(cells) > _MOST_NAMED else ""
    marked = f"{len(cells)} of {question.domain_size} answers are marked{': ' if cells else ''}{named}{more}"
    return f"{marked} (the true one is among them {chance})"


def cell_of(campaign: Campaign, question: Question, cell: int) -> str:
    """Name a cell of a question whose answers are cells."""
    classes = campaign.label.classes
    if question.kind == JOINT:
        first, other = (campaign.feature(name).cell_names for name in (question.feature, question.other))
        return ", ".join((first[cell // len(other)], other[cell % len(other)]))
    if question.kind == LABEL:
        return classes[cell]
    if question.kind == RIGHT:
        return ("wrong", "right")[cell]
    if question.encoding == SIGN:
        return end_of(campaign, question, *divmod(cell, signs_of(question, len(classes))))
    value, class_index = divmod(cell, len(classes))
    if campaign.evaluation is not None:
        about = "the model" if campaign.evaluation.edges is None else "log odds"
        return f"{about} {campaign.evaluation.names[value]}, {classes[class_index]}"
    return ", ".join(filter(None, (campaign.feature(question.feature).cell_names[value], classes[class_index])))


def end_of(campaign: Campaign, question: Question, cell: int, end: int) -> str:
    """Name an end of the range (0 the lower, 1 the upper), or that there is no value (2), with the class of a cell."""
    return at(campaign, question, cell, ("the lower end", "the upper end", "missing")[end])


def at(campaign: Campaign, question: Question, cell: int, words: str) -> str:
    """Add the class of a cell; a product is of none, as is everything without a label."""
    return ", ".join(filter(None, (words, "" if question.kind == PRODUCT else campaign.label.classes[cell])))


def truth_of(campaign: Campaign, question: Question, class_index: int, numbers: Sequence[float | None]) -> str:
    """Name the truth behind a question about moments: its feature's number, or those of a product's two."""
    if None in numbers:
        return at(campaign, question, class_index, "missing")
    words = " times ".join(f"{number:g}" for number in numbers)
    return at(campaign, question, class_index, f"{words} squared" if question.kind == SQUARE else words)


def added(campaign: Campaign, question: Question, cell: int, value: float) -> str:
    """Tell what a noisy vector says: its one number that is not 0, and the scale of the noise that is added to each."""
    mechanism: Any = question.mechanism
    of_classes = question.encoding == MOMENT
    named = campaign.label.classes[cell] if of_classes else cell_of(campaign, question, cell)
    parts = [f"{value:g} at {named}" if named and question.kind != PRODUCT else f"{value:g}"]
    if question.domain_size > 1:
        parts.append(f"0 at {question.domain_size - 1} others")
    return "; ".join([*parts, f"noise of scale {float(mechanism.scale / 2**mechanism.grid):g} is added to each"])


def plain(text: str) -> str:
    """A server's text on one line: cursor moves, line breaks, writing directions and every space but the usual one are
    ``\\u`` and four digits for each of UTF-16's units; a quotation mark is a single one.
    """
    from unicodedata import category

    return "".join(_escaped(one) if category(one) in _ESCAPED and one != " " else one for one in text).replace('"', "'")


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def written(epsilon: float) -> str:
    """The shortest decimals that mean this double, rounded up to four."""
    units = math.ceil(Fraction(repr(float(epsilon))) * _UNITS)
    return f"{units // _UNITS}.{units % _UNITS:04}".rstrip("0").rstrip(".")


def _odds(epsilon: float) -> str:
    """exp(epsilon), to a tenth below 10 and to a whole number from there on."""
    odds = math.exp(epsilon)
    return f"{math.floor(10 * odds + 0.5) / 10:g}" if odds < 9.95 else f"{math.floor(odds + 0.5):,}"


def _hundredths(probability: Fraction) -> str:
    hundredths = math.floor(100 * probability + Fraction(1, 2))
    return f"{hundredths // 100}.{hundredths % 100:02}"
