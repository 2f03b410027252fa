"""Evaluation rounds keep their word: figures are unbiased, intervals cover, and a moved threshold keeps its word.

Answers are drawn from the exact law of the counts. Seeds are fixed: nothing here fails by chance.
"""

import json
import math
from dataclasses import replace

import drafts
import numpy as np
import pytest
from crowds import crowd_draft
from evaluated import FEATURES, U, V, draft, evaluation, model
from voters import people

from ldp_aggregator import Tally, train
from ldp_aggregator.counting.tally import Arrivals
from ldp_aggregator.evaluation import accuracy, figures
from ldp_aggregator.evaluation.accuracy import _mean_with
from ldp_aggregator.evaluation.figures import evaluate, foresee
from ldp_aggregator.evaluation.rounds import evaluated_model, evaluation_draft, with_threshold
from ldp_aggregator.evaluation.score_table import ScoreTable
from ldp_aggregator.guarantees import published_by
from ldp_aggregator.learning.expected_accuracy import draw_scores
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.document.model import Model
from ldp_simulations import simulate

RUNS = 100


def truth(campaign, frame, labels):
    """The joint law of places and classes among people, shape (places, k)."""
    asked = campaign.evaluation
    scores = NaiveBayes.from_model(asked.model).scores(frame)
    places = [asked.place_of(list(row)) for row in scores]
    classes = [campaign.label.classes.index(label) for label in labels]
    law = np.zeros((asked.places, len(campaign.label.classes)))
    np.add.at(law, (places, classes), 1 / len(classes))
    return law


def answers(campaign, law, devices, seed):
    """The tally of so many devices, drawn from the law of places and classes."""
    rng, asked, tally = np.random.default_rng(seed), campaign.evaluation, Tally(campaign)
    weights = np.array([one.weight for one in campaign.questions], dtype=float)
    right = law[said_of(asked)[:, None] == np.arange(law.shape[1])].sum()
    for question, n in zip(campaign.questions, rng.multinomial(devices, weights / weights.sum()), strict=True):
        cells = np.array([1 - right, right]) if question.kind == "right" else law.ravel()
        tally.add(question.index, int(n), analysis_of(question.mechanism).tally(rng.multinomial(n, cells), rng))
    return tally


def said_of(asked, threshold=0.0):
    places = np.arange(asked.places)
    return (places > asked.edges.index(threshold)).astype(int) if asked.edges else places


def told_nothing(asked):
    """The law of people of whom the model tells nothing."""
    return np.full((asked.places, 2), 1 / (2 * asked.places))


@pytest.fixture
def few_records(monkeypatch):
    """So many of the model's records are drawn for each slope, where nothing is said of the slope."""
    monkeypatch.setattr(accuracy, "RECORDS", 200)
    monkeypatch.setattr(figures, "RECORDS", 200)


@pytest.mark.usefixtures("few_records")
def test_figures_are_unbiased_and_their_intervals_cover_in_93_to_97_of_100_runs():
    """Of 1,000 runs: intervals that cover 90 % pass with a chance of .004, right ones fail with one of .001 a figure;
    a mean that is off by a fifth of its spread is found.
    """
    campaign = evaluation(privacy={"epsilon": 2.0})
    law = truth(campaign, *people(4_000))
    law = 0.8 * law + 0.2 / law.size  # No bin is of one class alone: an estimate is not cut off at 0 or 1.
    said = said_of(campaign.evaluation)
    first, second = law[:, 0] / law[:, 0].sum(), law[:, 1] / law[:, 1].sum()
    expected = {
        "accuracy": law[np.arange(len(said)), said].sum(),
        "recall": law[said == 1, 1].sum() / law[:, 1].sum(),
        "precision": law[said == 1, 1].sum() / law[said == 1].sum(),
        "class": law[:, 1].sum(),
        "confusion": law[said == 0, 1].sum(),
        "area": sum(second[i] * (first[:i].sum() + first[i] / 2) for i in range(len(law))),
        "bin": law[1, 1] / law[1].sum(),
        "true positive": law[1:, 1].sum() / law[:, 1].sum(),
    }
    found = []
    for seed in range(1_000):
        told = evaluate(campaign, answers(campaign, law, 40_000, seed))
        found.append({"accuracy": told.as_trained, "class": told.classes["b"], "area": told.area})
        found[-1] |= {"bin": told.calibration[1]["measured"], "true positive": told.roc[0]["true_positive"]}
        if not told.threshold:  # Those of the published threshold are of another one where it was moved.
            found[-1] |= {"recall": told.recall["b"], "precision": told.precision["b"]}
            found[-1] |= {"confusion": told.confusion[0][1]}
    for name, value in expected.items():
        figures = [one[name] for one in found if name in one]
        values = np.array([one.value for one in figures])
        covered = np.mean([one.low <= value <= one.high for one in figures])
        assert abs(values.mean() - value) < 0.2 * values.std(), name
        assert 0.925 < covered < 0.975, name


@pytest.mark.usefixtures("few_records")
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_both_questions_together_tell_the_accuracy_as_exactly_as_foreseen(epsilon):
    campaign = evaluation(privacy={"epsilon": epsilon})
    law = truth(campaign, *people(4_000))
    told = [evaluate(campaign, answers(campaign, law, 5_000, seed)).as_trained.value for seed in range(RUNS)]
    assert np.std(told) == pytest.approx(foresee(campaign, 5_000).accuracy, rel=0.2)


def test_a_bit_alone_has_the_variance_of_the_page():
    """The model says the class of six in ten."""
    campaign = evaluation(evaluation={"model": model(), "weights": [1, 0]})
    e = math.e
    noise = math.sqrt((e / (e - 1) ** 2 + 0.6 * 0.4) / 5_000)
    assert foresee(campaign, 5_000).accuracy == pytest.approx(noise, rel=1e-3)
    assert foresee(campaign, 5_000).area is None


@pytest.mark.usefixtures("few_records")
def test_a_threshold_that_is_better_is_found_and_its_accuracy_is_not_too_high():
    """The model takes the classes for even; in truth b is rare."""
    campaign = evaluation(evaluation={"model": model(V, prior=(0.5, 0.5)), "edges": [-0.5, 0, 0.6]})
    law = np.array([[0.30, 0.02], [0.20, 0.04], [0.25, 0.07], [0.05, 0.07]])
    own, better = (law[np.arange(4), said_of(campaign.evaluation, t)].sum() for t in (0, 0.6))
    assert better > own + 0.1
    found = [evaluate(campaign, answers(campaign, law, 30_000, seed)) for seed in range(RUNS)]
    moved = [one for one in found if one.threshold == 0.6]
    assert len(moved) > 0.9 * RUNS
    assert np.median([one.accuracy.value for one in moved]) == pytest.approx(better, abs=0.01)
    assert np.mean([one.accuracy.low <= better <= one.accuracy.high for one in moved]) > 0.9
    assert np.mean([one.as_trained.low <= own <= one.as_trained.high for one in found]) > 0.9


@pytest.mark.usefixtures("few_records")
def test_where_no_threshold_is_better_a_moved_one_is_rare_and_told_without_the_winners_curse():
    """At every threshold the accuracy is the same; what is moved is moved by noise."""
    campaign = evaluation(evaluation={"model": model(V, prior=(0.5, 0.5)), "edges": [-1, -0.5, 0, 0.5, 1]})
    law = np.tile([1 / 12, 1 / 12], (6, 1))
    told = [evaluate(campaign, answers(campaign, law, 20_000, seed)) for seed in range(4 * RUNS)]
    moved = [one for one in told if one.threshold]
    assert 0.02 < len(moved) / len(told) < 0.2
    assert np.mean([one.accuracy.low <= 0.5 <= one.accuracy.high for one in moved]) > 0.88
    assert np.median([one.accuracy.value for one in moved]) < 0.51
    assert all(one.as_trained.value is not None for one in moved)


def test_the_mean_that_is_told_is_the_one_of_the_cut_normal_law_that_has_as_much_below():
    normal = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))  # noqa: E731
    for level, low, high in ((0.5, 0.9, math.inf), (0.025, 0.2, 1.6), (0.975, -math.inf, 1.1)):
        mean = _mean_with(level, 1.0, 0.5, low, high)
        below, least, most = (normal((end - mean) / 0.5) for end in (1.0, low, high))
        assert (below - least) / (most - least) == pytest.approx(level)
    assert _mean_with(0.5, 1.0, 0.5, 0.9, math.inf) < 1.0
    assert _mean_with(0.5, 8.1, 1.0, 8.0, math.inf) == pytest.approx(-_mean_with(0.5, -8.1, 1.0, -math.inf, -8.0))


def test_of_more_than_two_classes_what_is_said_is_told_and_nothing_is_moved():
    label = {"name": "y", "classes": ["a", "b", "c"]}
    told = {**model(), "classes": ["a", "b", "c"], "prior": [0.5, 0.3, 0.2]}
    told["features"] = [{**FEATURES[0], "likelihood": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]}]
    told["features"][0].pop("missing")
    campaign = Campaign.compile(draft(label=label, asks="score", evaluation={"model": told}, privacy={"epsilon": 3}))
    law = np.diag([0.4, 0.2, 0.1]) + np.full((3, 3), 0.3 / 9)
    figures = evaluate(campaign, answers(campaign, law, 60_000, 1))
    assert figures.area is None
    assert figures.roc == ()
    assert "more than two classes" in figures.reason
    assert figures.recall["a"].low < law[0, 0] / law[:, 0].sum() < figures.recall["a"].high
    assert figures.accuracy.value == pytest.approx(np.trace(law), abs=0.03)


def test_too_few_answers_tell_nothing_and_of_a_model_from_elsewhere_nothing_is_known():
    campaign = evaluation()
    tallies = [answers(campaign, told_nothing(campaign.evaluation), devices, 1) for devices in (0, 30, 10_000)]
    for tally in tallies[:2]:
        told = evaluate(campaign, tally)
        assert told.accuracy.value is None
        assert told.threshold == 0
        assert json.loads(evaluated_model(campaign, tally).to_json())["training"]["evaluated"]
    guarantee = evaluated_model(campaign, tallies[2]).guarantee_
    assert guarantee.epsilon == campaign.privacy.epsilon
    assert "does not say what it was learned from" in guarantee.public[-1]


def test_a_moved_threshold_is_another_prior_and_another_campaign_is_no_evaluation():
    kept = Model.from_json(json.dumps(model(U, V)))
    moved = with_threshold(kept, 0.7)
    frame, _ = people(500)
    before, after = NaiveBayes.from_model(kept).scores(frame), NaiveBayes.from_model(moved).predict(frame)
    assert list(after) == ["b" if odds > 0.7 else "a" for odds in before[:, 1] - before[:, 0]]
    assert with_threshold(kept, 0.0) is kept
    with pytest.raises(ValueError, match='"asks": "model"'):
        evaluate(Campaign.compile(draft()), Tally(Campaign.compile(draft())))


def test_a_slope_multiplies_log_odds_in_the_models_own_format_also_where_a_value_is_missing():
    kept, (frame, _) = Model.from_json(json.dumps(model(U, V))), people(500)
    frame = frame.copy()
    frame.loc[::3, "u"] = None
    for slope in (0.3, 0.85, 1.5):
        sloped = with_threshold(kept, 0.7, slope)
        before, after = (NaiveBayes.from_model(one).scores(frame) for one in (kept, sloped))
        assert after[:, 1] - after[:, 0] == pytest.approx(slope * (before[:, 1] - before[:, 0] - 0.7))
        for one in sloped.likelihoods:
            assert np.sum(one.table, axis=0) == pytest.approx([1, 1])


def test_with_more_classes_every_log_odds_is_multiplied_and_a_gaussians_too_and_a_missing_value_moves_little():
    rng = np.random.default_rng(4)
    tables = [rng.dirichlet([2.0] * values, 3).T.tolist() for values in (2, 5)]
    number = {"name": "x", "kind": "gaussian", "low": -9, "high": 9, "mean": [-1, 0, 2], "variance": [1, 4, 0.5]}
    kept = Model.from_json(
        json.dumps(
            {
                "version": 1,
                "kind": "naive-bayes",
                "label": "y",
                "classes": ["a", "b", "c"],
                "prior": [0.2, 0.5, 0.3],
                "features": [
                    {"name": name, "kind": "categorical", "values": [*map(str, range(len(table)))], "likelihood": table}
                    for name, table in zip("uv", tables, strict=True)
                ]
                + [number],
            }
        )
    )
    records = [{"u": str(u), "v": str(v), "x": x} for u in range(2) for v in range(5) for x in (-3.0, 0.5, 4.0)]
    for slope in (0.3, 0.85, 1.5):
        sloped = with_threshold(kept, 0.0, slope)
        for record in records:
            before, after = (np.array(one.scores(record)) for one in (kept, sloped))
            assert after - after[0] == pytest.approx(slope * (before - before[0]))
            lacking = {name: value for name, value in record.items() if name != "v"}
            before, after = (np.array(one.scores(lacking)) for one in (kept, sloped))
            assert after - after[0] == pytest.approx(slope * (before - before[0]), abs=0.1)


def test_of_three_classes_a_model_that_is_too_sure_is_said_to_be_and_one_that_is_not_keeps_its_log_odds():
    tables = [[[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]]] * 3
    features = [drafts.text(name, "0", "1", "2") for name in "uvw"]
    label = {"name": "y", "classes": ["a", "b", "c"]}
    document = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": ["a", "b", "c"], "prior": [0.3, 0.3, 0.4]}
    likelihoods = [
        {"name": name, "kind": "categorical", "values": ["0", "1", "2"], "likelihood": table}
        for name, table in zip("uvw", tables, strict=True)
    ]
    made = {"model": {**document, "features": likelihoods}}
    campaign = Campaign.compile(
        drafts.draft(*features, label=label, privacy={"epsilon": 2.0}, asks="score", study="s", evaluation=made)
    )
    asked, rng = campaign.evaluation, np.random.default_rng(1)
    scores, classes = draw_scores(asked.model, 50_000, rng)
    law = np.bincount(scores.argmax(axis=1) * 3 + classes, minlength=9).reshape(3, 3) / len(classes)
    for share, wanted in ((0.0, lambda slope: slope == 1.0), (0.5, lambda slope: slope < 0.6)):
        mixed = (1 - share) * law + share * law.sum(axis=1, keepdims=True) * law.sum(axis=0)
        slopes = [evaluate(campaign, answers(campaign, mixed, 100_000, seed)).slope for seed in range(5)]
        assert wanted(np.median(slopes)), slopes


def test_a_model_that_is_too_sure_is_said_to_be_and_one_that_is_not_keeps_its_log_odds():
    """Of a hundred thousand devices: 40 % of the people are as if it told nothing, or none."""
    campaign = evaluation(privacy={"epsilon": 2.0})
    law = truth(campaign, *people(4_000))
    noisy = 0.6 * law + 0.4 * told_nothing(campaign.evaluation)
    slopes = [evaluate(campaign, answers(campaign, noisy, 100_000, seed)).slope for seed in range(10)]
    assert max(slopes) < 0.7
    found = evaluated_model(campaign, answers(campaign, noisy, 100_000, 0)).model_
    assert found == replace(
        with_threshold(
            campaign.evaluation.model, evaluate(campaign, answers(campaign, noisy, 100_000, 0)).threshold, slopes[0]
        ),
        training=found.training,
    )
    scores, classes = draw_scores(campaign.evaluation.model, 20_000, np.random.default_rng(5))
    own = np.zeros_like(law)
    np.add.at(own, ([campaign.evaluation.place_of(list(one)) for one in scores], classes), 1 / 20_000)
    slopes = [evaluate(campaign, answers(campaign, own, 100_000, seed)).slope for seed in range(10)]
    assert np.median(slopes) == 1.0


@pytest.fixture
def learned():
    campaign = Campaign.compile(draft(privacy={"epsilon": 1.0}))
    frame, labels = people(4_000)
    return campaign, train(campaign, simulate(campaign, frame, labels, rng=1, fidelity="counts", devices=50_000)).model_


def test_the_draft_is_of_the_same_study_and_the_model_of_the_campaign(learned):
    campaign, trained = learned
    asked = Campaign.compile(evaluation_draft([campaign], trained, bins=4))
    assert (asked.study, asked.privacy.epsilon) == (campaign.study, 1.0)
    assert json.loads(asked.evaluation.model.to_json()) == json.loads(trained.to_json())
    assert asked.evaluation.places <= 4
    with pytest.raises(ValueError, match="must be of one study"):
        evaluation_draft([Campaign.compile(draft(study=None))], trained)


def test_the_round_of_a_crowd_is_one_of_a_crowd_sealed_to_the_same_gateway_and_with_tokens_of_the_same_issuer(learned):
    plain, trained = learned
    features = [feature.to_json() for feature in plain.features]
    of_crowd = crowd_draft(*features, label=plain.label.to_json(), study=plain.study)
    asked = Campaign.compile(evaluation_draft([Campaign.compile(of_crowd)], trained))
    assert (asked.privacy.crowd.devices, asked.privacy.release_every, asked.privacy.epsilon) == (20_000, 20_000, 4)
    assert {question.mechanism.name for question in asked.questions} == {"de"}
    assert (asked.gateway.to_json(), asked.issuer.to_json()) == (of_crowd["gateway"], of_crowd["issuer"])
    sealed = Campaign.compile({**of_crowd, "privacy": {"epsilon": 1.0}})
    round_ = Campaign.compile(evaluation_draft([sealed], trained))
    assert (round_.gateway, round_.issuer, round_.privacy.crowd) == (sealed.gateway, sealed.issuer, None)


@pytest.mark.parametrize(("study", "epsilon"), [("s", 1.0), ("another", 2.0)])
def test_rounds_of_one_study_share_a_loss_and_those_of_two_add_up(learned, study, epsilon):
    campaign, trained = learned
    asked = Campaign.compile({**evaluation_draft([campaign], trained), "study": study})
    tally = answers(asked, told_nothing(asked.evaluation), 10_000, 1)
    published = evaluated_model(asked, tally)
    assert published.guarantee_.epsilon == epsilon
    training = published.model_.training
    before, own = trained.training["published"]["epsilon"], published_by([(asked, tally)]).epsilon
    assert training["published"]["epsilon"] == pytest.approx(max(before, own) if study == "s" else before + own)
    assert training["studies"] == ({"study s": 1.0} if study == "s" else {"study s": 1.0, "study another": 1.0})


@pytest.mark.parametrize(("epsilon", "study", "told"), [(0.5, "s", 1.0), (2.0, "s", 2.0), (0.5, "another", 1.5)])
def test_what_training_cost_is_not_forgotten_where_the_evaluation_costs_less(learned, epsilon, study, told):
    campaign, trained = learned
    asked = Campaign.compile({**evaluation_draft([campaign], trained), "study": study, "privacy": {"epsilon": epsilon}})
    published = evaluated_model(asked, answers(asked, told_nothing(asked.evaluation), 1_000, 1))
    assert published.guarantee_.epsilon == told
    assert sum(published.model_.training["studies"].values()) == told
    assert published.model_.training["guarantee"]["epsilon"] == told


def test_a_model_that_guarantees_no_privacy_guarantees_none_once_it_was_evaluated(learned):
    """What an evaluation costs is bounded; what its training cost is not, and nobody is to read a number there."""
    campaign, trained = learned
    nothing = {"epsilon": None, "delta": 0.0, "relation": "none: its features were read off the table", "public": []}
    model = replace(trained, training={**trained.training, "guarantee": nothing})
    asked = Campaign.compile(evaluation_draft([campaign], model))
    published = evaluated_model(asked, answers(asked, told_nothing(asked.evaluation), 1_000, 1))
    assert published.guarantee_.epsilon is None
    assert json.loads(published.to_json())["training"]["guarantee"] == nothing


def test_of_a_model_of_two_studies_an_evaluation_in_one_of_them_adds_to_what_the_other_lost(learned):
    """A device may have been in both of training, and is in one of the rounds of the first."""
    campaign, trained = learned
    stated = {"study s": 1.0, "study t": 3.0}
    training = {**trained.training, "studies": stated}
    asked = Campaign.compile(evaluation_draft([campaign], replace(trained, training=training)))
    tally = answers(asked, told_nothing(asked.evaluation), 10_000, 1)
    published = evaluated_model(asked, tally)
    assert published.guarantee_.epsilon == 4.0
    assert published.model_.training["studies"] == stated
    before, own = training["published"], published_by([(asked, tally)])
    told = published.model_.training["published"]
    assert told["epsilon"] == pytest.approx(before["epsilon"] + own.epsilon, rel=1e-12)
    assert told["delta"] == pytest.approx(before["delta"] + own.delta, rel=1e-12)


def test_what_is_in_the_sums_twice_and_what_relays_say_is_told_of_training_and_evaluation(learned):
    campaign, trained = learned
    first = {"campaign": "first", "why_not": None}
    training = {**trained.training, "relayed": [first], "counted_twice": {"known": 3, "at_most": 5}}
    asked = Campaign.compile(evaluation_draft([campaign], replace(trained, training=training)))
    tally = answers(asked, told_nothing(asked.evaluation), 1_000, 1)
    told = evaluated_model(asked, tally, Arrivals(1000, 0, None, overlap=2, unchecked=4)).model_.training
    assert told["counted_twice"] == {"known": 5, "at_most": 11}
    assert [one["campaign"] for one in told["relayed"]] == ["first", asked.id]


@pytest.mark.parametrize(("devices", "is_told"), [(99, False), (100, True)])
def test_a_hundred_answers_tell_something_and_one_less_nothing(devices, is_told):
    campaign = evaluation(evaluation={"model": model(), "weights": [1, 0]})
    told = evaluate(campaign, answers(campaign, told_nothing(campaign.evaluation), devices, 1))
    assert (told.accuracy.value is not None) is is_told


@pytest.mark.parametrize("order", [1, -1])
def test_a_round_about_a_model_of_several_campaigns_asks_at_the_largest_of_their_epsilons(order):
    campaigns = [Campaign.compile(draft(privacy={"epsilon": epsilon})) for epsilon in (1.0, 3.0)][::order]
    assert evaluation_draft(campaigns, Model.from_json(json.dumps(model(U, V))))["privacy"] == {"epsilon": 3.0}


def test_of_the_area_what_the_noise_of_two_cells_has_in_common_is_taken_off():
    """Four even cells, of which the second class's higher and the first's lower one vary together by .01: of the
    pairs that are right, .125, and of all, .25, so much is noise's.
    """
    covariance = np.zeros((4, 4))
    covariance[0, 3] = covariance[3, 0] = 0.01
    area = ScoreTable(np.full((2, 2), 0.25), covariance, evaluation().questions[0], 1).area()
    assert area.value == pytest.approx([0.115 / 0.24])
