"""The one place where a person's data meets the coins."""

import itertools
from fractions import Fraction

import pytest
from drafts import draft, number, text
from exact_coins import SeededCoins, enumerate_outcomes
from records import Untouchable, Watched

import ldp_client.draw
from ldp_client import perturb
from ldp_client.draw import draw, draw_questions
from ldp_protocols import Campaign, RecordError, ScriptedCoins, decode_upload, encode_upload
from ldp_protocols.exact import exp_bounds

SECRET = bytes(range(32))

HUGE = 10**5000

FEATURES = [
    text("colour", "red", "green", "blue"),
    text("answer", "no", "missing", "1"),
    number("size", 0, 8, bins=4),
    number("weight", -1, 1),
]
RECORD = {"colour": "green", "answer": "no", "size": 5, "weight": 0.5}
EVERY_ANSWER = ["red", "green", "blue", "violet", None]


def campaign_with(*names, **privacy):
    """A campaign about these of the features, or all, with other privacy settings."""
    asked = [feature for feature in FEATURES if not names or feature["name"] in names]
    default = {"epsilon": 1.0, "discrete": "de", "continuous": "onebit"}
    return Campaign.compile(draft(*asked, privacy=default | privacy))


ONE_QUESTION = campaign_with()
ALL_QUESTIONS = campaign_with(answers="all")


def test_all_questions_are_drawn_before_the_record_is_read_and_only_features_asked_about_are_read(monkeypatch):
    log, asked = [], set()
    monkeypatch.setattr(ldp_client.draw, "draw", lambda *given: log.append("draw") or draw(*given))
    perturb(ALL_QUESTIONS, Watched(RECORD, log), "a")
    assert log == ["draw"] * 5 + ["colour", "answer", "size", "weight"]
    for device in range(60):
        log.clear()
        (report,) = perturb(ONE_QUESTION, Watched(RECORD, log), "a", secret=device.to_bytes(32, "big"))
        feature = ONE_QUESTION.questions[report.question].feature
        asked.add(feature)
        assert log == ["draw", *([feature] if feature else [])]
    assert asked == {None, "colour", "answer", "size", "weight"}


@pytest.mark.parametrize(
    "label", ["c", "", None, True, 0, 1.0, b"a", "A", ("a",), HUGE], ids=lambda label: type(label).__name__
)
def test_an_undeclared_label_is_refused_before_any_coin_is_drawn_or_the_record_is_read(label):
    with pytest.raises(RecordError, match="must be one of a, b") as refused:
        perturb(ONE_QUESTION, Untouchable(), label, coins=ScriptedCoins([]))
    assert refused.value.code == "undeclared-label"


@pytest.mark.parametrize(
    "record", [RECORD, {}, {"colour": "violet", "size": float("nan")}, dict.fromkeys(RECORD, 10**5000)]
)
@pytest.mark.parametrize("campaign", [ONE_QUESTION, ALL_QUESTIONS])
def test_neither_question_id_nor_length_depends_on_the_record_the_label_and_the_coins(campaign, record):
    for device in range(40):
        secret = device.to_bytes(32, "little")
        answers = [
            perturb(campaign, values, label, secret=secret, coins=SeededCoins(seed))
            for values, label, seed in itertools.product((RECORD, record), ("a", "b"), range(3))
        ]
        drawn = tuple(question.index for question in draw_questions(campaign, secret))
        assert {tuple(report.question for report in reports) for reports in answers} == {drawn}
        assert len({tuple(report.id for report in reports) for reports in answers}) == 1
        assert len({len(encode_upload(reports, campaign)) for reports in answers}) == 1
        decode_upload(encode_upload(answers[0], campaign), campaign)


@pytest.mark.parametrize(
    ("discrete", "epsilon"), [("de", 0.5), ("ss", 2.0), ("ss", 0.5), ("oue", 0.5), ("sue", 2.0), ("the", 2.0)]
)
def test_no_record_is_more_than_epsilon_likelier_than_another_whatever_is_reported(discrete, epsilon):
    """The exact distribution of the whole report over every record: declared, undeclared and missing values."""
    campaign = campaign_with("colour", epsilon=epsilon, discrete=discrete)
    mechanisms = [question.mechanism for question in campaign.questions]
    thresholds = {edge for m in mechanisms if hasattr(m, "true_bit") for edge in (m.true_bit, m.other_bit)}

    def report(record, label):
        def program(coins):
            (answer,) = perturb(campaign, record, label, secret=SECRET, coins=coins)
            return answer.question, answer.payload

        return program

    distributions = [
        enumerate_outcomes(report({"colour": value}, label), sorted(thresholds))
        for value in EVERY_ANSWER
        for label in ("a", "b")
    ]
    outcomes = set().union(*distributions)
    assert all(sum(distribution.values()) == 1 for distribution in distributions)
    assert all(set(distribution) == outcomes for distribution in distributions)
    worst = max(
        one[outcome] / other[outcome] for one, other in itertools.permutations(distributions, 2) for outcome in outcomes
    )
    assert 1 < worst <= exp_bounds(Fraction(epsilon))[1]
