"""Verdicts on a campaign: one table of rules for each question, for pages and commands alike.

A verdict asks somebody to act, is worth watching, or is fine; a fact or an assumption is a note, and has no colour. The
first rule of a table that holds decides.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from ldp_aggregator.service.words import about, bits, counted, interval, many, percent, whole_percent
from ldp_aggregator.store.contract import Life, PublishedModel
from ldp_protocols import Campaign

ACT: Final = "act"
WATCH: Final = "watch"
FINE: Final = "fine"
NOTE: Final = "note"
MOODS: Final = (ACT, WATCH, FINE, NOTE)
"""The most urgent first."""

WIDEST: Final = 0.25
"""Half of a 95 % interval beyond which a share is not shown: 25 percentage points."""
REFUSED_SHARE: Final = 0.01
"""Refusals, or contradictions, beyond this share of what was counted ask for more than a look."""
LIARS_SHARE: Final = 0.01
"""One device in a hundred is assumed to lie, where a page says what that would do."""
CLUES: Final = ((0.15, "strong clue"), (0.05, "clear clue"), (0.01, "weak clue"), (-math.inf, "no clue so far"))
"""The share of the uncertainty about the class that a feature removes, from which on it is called so."""


@dataclass(frozen=True)
class Verdict:
    """A ``mood`` of :data:`MOODS`, a few words, and a sentence or two behind them."""

    mood: str
    text: str
    says: str = ""
    asks: str = ""
    """The text of a list, where it is another one."""


@dataclass(frozen=True)
class Guess:
    """The most frequent class, and its share with a 95 % interval: what always guessing it is right for."""

    name: str
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class Measured:
    """An accuracy with its 95 % interval, as so many ``devices`` of a ``round`` told it."""

    value: float
    low: float
    high: float
    devices: int
    round: str


def measured_of(evaluated: Mapping[str, Any], *, as_trained: bool = False) -> Measured | None:
    """The accuracy in the figures of an evaluation round, of the model as it is published with them or ``as_trained``;
    None where too few have answered.
    """
    figure = _object(evaluated.get("as_trained" if as_trained else "accuracy"))
    value, low, high = (_number(figure.get(end)) for end in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return None
    devices, of_round = _number(evaluated.get("devices")), _text(evaluated.get("campaign"))
    return Measured(value, low, high, int(devices or 0), of_round or "")


@dataclass(frozen=True)
class ModelRow:
    """A published model as its document tells of it; what a document does not carry is None."""

    version: int
    created: datetime
    reports: int | None
    epsilon: float | None
    published_epsilon: float | None
    published_delta: float | None
    measured: Measured | None
    round: str | None
    """The id of the evaluation round, also where too few have answered it."""
    majority: float | None = None
    """Share of people whose class is the most frequent one, as far as the reports tell."""
    best: tuple[str, float, float] | None = None
    """The most telling feature, and from where to where it alone is expected to be right."""
    independent: float | None = None
    """The accuracy to expect if features are independent given the class."""
    tells_something: bool | None = None
    fitted: Mapping[str, Any] = field(default_factory=dict)
    """The document without what training says of itself: two models that are equal here are one."""


def model_row(model: PublishedModel) -> ModelRow:
    """Read what the model's document says; it may be of a version that says less."""
    try:
        document = _object(json.loads(model.document))
    except ValueError:
        document = {}
    training = _object(document.get("training"))
    published, evaluation = _object(training.get("published")), _object(training.get("evaluated"))
    reports = training.get("reports")
    expected = _object(training.get("expected"))
    best, tells = _object(expected.get("best_feature")), expected.get("tells_something")
    feature, low, high = _text(best.get("feature")), _number(best.get("low")), _number(best.get("high"))
    return ModelRow(
        model.version,
        model.created,
        reports if isinstance(reports, int) else None,
        _number(_object(training.get("guarantee")).get("epsilon")),
        _number(published.get("epsilon")),
        _number(published.get("delta")),
        measured_of(evaluation),
        _text(evaluation.get("campaign")),
        _number(expected.get("majority")),
        None if feature is None or low is None or high is None else (feature, low, high),
        _number(expected.get("independent")),
        tells if isinstance(tells, bool) else None,
        without_training(document),
    )


def without_training(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a model's document that classifies."""
    return {name: value for name, value in document.items() if name != "training"}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def guess_of(classes: Mapping[str, Mapping[str, Any]]) -> Guess | None:
    """The most frequent class among figures by class; None where they are not known."""
    measured = {name: one for name, one in classes.items() if one["value"] is not None}
    if not measured:
        return None
    name = max(measured, key=lambda one: measured[one]["value"])
    return Guess(name, measured[name]["value"], measured[name]["low"], measured[name]["high"])


@dataclass(frozen=True)
class Facts:
    """A campaign's facts. ``stopped`` says why nothing is counted; ``width`` is half the widest 95 % interval of a
    share, ``more`` how many devices are missing until that is :data:`WIDEST`; ``top`` the most telling feature, with
    bits and the share of the uncertainty that it removes; ``moved`` a class and by how much :data:`LIARS_SHARE` of the
    devices could have moved it. ``measured`` is of the latest model, ``earlier`` of one before it.
    """

    status: str
    reports: int = 0
    people: str = "device"
    federated: bool = False
    has_model: bool = True
    """Devices answer for a model of a label, or about one in a round that measures it."""
    is_round: bool = False
    shares: int = 0
    """Features whose shares are asked, of a campaign without a label."""
    stopped: str = ""
    kept: tuple[int, int] | None = None
    """Days since the end, and days promised, where single answers are kept for longer than the document promises."""
    refused: int = 0
    conflicts: int = 0
    """Answers under an id that was counted with another one."""
    width: float = math.inf
    more: int | None = None
    top: tuple[str, float, float] | None = None
    told: tuple[str, str] | None = None
    """The news of a series' last finished window, or of an evaluation round: in a few words, and in a sentence."""
    moved: tuple[str, float] | None = None
    model: ModelRow | None = None
    measured: Measured | None = None
    earlier: Measured | None = None
    guess: Guess | None = None

    @property
    def is_told(self) -> bool:
        """True where enough devices have answered that shares are known at all."""
        return self.reports > 0 and self.width <= WIDEST


_Known = TypeVar("_Known")


@dataclass(frozen=True)
class Rule(Generic[_Known]):
    """A row of a table: its verdict where it ``holds``."""

    mood: str
    holds: Callable[[_Known], object]
    text: str | Callable[[_Known], str]
    says: str | Callable[[_Known], str]
    asks: str = ""

    def verdict(self, facts: _Known) -> Verdict:
        text, says = (one if isinstance(one, str) else one(facts) for one in (self.text, self.says))
        return Verdict(self.mood, text, says, self.asks)


def decide(rules: Sequence[Rule[_Known]], facts: _Known) -> Verdict:
    """The verdict of the first rule that holds; the last one of a table always does."""
    return next(rule for rule in rules if rule.holds(facts)).verdict(facts)


def _always(_facts: Facts) -> bool:
    return True


def _more(facts: Facts) -> str:
    people = "people" if facts.people == "person" else f"{facts.people}s"
    return f"{about(facts.more).capitalize()} more {people} are needed" if facts.more else f"More {people} are needed"


def _counted(facts: Facts) -> str:
    precision = f"the least certain share is known to ±\u00a0{100 * facts.width:.1f} points" if facts.is_told else ""
    answered = f"{counted(facts.reports, 'answer')} counted"
    return f"{answered}; {precision}." if precision else f"{answered}. {_more(facts)} to say anything."


def kept_too_long(campaign: Campaign, life: Life, now: datetime, *, archived: bool) -> tuple[int, int] | None:
    """Days since a campaign's end, and days that its document promises to keep what single answers could be found by;
    None while the promise holds. Sealing drops the ids, not the ``archived`` answers.
    """
    ends = [one for one in (life.closed, life.closes) if one is not None]
    if campaign.keep_days is None or not life.is_over(now) or (life.sealed is not None and not archived):
        return None
    days = (now - min(ends)).days
    return (days, campaign.keep_days) if days > campaign.keep_days else None


def kept_words(overdue: tuple[int, int]) -> str:
    """The sentence on a promise that is not kept."""
    days, promised = overdue
    return (
        f"It ended {counted(days, 'day')} ago, {days - promised:,} more than the {counted(promised, 'day')} after "
        "which its document promises that no single answer can be found. Seal it; if there is an archive, delete it."
    )


HEALTH: Final[Sequence[Rule[Facts]]] = (
    Rule(ACT, lambda f: f.status == "damaged", "Damaged", "ldp-aggregator fsck says what is wrong."),
    Rule(ACT, lambda f: f.stopped, "Not counted", lambda f: f.stopped),
    Rule(ACT, lambda f: f.kept, "Kept too long", lambda f: kept_words(f.kept) if f.kept else ""),
    Rule(
        WATCH,
        lambda f: f.refused > max(1, REFUSED_SHARE * f.reports),
        "Answers are refused",
        lambda f: f"{counted(f.refused, 'refusal')} since this server started. {_counted(f)}",
    ),
    Rule(NOTE, lambda f: f.status == "closed", "Closed", lambda f: f"{_counted(f)} It takes no more."),
    Rule(NOTE, lambda f: f.status == "waiting", "Not open yet", "It takes no answers yet."),
    Rule(NOTE, lambda f: f.federated, "Open", "Nodes may send shares."),
    Rule(NOTE, lambda f: not f.reports, "No answers yet", "It is open, and waits for devices."),
    Rule(NOTE, lambda f: (f.has_model or f.shares) and not f.is_told, "Too few answers", _counted),
    Rule(FINE, _always, "Healthy", _counted),
)
"""Is it healthy?"""


def _than_guessing(facts: Facts) -> str:
    guess = facts.guess
    return "" if guess is None else f" Always guessing “{guess.name}” is right for {percent(guess.share)}."


def _measure(facts: Facts) -> str:
    one = facts.measured
    if one is None:
        return ""
    return f"{interval(one.low, one.high)}, measured by {counted(one.devices, 'device')}.{_than_guessing(facts)}"


def _right(facts: Facts) -> str:
    return "" if facts.measured is None else f"{percent(facts.measured.value)} right"


def _guessed(facts: Facts) -> str:
    """The sentence on what always guessing is right for, as far as anything says it."""
    if facts.guess is not None:
        return _than_guessing(facts)
    majority = facts.model.majority if facts.model else None
    return "" if majority is None else f" Always guessing the most frequent class is right for {percent(majority)}."


def _at_least(facts: Facts) -> tuple[str, float] | None:
    """The feature that alone is right for more people than guessing, and for how many at least."""
    best, majority = (facts.model.best, facts.model.majority or 0.0) if facts.model else (None, 0.0)
    return (best[0], best[1]) if best is not None and best[1] > majority else None


def _expected(facts: Facts) -> str:
    independent = facts.model.independent if facts.model else None
    if_independent = "" if independent is None else f"about {whole_percent(independent)} if features are independent"
    least = _at_least(facts)
    if least is not None:
        sentence = f"At least {whole_percent(least[1])} right, by {least[0]} alone"
        said = f"{sentence}; {if_independent}." if if_independent else f"{sentence}."
    else:
        hope = f" {if_independent.capitalize()}." if if_independent else ""
        said = f"Too few answers to say how good it is.{hope}"
    earlier = "" if facts.earlier is None else f" An earlier model was right for {percent(facts.earlier.value)}."
    return f"{said}{_guessed(facts)}{earlier}"


MODEL: Final[Sequence[Rule[Facts]]] = (
    Rule(NOTE, lambda f: f.federated, "Follows the shares", "It is made of the shares there are."),
    Rule(NOTE, lambda f: not f.has_model, "No model", "This campaign learns none."),
    Rule(
        ACT,
        lambda f: f.measured and f.guess and f.measured.high < f.guess.low,
        _right,
        lambda f: f"Worse than guessing: {_measure(f)}",
        "Model worse than guessing",
    ),
    Rule(
        WATCH,
        lambda f: f.measured and (f.guess is None or f.measured.low <= f.guess.high),
        _right,
        lambda f: f"Not clearly better than guessing: {_measure(f)}",
        "Model not clearly better than guessing",
    ),
    Rule(FINE, lambda f: f.measured, _right, _measure),
    Rule(
        NOTE,
        lambda f: f.model is None and not f.is_told,
        "Not published",
        lambda f: f"{_more(f)} before a model can be trained.",
    ),
    Rule(
        NOTE,
        lambda f: f.model is None,
        "Not published",
        "Training takes what was counted so far, and says whether it is worth publishing.",
    ),
    Rule(
        WATCH,
        lambda f: f.model and f.model.tells_something is False,
        "Not measured",
        lambda f: f"It may be no better than guessing: its features are not known to tell anything.{_guessed(f)}",
        "Model may be no better than guessing",
    ),
    Rule(NOTE, _always, "Not measured", _expected),
)
"""The verdict on the model: how good it is."""


def _assumed(facts: Facts) -> str:
    if facts.moved is None or not facts.is_told:
        return "" if facts.is_round or facts.shares else " Too few answers to say what lies could do."
    name, moved = facts.moved
    people = "people" if facts.people == "person" else f"{facts.people}s"
    points = counted(math.ceil(100 * moved - 1e-9), "point")
    return f" If 1\u00a0% of the {people} lied together, “{name}” could be off by {points}."


def _contradicting(facts: Facts) -> str:
    return counted(facts.conflicts, "contradiction")


def _contradictions(facts: Facts) -> str:
    says = "Devices answered twice, differently: a broken app, or an attack. Only the first counts. Ask the app's team."
    return f"{says}{_assumed(facts)}"


LIES: Final[Sequence[Rule[Facts]]] = (
    Rule(ACT, lambda f: f.conflicts > max(1, REFUSED_SHARE * f.reports), _contradicting, _contradictions),
    Rule(WATCH, lambda f: f.conflicts, _contradicting, _contradictions),
    Rule(NOTE, lambda f: not f.reports, "Nothing to say yet", "No answers yet."),
    Rule(
        NOTE, _always, "No sign of it", lambda f: f"Nobody can tell a made-up answer from an honest one.{_assumed(f)}"
    ),
)
"""Is somebody lying?"""


def clue(removed: float) -> str:
    """The words for how much a feature tells, by the share of the uncertainty about the class that it removes."""
    return next(words for least, words in CLUES if removed >= least)


def _clue(facts: Facts) -> str:
    if facts.top is None:
        return ""
    _, gained, removed = facts.top
    of_all = f"{whole_percent(removed)} of the uncertainty ({bits(gained)})"
    return f"{clue(removed).capitalize()}: knowing it removes {of_all}."


LEARNED: Final[Sequence[Rule[Facts]]] = (
    Rule(NOTE, lambda f: f.told, lambda f: f.told[0] if f.told else "", lambda f: f.told[1] if f.told else ""),
    Rule(NOTE, lambda f: f.top is None and f.has_model, "Nothing yet", lambda f: f"{_more(f)}."),
    Rule(NOTE, lambda f: f.has_model and not f.is_told, "Too little to tell", lambda f: f"{_more(f)}."),
    Rule(NOTE, lambda f: f.shares and not f.is_told, "Too little to tell", lambda f: f"{_more(f)}."),
    Rule(NOTE, lambda f: f.shares, lambda f: f"Shares of {many(f.shares, 'feature')}", _counted),
    Rule(NOTE, lambda f: f.top is None, "Sums", "They prepare another campaign."),
    Rule(
        NOTE,
        lambda f: f.top and f.top[2] < CLUES[-2][0],
        "No clue so far",
        lambda f: f"None of the features is known to tell anything; {f.top[0] if f.top else ''} tells most.",
    ),
    Rule(NOTE, _always, lambda f: f"{f.top[0] if f.top else ''} tells most", _clue),
)
"""The verdict on what was learned."""


def attention(facts: Facts) -> Verdict:
    """The request of a campaign to somebody, the most urgent first; else its next step, as a note, or nothing."""
    found = [decide(rules, facts) for rules in (HEALTH, LIES, MODEL)]
    urgent = min(found, key=lambda one: MOODS.index(one.mood))
    if urgent.mood == ACT or (urgent.mood == WATCH and facts.status != "closed"):  # What is over is not watched.
        return Verdict(urgent.mood, urgent.asks or urgent.text)
    if facts.status != "open" or facts.federated or not facts.has_model:
        return Verdict(NOTE, "")
    if not facts.is_told:
        return Verdict(NOTE, f"Collecting: {about(facts.more)} more" if facts.more else "Collecting")
    if facts.is_round:
        return Verdict(NOTE, "")
    if facts.model is None:
        return Verdict(NOTE, "Next: train a model")
    if facts.measured is None:
        return Verdict(NOTE, "Next: measure the model")
    return Verdict(FINE, "Nothing to do")
