"""An evaluation round tells accuracies without bias, with intervals that cover, and switches only for a reason."""

from __future__ import annotations

import json
from math import exp, inf

import numpy as np
import pytest
from evaluated import U, V, draft, evaluation, model
from voters import people

from ldp_aggregator import NaiveBayes, Tally, estimate, train
from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.learning.rounds.candidates import evaluation_draft, make_candidates
from ldp_aggregator.learning.rounds.evaluation import FEWEST_VOTERS, Score, choose, evaluate, evaluated_model
from ldp_client import Classifier
from protocols import Campaign
from simulations import simulate

RUNS = 1_000
VOTERS = 40_000


def truth(asked, frame, labels):
    models = [NaiveBayes.from_model(one.model) for one in asked.candidates]
    return np.array([(model.predict(frame) == labels).mean() for model in models])


@pytest.fixture(scope="module")
def votes():
    asked, (frame, labels) = evaluation(), people()
    runs = [
        evaluate(asked, simulate(asked, frame, labels, rng=seed, fidelity="counts", devices=VOTERS)).scores
        for seed in range(RUNS)
    ]
    return truth(asked, frame, labels), runs


def test_accuracies_are_unbiased_and_have_the_variance_of_the_formula(votes):
    """Each of 8 assertions fails by chance in less than one of 10,000 choices of the seeds."""
    right, runs = votes
    assert right.max() > 0.8
    assert right.min() < 0.3
    for place, a in enumerate(right):
        found = np.array([run[place].accuracy for run in runs])
        times = np.array([run[place].n for run in runs])
        variance = (exp(1) / (exp(1) - 1) ** 2 + a * (1 - a)) / times.mean()
        assert abs(found.mean() - a) < 4 * np.sqrt(variance / RUNS)
        assert found.var() == pytest.approx(variance, rel=0.18)  # 1,000 runs: 4.5 % standard error


def test_the_intervals_of_a_thousand_runs_cover_in_93_to_97_of_a_hundred(votes):
    """By chance a right interval leaves that range in one of 250 choices of the seeds."""
    right, runs = votes
    for place, a in enumerate(right):
        assert 0.93 <= np.mean([run[place].low <= a <= run[place].high for run in runs]) <= 0.97


def test_five_thousand_devices_at_epsilon_1_have_a_standard_error_of_015():
    asked, (frame, labels) = evaluation(), people()
    (first, *_) = evaluate(asked, simulate(asked, frame, labels, rng=1, fidelity="counts", devices=20_000)).scores
    assert first.standard_error * np.sqrt(first.n / 5_000) == pytest.approx(0.0145, abs=0.001)


def test_a_lie_moves_an_accuracy_by_no_more_than_is_stated():
    asked, (frame, labels) = evaluation(), people()
    tally = simulate(asked, frame, labels, rng=1, devices=20_000)
    before = evaluate(asked, tally).scores[0]
    lied = Tally(asked) + tally
    lied.counts[0] += [-1, 1]
    after = evaluate(asked, lied).scores[0]
    assert after.accuracy - before.accuracy == pytest.approx(before.per_liar)


def score(accuracy, error=0.01, n=FEWEST_VOTERS, name="x"):
    return Score(name, n, accuracy, error**2, 0.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("scores", "chosen", "because"),
    [
        ([score(0.8), score(0.8 + 0.0213), score(0.1)], 1, "better than"),
        ([score(0.8), score(0.8 + 0.0212), score(0.1)], 0, "none is better"),
        ([score(0.8), score(0.85), score(0.86)], 2, "better than"),
        ([score(0.8, n=999), score(0.95, n=999)], 0, "fewer than 1,000"),
        ([score(0.8), score(0.99, error=inf)], 0, "none is better"),
        ([score(0.5, error=inf, n=0), score(0.5, error=inf, n=0)], 0, "fewer than 1,000"),
    ],
)
def test_the_first_is_kept_unless_another_is_clearly_better(scores, chosen, because):
    place, reason = choose(scores)
    assert place == chosen
    assert because in reason


def test_without_votes_nothing_is_known_and_it_is_said():
    asked = evaluation()
    found = evaluate(asked, Tally(asked))
    assert found.chosen == 0
    told = found.to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert all(one["variance"] is None for one in told["candidates"])
    assert (told["low"], told["high"]) == (0, 1)


def test_estimates_name_the_candidates():
    asked, (frame, labels) = evaluation(), people()
    told = estimate(asked, simulate(asked, frame, labels, rng=1)).to_frame()
    assert list(told["value"][:2]) == ["both is wrong", "both is right"]
    assert set(told["class"]) == {None}


def test_learn_evaluate_publish_gives_the_winner_with_its_accuracy_to_the_device():
    learned = Campaign.compile(draft(privacy={"epsilon": 2}))
    frame, labels = people(8_000)
    tally = simulate(learned, frame[:4_000], labels[:4_000], rng=1, fidelity="counts", devices=60_000)
    candidates = make_candidates([(learned, tally)])
    asked = Campaign.compile(evaluation_draft([learned], candidates))
    voted = simulate(asked, frame[4_000:], labels[4_000:], rng=2, fidelity="counts", devices=60_000)
    found = evaluate(asked, voted)
    model = evaluated_model(found, voted)
    training = json.loads(model.to_json())["training"]
    assert training["evaluation"]["chosen"] == found.winner.name
    assert training["evaluation"]["campaign"] == asked.id
    assert found.winner.low <= (model.predict(frame[4_000:]) == labels[4_000:]).mean() <= found.winner.high
    assert model.guarantee_.epsilon == 2
    assert training["published"]["epsilon"] < 0.2
    assert training["poisoning"]
    record = frame.iloc[0].to_dict()
    assert Classifier.from_json(model.to_json()).predict(record) == model.predict(frame[:1])[0]


def trained_candidates(learned, tally, arrivals):
    asked = Campaign.compile(evaluation_draft([learned], make_candidates([(learned, tally)], arrivals=[arrivals])))
    frame, labels = people()
    return asked, simulate(asked, frame, labels, rng=2, fidelity="counts", devices=60_000)


def test_what_either_round_counted_twice_is_told_of_the_winner_and_costs_it_its_crowd():
    learned = Campaign.compile(draft(privacy={"epsilon": 2}))
    frame, labels = people()
    tally = simulate(learned, frame, labels, rng=1, fidelity="counts", devices=60_000)
    told = {}
    for name, overlaps in {
        "none": (0, 0),
        "learned": (20_000, 0),
        "votes": (0, 25_000),
        "both": (20_000, 25_000),
    }.items():
        of_training, of_votes = (Arrivals(60_000, overlap=overlap) for overlap in overlaps)
        asked, voted = trained_candidates(learned, tally, of_training)
        training = evaluated_model(evaluate(asked, voted), voted, of_votes).model_.training
        told[name] = training["published"]["epsilon"]
        assert training["counted_twice"] == {"known": sum(overlaps), "at_most": sum(overlaps)}
        assert [one["campaign"] for one in training["relayed"]] == [learned.id, asked.id]
        said = [condition for condition in training["published"]["conditions"] if "had both counted" in condition]
        assert len(said) == sum(overlap > 0 for overlap in overlaps)
    assert told["none"] < told["learned"] < told["votes"] == told["both"]


def test_a_winner_keeps_its_weights_and_is_what_devices_voted_on():
    """V is right about 0.64 of the people, the weighted model that follows it about more; it is published as it was."""
    weighted = model({**U, "weight": 0.5}, {**V, "weight": 0.25})
    learned = {"guarantee": train(Campaign.compile(draft()), Tally(Campaign.compile(draft()))).guarantee_.to_json()}
    published = train(Campaign.compile(draft()), Tally(Campaign.compile(draft()))).model_.training["published"]
    models = {"prior": model(), "weighted": {**weighted, "training": {**learned, "published": published}}}
    candidates = [{"name": name, "model": one} for name, one in models.items()]
    asked = Campaign.compile(draft(asks="score", candidates=candidates))
    frame, labels = people()
    voted = simulate(asked, frame, labels, rng=1, fidelity="counts", devices=VOTERS)
    found = evaluate(asked, voted)
    assert found.winner.name == "weighted"
    winner = evaluated_model(found, voted)
    assert [one.weight for one in winner.model_.likelihoods] == [0.5, 0.25]
    device = Classifier.from_json(winner.to_json())
    assert [device.predict(record) for record in frame[:200].to_dict("records")] == winner.predict(frame[:200]).tolist()


def test_other_campaigns_are_no_evaluations_and_evaluations_train_nothing():
    learned, asked = Campaign.compile(draft()), evaluation()
    with pytest.raises(ValueError, match='"asks": "model"'):
        evaluate(learned, Tally(learned))
    with pytest.raises(ValueError, match='"asks": "score"'):
        train(asked, Tally(asked))
    with pytest.raises(ValueError, match="does not say how it was trained"):
        evaluated_model(evaluate(asked, Tally(asked)), Tally(asked))


def test_the_interval_of_whichever_is_chosen_covers_although_the_noise_helped_it_to_win():
    """Six models that are equally good, of which one nearly always looks better: 1,000 runs, of which a coverage of
    95 % leaves the asserted range in less than one of a million choices of the seeds. The winner's own interval is too
    short for that.
    """
    models = [{"name": str(n), "model": model(U)} for n in range(6)]
    asked = Campaign.compile(draft(asks="score", candidates=models))
    frame, labels = people()
    (right, *_) = truth(asked, frame, labels)
    held, own, switched = 0, 0, 0
    for seed in range(RUNS):
        found = evaluate(asked, simulate(asked, frame, labels, rng=seed, fidelity="counts", devices=VOTERS))
        held += found.low <= right <= found.high
        own += found.winner.low <= right <= found.winner.high
        switched += found.chosen > 0
    assert switched > RUNS / 6
    assert held / RUNS > 0.95 - 5 * np.sqrt(0.95 * 0.05 / RUNS)
    assert own < held
