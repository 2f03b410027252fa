"""Leaks through what is asked and how the budget is split."""

from __future__ import annotations

import math
from fractions import Fraction

from ldp_client.answering import encode
from planted.answers import index_bytes, other_than, with_epsilon
from planted.client import PlantedClient, Record, StepwiseClient, class_of, read
from planted.witness import BLUE, RED, Exact, Found, Leak, draft
from protocols import Campaign, Question, encode_upload
from protocols.mechanisms import DirectEncoding, Moment, PureMechanism, SubsetSelection


class QuestionByClass(StepwiseClient):
    """The weights of the questions depend on the class: one class is asked twice as often about the last feature.

    Leaks the class to everybody: up to ln 2 on top of epsilon, ln 1.5 for two features. Found by a tester that joins
    question and answer.
    """

    def questions(self, campaign: Campaign, record: Record, label: str) -> list[Question]:
        if campaign.privacy.answers == "all" or class_of(campaign, label) == 0:
            return super().questions(campaign, record, label)
        weights = [question.weight for question in campaign.questions]
        return [self.draw(campaign.questions, [*weights[:-1], 2 * weights[-1]])]


class DrawsAgainForARareValue(StepwiseClient):
    """A device that is asked about the last value of a feature draws again, once, "so that it feels safe".

    Leaks the value to everybody through how often the feature is not asked about: ln 2 and more on top of epsilon for
    few questions. Found if records hold every value.
    """

    def questions(self, campaign: Campaign, record: Record, label: str) -> list[Question]:
        drawn = super().questions(campaign, record, label)
        feature = campaign.feature_of(drawn[0])
        rare = getattr(feature, "values", (None,))[-1]
        if campaign.privacy.answers == "all" or feature is None or read(record, feature.name) != rare:
            return drawn
        return super().questions(campaign, record, label)


class WholeBudgetForEach(StepwiseClient):
    """With ``answers: "all"`` every question is answered with the whole epsilon.

    Leaks to everybody: epsilon times the number of groups. Found, if answers are looked at together.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        return with_share(campaign, question, Fraction(campaign.privacy.epsilon), item, self)


class SquareRootOfTheBudget(StepwiseClient):
    """With ``answers: "all"`` epsilon is divided by the root of the number of groups, as advanced composition might.

    Leaks to everybody: epsilon times the root of the number of groups. Found, if answers are looked at together.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        share = Fraction(campaign.privacy.epsilon / math.sqrt(len(campaign.groups)))
        return with_share(campaign, question, share, item, self)


class TwiceForTheLastQuestion(StepwiseClient):
    """The last question of the campaign is answered with twice its epsilon.

    Leaks the last feature to everybody: 2 epsilon where one is answered. Found if that question's answers are looked at
    on their own.
    """

    def perturb(self, campaign: Campaign, question: Question, item: int | Moment) -> bytes:
        if question.index < len(campaign.questions) - 1:
            return super().perturb(campaign, question, item)
        return with_share(campaign, question, 2 * Fraction(question.epsilon), item, self)


class OneCoinForAllAnswers(StepwiseClient):
    """With ``answers: "all"`` one coin decides whether all answers are kept or all are replaced.

    Leaks to everybody: nobody sends one true answer and one false one. Unbounded. Every answer alone is right: found by
    a tester that looks at the answers of a device together.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        mechanism = question.mechanism
        if not isinstance(mechanism, DirectEncoding):
            return super().reply(campaign, question, record, label)
        if question.group == campaign.questions[0].group or campaign.privacy.answers == "one":
            self._kept = self.coins.bernoulli(mechanism.keep)
        item = encode(campaign, question, record, class_of(campaign, label), self.coins)
        if not isinstance(item, int):
            raise TypeError("direct encoding answers with an index")
        sent = item if self._kept else other_than(item, self.coins.below(mechanism.domain_size - 1))
        return index_bytes(sent, mechanism.domain_size)


class AnswersUntilTwoAgree(PlantedClient):
    """The device answers up to three times and sends the answer that came twice, "to be accurate" (else the last).

    Leaks to everybody: a majority of epsilon-LDP answers is not epsilon-LDP. 1.17 epsilon for eight values at
    epsilon 1. Found.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        secret = self.entropy(32)
        kept = self.entropy
        self.entropy = lambda count: secret
        tries = [self.reports(campaign, record, label) for _ in range(3)]
        self.entropy = kept
        agreed = [reports for reports in tries if tries.count(reports) > 1]
        return [encode_upload((agreed or tries)[-1])]


class EmptyAnswerForMissing(StepwiseClient):
    """A missing value is answered with nothing at all: an empty bitmap, or index 0.

    Leaks to everybody that the value is missing. Unbounded for bitmaps: any set bit proves that there is a value. Found
    if some record lacks a value.
    """

    def reply(self, campaign: Campaign, question: Question, record: Record, label: str) -> bytes:
        honest = super().reply(campaign, question, record, label)
        missing = question.feature is not None and read(record, question.feature) is None
        usable = isinstance(question.mechanism, PureMechanism) and not isinstance(question.mechanism, SubsetSelection)
        return bytes(len(honest)) if missing and usable else honest


class NothingForAnUndeclaredValue(PlantedClient):
    """A value that the campaign does not declare raises an error somewhere, and the device stays silent.

    Leaks to everybody who counts that the value is undeclared (or missing). Unbounded. Found if some record holds one.
    """

    def uploads(self, campaign: Campaign, record: Record, label: str) -> list[bytes]:
        declared = all(
            read(record, feature.name) in feature.values for feature in campaign.asked if hasattr(feature, "values")
        )
        return super().uploads(campaign, record, label) if declared else []


def with_share(
    campaign: Campaign, question: Question, epsilon: Fraction, item: int | Moment, client: StepwiseClient
) -> bytes:
    """The answer with another epsilon; a subset keeps its size, which the server checks, and is answered honestly."""
    if isinstance(question.mechanism, SubsetSelection):
        return question.perturb(item, client.coins)
    return with_epsilon(question, epsilon, item, client.coins)


SQUARE_BLUE = ({"colour": "blue", "shape": "square"}, "no")
EMPTY = ({}, "yes")
_SHAPES = {"colours": False, "shapes": True}
_TWO = draft(shapes=True, answers="all")
LEAKS = {
    "question-by-class": Leak(
        QuestionByClass, 1 + math.log(3 / 2), Found.PERHAPS, Exact(RED, SQUARE_BLUE, draft(shapes=True))
    ),
    "draws-again-for-a-rare-value": Leak(
        DrawsAgainForARareValue, 1 + math.log(2), Found.YES, Exact(RED, BLUE, draft(shapes=True))
    ),
    "whole-budget-for-each": Leak(WholeBudgetForEach, 2.0, Found.YES, Exact(RED, SQUARE_BLUE, _TWO)),
    "square-root-of-the-budget": Leak(SquareRootOfTheBudget, math.sqrt(2), Found.YES, Exact(RED, SQUARE_BLUE, _TWO)),
    "twice-for-the-last-question": Leak(
        TwiceForTheLastQuestion, 2.0, Found.YES, Exact(RED, SQUARE_BLUE, draft(shapes=True))
    ),
    "one-coin-for-all-answers": Leak(
        OneCoinForAllAnswers,
        math.inf,
        Found.PERHAPS,
        Exact(RED, SQUARE_BLUE, _TWO),
        delta=0.308,
    ),
    "answers-until-two-agree": Leak(AnswersUntilTwoAgree, 1.1706, Found.YES, Exact(RED, BLUE, draft())),
    "empty-answer-for-missing": Leak(
        EmptyAnswerForMissing,
        math.inf,
        Found.YES,
        Exact(RED, EMPTY, draft(discrete="oue", **_SHAPES)),
        delta=0.805,
    ),
    "nothing-for-an-undeclared-value": Leak(
        NothingForAnUndeclaredValue, math.inf, Found.YES, Exact(({"colour": "mauve"}, "yes"), RED, draft()), delta=1.0
    ),
}
