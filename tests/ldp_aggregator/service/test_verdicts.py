"""Verdicts by their tables: what asks somebody to act, what is worth watching, what is fine, what is only a note."""

import json
import math
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import drafts
import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.dashboard.campaign_facts import Numbers, facts_in
from ldp_aggregator.evaluation.figures import evaluate
from ldp_aggregator.evaluation.rounds import evaluation_draft
from ldp_aggregator.learning.training import train
from ldp_aggregator.service.verdicts import (
    ACT,
    FINE,
    HEALTH,
    LEARNED,
    LIES,
    MODEL,
    NOTE,
    WATCH,
    Facts,
    Guess,
    Measured,
    Verdict,
    attention,
    clue,
    decide,
    guess_of,
    kept_too_long,
    measured_of,
    model_row,
)
from ldp_aggregator.store.contract import Life, PublishedModel
from ldp_protocols import Campaign
from ldp_protocols.document.model import Model
from ldp_simulations import simulate

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)
BEST = {"feature": "age", "low": 0.7, "high": 0.9}
EXPECTED = {"majority": 0.6, "best_feature": BEST, "independent": 0.84, "tells_something": True}
MEASURED = Measured(0.748, 0.729, 0.766, 20_000, "r" * 43)
GUESS = Guess("no", 0.6, 0.58, 0.62)
MOVED = ("yes", 0.12)


def row(**training):
    return model_row(PublishedModel(1, json.dumps({"training": training}), NOW))


TOLD = Facts("open", reports=60_000, width=0.037, moved=MOVED, guess=GUESS, top=("income", 0.23, 0.25))
FEW = replace(TOLD, reports=3, width=math.inf, more=1500, top=("income", 0.001, 0.001))


def plain(verdict):
    return verdict.mood, verdict.text, verdict.says.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("facts", "mood", "text", "says"),
    [
        (TOLD, FINE, "Healthy", "60,000 answers counted; the least certain share is known to ± 3.7 points."),
        (replace(TOLD, refused=600), FINE, "Healthy", "60,000 answers counted"),
        (replace(TOLD, refused=601), WATCH, "Answers are refused", "601 refusals since this server started."),
        (replace(TOLD, reports=3, refused=1), FINE, "Healthy", "3 answers"),
        (replace(TOLD, stopped="The key is not here."), ACT, "Not counted", "The key is not here."),
        (replace(TOLD, kept=(40, 30)), ACT, "Kept too long", "It ended 40 days ago, 10 more than the 30 days after"),
        (replace(TOLD, status="damaged", stopped="x"), ACT, "Damaged", "ldp-aggregator fsck says what is wrong."),
        (replace(TOLD, status="closed"), NOTE, "Closed", "It takes no more."),
        (replace(TOLD, status="waiting"), NOTE, "Not open yet", "It takes no answers yet."),
        (replace(TOLD, reports=0), NOTE, "No answers yet", "It is open, and waits for devices."),
        (FEW, NOTE, "Too few answers", "3 answers counted. About 1,500 more devices are needed to say anything."),
        (replace(FEW, more=None), NOTE, "Too few answers", "More devices are needed"),
        (replace(FEW, federated=True), NOTE, "Open", "Nodes may send shares."),
    ],
)
def test_health_is_fine_where_what_comes_is_counted_and_says_something(facts, mood, text, says):
    found = plain(decide(HEALTH, facts))
    assert found[:2] == (mood, text)
    assert says in found[2]


@pytest.mark.parametrize(
    ("facts", "mood", "text", "says"),
    [
        (
            replace(TOLD, measured=MEASURED),
            FINE,
            "74.8 % right",
            "72.9 to 76.6 %, measured by 20,000 devices. Always guessing “no” is right for 60.0 %.",
        ),
        (
            replace(TOLD, measured=replace(MEASURED, value=0.625, low=0.61, high=0.64)),
            WATCH,
            "62.5 % right",
            "Not clearly better than guessing: 61.0 to 64.0 %",
        ),
        (replace(TOLD, measured=replace(MEASURED, value=0.625, low=0.62)), WATCH, "62.5 % right", "Not clearly better"),
        (
            replace(TOLD, measured=replace(MEASURED, value=0.5, low=0.48, high=0.52)),
            ACT,
            "50.0 % right",
            "Worse than guessing: 48.0 to 52.0 %",
        ),
        (replace(TOLD, measured=MEASURED, guess=None), WATCH, "74.8 % right", "Not clearly better"),
        (FEW, NOTE, "Not published", "About 1,500 more devices are needed before a model can be trained."),
        (TOLD, NOTE, "Not published", "Training takes what was counted so far"),
        (
            replace(TOLD, model=row(expected=EXPECTED)),
            NOTE,
            "Not measured",
            "At least 70 % right, by age alone; about 84 % if features are independent. Always guessing “no” is right "
            "for 60.0 %.",
        ),
        (
            replace(TOLD, model=row(expected={**EXPECTED, "best_feature": {**BEST, "low": 0.55}}), guess=None),
            NOTE,
            "Not measured",
            "Too few answers to say how good it is. About 84 % if features are independent. Always guessing the most "
            "frequent class is right for 60.0 %.",
        ),
        (replace(TOLD, model=row(), guess=None), NOTE, "Not measured", "Too few answers to say how good it is."),
        (
            replace(TOLD, model=row(expected=EXPECTED), earlier=MEASURED),
            NOTE,
            "Not measured",
            "An earlier model was right for 74.8 %.",
        ),
        (
            replace(TOLD, model=row(expected={**EXPECTED, "tells_something": False})),
            WATCH,
            "Not measured",
            "It may be no better than guessing",
        ),
        (replace(TOLD, federated=True), NOTE, "Follows the shares", ""),
        (replace(TOLD, has_model=False), NOTE, "No model", ""),
    ],
)
def test_a_model_is_fine_only_where_its_lower_end_is_above_guessing(facts, mood, text, says):
    found = plain(decide(MODEL, facts))
    assert (found[0], found[1].replace("\u00a0", " ")) == (mood, text)
    assert says in found[2]


@pytest.mark.parametrize(
    ("facts", "mood", "text", "says"),
    [
        (TOLD, NOTE, "No sign of it", "If 1 % of the devices lied together, “yes” could be off by 12 points."),
        (replace(TOLD, people="person"), NOTE, "No sign of it", "If 1 % of the people lied together"),
        (FEW, NOTE, "No sign of it", "Too few answers to say what lies could do."),
        (replace(TOLD, moved=None), NOTE, "No sign of it", "Too few answers to say what lies could do."),
        (replace(TOLD, reports=0), NOTE, "Nothing to say yet", "No answers yet."),
        (
            replace(TOLD, conflicts=1),
            WATCH,
            "1\u00a0contradiction",
            "a broken app, or an attack. Only the first counts. Ask the app's team.",
        ),
        (replace(TOLD, conflicts=600), WATCH, "600\u00a0contradictions", "If 1 % of the devices"),
        (replace(TOLD, conflicts=601), ACT, "601\u00a0contradictions", "answered twice"),
    ],
)
def test_liars_are_an_assumption_and_never_fine(facts, mood, text, says):
    found = plain(decide(LIES, facts))
    assert found[:2] == (mood, text)
    assert says in found[2]
    assert FINE not in {rule.mood for rule in LIES}


@pytest.mark.parametrize(
    ("facts", "text", "says"),
    [
        (TOLD, "income tells most", "Strong clue: knowing it removes 25 % of the uncertainty (0.23 bits)."),
        (replace(TOLD, top=("age", 0.001, 0.002)), "No clue so far", "None of the features is known to tell anything"),
        (FEW, "Too little to tell", "About 1,500 more devices are needed."),
        (replace(FEW, top=None), "Nothing yet", "About 1,500 more devices are needed."),
        (replace(TOLD, top=None, has_model=False), "Sums", "They prepare another campaign."),
        (replace(TOLD, top=None, has_model=False, shares=3), "Shares of 3 features", "60,000 answers counted"),
        (replace(FEW, top=None, has_model=False, shares=3), "Too little to tell", "About 1,500 more devices"),
        (replace(TOLD, told=("“yes” at 43.1 %", "38 to 48 %.")), "“yes” at 43.1 %", "38 to 48 %."),
    ],
)
def test_what_was_learned_is_a_note_whatever_it_is(facts, text, says):
    found = plain(decide(LEARNED, facts))
    assert found[:2] == (NOTE, text)
    assert says in found[2]
    assert {rule.mood for rule in LEARNED} == {NOTE}


def test_a_clue_has_its_word():
    shares = (0.15, 0.149, 0.05, 0.049, 0.01, 0.009, 0.0)
    words = ("strong clue", "clear clue", "clear clue", "weak clue", "weak clue", "no clue so far", "no clue so far")
    assert tuple(map(clue, shares)) == words


@pytest.mark.parametrize(
    ("facts", "mood", "text"),
    [
        (replace(TOLD, measured=MEASURED, model=row(expected=EXPECTED)), FINE, "Nothing to do"),
        (replace(TOLD, model=row(expected=EXPECTED)), NOTE, "Next: measure the model"),
        (TOLD, NOTE, "Next: train a model"),
        (FEW, NOTE, "Collecting: about 1,500 more"),
        (replace(FEW, more=None), NOTE, "Collecting"),
        (replace(TOLD, status="closed"), NOTE, ""),
        (replace(TOLD, status="closed", conflicts=2), NOTE, ""),
        (replace(TOLD, status="closed", conflicts=6_000), ACT, "6,000\u00a0contradictions"),
        (replace(TOLD, federated=True), NOTE, ""),
        (replace(TOLD, is_round=True, measured=MEASURED), NOTE, ""),
        (replace(TOLD, conflicts=2, measured=MEASURED), WATCH, "2\u00a0contradictions"),
        (replace(TOLD, conflicts=2, stopped="x"), ACT, "Not counted"),
        (
            replace(TOLD, measured=replace(MEASURED, low=0.5, high=0.7)),
            WATCH,
            "Model not clearly better than guessing",
        ),
    ],
)
def test_the_most_urgent_is_what_a_campaign_asks_for_and_else_its_next_step(facts, mood, text):
    assert attention(facts) == Verdict(mood, text)


@pytest.mark.parametrize(
    "training",
    [
        "",
        [],
        {"expected": {"majority": True}},
        {"reports": "9", "guarantee": 5, "evaluated": {"accuracy": {"value": "x"}}},
    ],
)
def test_of_a_document_that_says_less_less_is_read(training):
    found = model_row(PublishedModel(3, json.dumps({"training": training}), NOW))
    assert (found.version, found.reports, found.epsilon, found.measured, found.majority, found.best) == (3, *[None] * 5)
    for lacking in ("low", "high"):
        assert row(expected={"best_feature": {**BEST, lacking: None}}).best is None
        assert row(expected={"best_feature": {**BEST, lacking: True}}).best is None
    for document in ("{}", '{"training": null}', '{"training": {"published": 3, "reports": "x"}}', "[]"):
        assert model_row(PublishedModel(1, document, NOW)).measured is None


def test_figures_of_a_round_are_read_where_they_are_told():
    untold = {"value": None, "low": None, "high": None}
    accuracy = {"value": 0.8, "low": 0.7, "high": 0.9}
    told = {"accuracy": accuracy, "devices": 9, "campaign": "r"}
    assert measured_of(told) == Measured(0.8, 0.7, 0.9, 9, "r")
    assert measured_of({**told, "accuracy": untold}) is None
    assert measured_of({**told, "as_trained": {**accuracy, "value": 0.75}}, as_trained=True).value == 0.75
    classes = {"a": {"value": 0.3, "low": 0.2, "high": 0.4}, "b": {"value": 0.7, "low": 0.6, "high": 0.8}}
    assert guess_of(classes) == Guess("b", 0.7, 0.6, 0.8)
    assert guess_of({"a": untold}) is None


def population(rng, people=20_000):
    """People of two or three classes: two features tell of them, a third says what the first does, and one nothing."""
    classes = int(rng.integers(2, 4))
    shares = rng.dirichlet(np.full(classes, 5.0))
    labels = rng.choice(classes, people, p=shares)
    useful = rng.random() < 0.75
    columns = {}
    for name, values in (("first", 3), ("second", 4), ("idle", 3)):
        tables = rng.dirichlet(np.full(values, 0.7 if useful and name != "idle" else 1e6), classes)
        columns[name] = (tables.cumsum(axis=1)[labels] < rng.random(people)[:, None]).sum(axis=1).clip(max=values - 1)
    columns["again"] = np.where(rng.random(people) < 0.8, columns["first"], rng.integers(0, 3, people))
    frame = pd.DataFrame({name: [f"v{value}" for value in column] for name, column in columns.items()})
    return frame, np.array([f"c{one}" for one in labels]), classes


@pytest.mark.long
@pytest.mark.timeout(1500)
def test_in_200_campaigns_the_headlines_interval_holds_the_models_accuracy_and_fine_is_never_below_guessing():
    """Each on fresh people: devices are drawn from a population of which the accuracy is known."""
    held, least, least_by, fine = [], [], [], 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        frame, labels, classes = population(rng)
        asked = [drafts.text(name, *sorted(frame[name].unique())) for name in frame]
        label = {"name": "class", "classes": [f"c{one}" for one in range(classes)]}
        campaign = Campaign.compile(
            drafts.draft(*asked, label=label, study="s", privacy={"epsilon": float(rng.choice([1, 2, 4]))})
        )
        devices = int(rng.choice([3_000, 10_000, 40_000]))
        tally = simulate(campaign, frame, labels, rng, fidelity="counts", devices=devices)
        model = train(campaign, tally)
        right = float((model.predict(frame) == labels).mean())
        guessing = float(pd.Series(labels).value_counts(normalize=True).max())
        row = model_row(PublishedModel(1, model.to_json(), NOW))
        if row.best and row.best[1] > row.majority:
            least.append(row.best[1] <= right)
            least_by.append(row.best[1] - right)
        asking = Campaign.compile(evaluation_draft([campaign], Model.from_json(model.to_json())))
        told = evaluate(asking, simulate(asking, frame, labels, rng, fidelity="counts", devices=devices)).to_json()
        facts = Facts(
            "open", model=row, **facts_in(Numbers(campaign, tally, tally), NOW, learned=False), reports=devices
        )
        measured = measured_of(told, as_trained=True)
        if measured is None:
            continue
        held.append(measured.low <= right <= measured.high)
        verdict = decide(MODEL, replace(facts, measured=measured))
        fine += verdict.mood == FINE
        assert verdict.mood != FINE or right > guessing, seed
        assert decide(MODEL, facts).mood != FINE, "nothing is fine that nobody measured"
        assert decide(LIES, facts).mood != FINE
    assert (len(held), fine) == (200, 133)
    assert np.mean(held) >= 0.95
    # "At least", by one feature alone: the model itself may lose some to features that say the same.
    assert np.mean(least) >= 0.9
    assert max(least_by) < 0.03


@pytest.mark.parametrize(
    ("life", "days", "archived", "expected"),
    [
        (Life(None, None, None), 1000, False, None),
        (Life(None, None, NOW), 30, False, None),
        (Life(None, None, NOW), 31, False, (31, 30)),
        (Life(None, NOW, None), 31, False, (31, 30)),
        (Life(None, NOW, NOW + timedelta(9)), 40, False, (40, 30)),
        (Life(None, NOW, None), -1, True, None),
        (Life(None, None, NOW, NOW), 31, False, None),
        (Life(None, None, NOW, NOW), 31, True, (31, 30)),
    ],
)
def test_a_promise_of_days_counts_from_the_end_until_a_campaign_is_sealed_without_an_archive(
    life, days, archived, expected
):
    promising = Campaign.compile(drafts.draft(drafts.text("colour", "red", "green"), keep_days=30))
    now = NOW + timedelta(days)
    assert kept_too_long(promising, life, now, archived=archived) == expected
    assert (
        kept_too_long(
            Campaign.compile(drafts.draft(drafts.text("colour", "red", "green"))), life, now, archived=archived
        )
        is None
    )


def test_a_broken_promise_of_days_is_a_request_also_of_what_is_closed():
    closed = replace(TOLD, status="closed", kept=(31, 30))
    assert attention(closed) == Verdict(ACT, "Kept too long")
    told = plain(decide(HEALTH, closed))[2]
    assert told.startswith("It ended 31 days ago, 1 more than the 30 days after which its document promises")
