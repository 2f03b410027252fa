"""No made-up report moves an estimate, or a model, further than is stated beside it, and some move it that far."""

import itertools
import json

import evaluated
import numpy as np
import pandas as pd
import pytest
import voters
from drafts import draft, number, text
from issuing import issuer
from payloads import possible_payloads

from ldp_aggregator import Tally, estimate, train
from ldp_aggregator.estimation.poisoning import quotient_reach, report_that_names
from ldp_client import perturb
from ldp_protocols import Campaign
from ldp_protocols.wire import Block
from ldp_simulations import simulate

CATEGORICAL = {"kind": "categorical", "missing": False, "values": ["a", "b", "c"]}
CONTINUOUS = {"kind": "continuous", "missing": False, "low": 0, "high": 100}
SETTINGS = [
    *((CATEGORICAL, {"discrete": name}) for name in ("de", "sue", "oue", "the", "ss", "she")),
    *((CONTINUOUS, {"continuous": name}) for name in ("laplace", "onebit", "sign")),
]
REPORTS = 6


def tally_of(campaign, payloads):
    """A tally of (question, payload)."""
    tally = Tally(campaign)
    for question, payload in payloads:
        assert not tally.add_block(Block(question, bytes(16), payload))
    return tally


@pytest.mark.parametrize(
    ("feature", "privacy"), SETTINGS, ids=[next(iter(privacy.values())) for _, privacy in SETTINGS]
)
def test_the_bound_holds_for_every_replacement_and_is_reached(make_campaign, feature, privacy):
    campaign = make_campaign(feature, epsilon=1, **privacy)
    for question in campaign.questions:
        payloads = possible_payloads(question)
        honest = payloads[:: max(1, len(payloads) // REPORTS)][:REPORTS]
        others = [(q.index, possible_payloads(q)[0]) for q in campaign.questions if q is not question]
        reached = np.zeros(1)

        def estimated(payloads, others=others, asked=question.index):
            return estimate(campaign, tally_of(campaign, [*others, *((asked, p) for p in payloads)]), post="none")

        before = estimated(honest)
        bound, prior_bound = before.per_liar[question.index], before.class_prior_per_liar
        prior_moved = 0.0
        for payload, lie in itertools.product(dict.fromkeys(honest), payloads):
            after = estimated([lie if p == payload else p for p in honest])
            moved = np.abs(after[question.index].cells.value - before[question.index].cells.value)
            seen = np.isfinite(bound)
            assert (moved[seen] <= bound[seen] * (1 + 1e-9)).all()
            reached = np.maximum(reached, np.where(seen, moved / bound, 0))
            if np.isfinite(prior_bound):
                prior_moved = max(prior_moved, np.abs(after.class_prior.value - before.class_prior.value).max())
        assert reached.max() == pytest.approx(1) or privacy.get("continuous") == "onebit"
        assert prior_moved <= prior_bound * (1 + 1e-9)


def test_a_frequency_moves_by_one_over_p_minus_q_and_n_and_a_liar_lies_to_all_questions_he_answers(make_campaign):
    campaign = make_campaign(CATEGORICAL, epsilon=1, discrete="oue", label_weight=0)
    payloads = [(0, report.payload) for _ in range(40) for report in perturb(campaign, {"x": "a"}, "c0")]
    mechanism = campaign.questions[0].mechanism
    found = estimate(campaign, tally_of(campaign, payloads))
    assert found.per_liar[0] == pytest.approx(1 / (float(mechanism.p - mechanism.q) * 40))
    assert found.class_prior_per_liar == pytest.approx(3 / (float(mechanism.p - mechanism.q) * 40))
    one, every = (make_campaign(CATEGORICAL, epsilon=2, discrete="oue", answers=answers) for answers in ("one", "all"))
    bounds = []
    for campaign in (one, every):
        tally = tally_of(campaign, [(q.index, possible_payloads(q)[0]) for q in campaign.questions for _ in range(9)])
        bounds.append(estimate(campaign, tally).class_prior_per_liar)
    assert bounds[1] > bounds[0]


def test_every_printed_estimate_has_its_bound_and_without_reports_there_is_none(make_campaign):
    campaign = make_campaign(CATEGORICAL, epsilon=1, discrete="de")
    payloads = [(report.question, report.payload) for _ in range(60) for report in perturb(campaign, {"x": "a"}, "c0")]
    found = estimate(campaign, tally_of(campaign, payloads))
    assert (found.to_frame()["per_liar"] > 0).all()
    told = found.to_json()
    assert all(cell["per_liar"] > 0 for question in told["questions"] for cell in question["cells"])
    assert all(row["per_liar"] > 0 for row in told["class_prior"])
    told = estimate(campaign, Tally(campaign)).to_json()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert {cell["per_liar"] for question in told["questions"] for cell in question["cells"]} == {None}
    assert told["class_prior"][0]["per_liar"] is None


TWO = (text("v", "1", "2", "3", missing=True), number("w", 0, 100, missing=True))


@pytest.mark.parametrize("answers", ["one", "all"])
def test_who_has_three_tokens_moves_whatever_three_devices_move(answers):
    """Of a quotient that is more than three times as much, so every number is compared with what three liars do."""
    privacy = {"epsilon": 8.0, "discrete": "oue", "continuous": "sign", "answers": answers}
    alone, tokens = (
        Campaign.compile(draft(*TWO, privacy=privacy, **more)) for more in ({}, {"issuer": issuer(tokens=3)})
    )
    rng, of_one, of_three = np.random.default_rng(3), Tally(alone), Tally(tokens)
    for question in alone.questions:
        n, size = 4_000, of_one.counts[question.index].size
        p, q = float(question.mechanism.p), float(question.mechanism.q)
        counts = rng.binomial(n, q + (p - q) / size, size)
        of_one.add(question.index, n, counts)
        of_three.add(question.index, n, counts)
    one, three = estimate(alone, of_one), estimate(tokens, of_three)
    moved, by_three = three.moved_by(1), one.moved_by(3)
    assert moved["classes"] == pytest.approx(by_three["classes"], rel=1e-12)
    assert moved["features"] == pytest.approx(by_three["features"], rel=1e-12)
    assert three.class_prior_per_liar == pytest.approx(3 * one.class_prior_per_liar, rel=1e-12)
    for mine, theirs in zip(three.per_liar, one.per_liar, strict=True):
        assert mine == pytest.approx(3 * theirs, rel=1e-12)
    assert three.missing["v"].per_liar == pytest.approx(3 * one.missing["v"].per_liar, rel=1e-12)
    told = [row["per_liar"] for row in three.to_json()["missing"].values()]
    assert told == pytest.approx([3 * row["per_liar"] for row in one.to_json()["missing"].values()], rel=1e-12)
    assert (three.present["v"].per_liar > 3 * one.present["v"].per_liar).all(), "the whole moves, too"


def test_a_question_of_several_is_printed_with_its_own_epsilon():
    campaign = Campaign.compile(draft(*TWO, privacy={"epsilon": 8.0, "answers": "all"}))
    told = estimate(campaign, Tally(campaign)).to_json()
    assert told["epsilon"] == 8.0
    assert [one["epsilon"] for one in told["questions"]] == [one.epsilon for one in campaign.questions]
    assert max(one["epsilon"] for one in told["questions"]) < 8.0


SIGNS = [{"continuous": "sign", "discrete": name} for name in ("de", "sue", "oue", "the", "ss", "she")]
EXACTLY = [{"continuous": "laplace"}, {"continuous": "onebit"}, *SIGNS, {"continuous": "laplace", "answers": "all"}]


def campaign_of(*, missing=False, **privacy):
    privacy = {"epsilon": 6 if privacy["continuous"] != "laplace" else 30, **privacy}
    return Campaign.compile(draft(number("x", high=100, missing=missing), privacy=privacy))


def people(n, *, missing=False):
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(n) < 0.6, "a", "b")
    values = np.clip(rng.normal(np.where(labels == "a", 30, 70), 15), 0, 100)
    return pd.DataFrame({"x": np.where(missing & (rng.random(n) < 0.1), np.nan, values)}), labels


@pytest.mark.parametrize(
    ("privacy", "missing"), [*((one, False) for one in EXACTLY), *((one, True) for one in SIGNS)], ids=str
)
@pytest.mark.parametrize("liars", [1, 6])
def test_no_lie_moves_a_mean_further_than_is_stated(privacy, missing, liars):
    """So many devices send one made-up report in place of another that was counted, to one question. Only signs can
    tell that a value is missing.
    """
    campaign = campaign_of(missing=missing, **privacy)
    tally = simulate(campaign, *people(900, missing=missing), rng=2)
    honest = estimate(campaign, tally)
    bound, furthest = honest.mean_reach("x", liars), np.zeros(2)
    assert np.isfinite(bound).all()
    for question in campaign.questions:
        asked = question.index
        corners = [tally_of(campaign, [(asked, sent)]).counts[asked] for sent in possible_payloads(question)[:40]]
        for said, made_up in ((corners[i], corners[j]) for i in range(len(corners)) for j in range(0, len(corners), 3)):
            lied = Tally(campaign) + tally
            lied.counts[asked] += liars * (made_up - said)
            if lied.counts[asked].min() < 0 and question.mechanism.name not in ("she", "laplace"):
                continue
            moved = np.abs(estimate(campaign, lied).moments["x"].mean - honest.moments["x"].mean)
            furthest = np.maximum(furthest, moved)
    assert (furthest <= bound * (1 + 1e-9)).all()
    assert (furthest > 0.4 * bound).any()


def test_a_quotient_moves_as_far_as_the_formula_says_and_nothing_bounds_that_of_a_class_one_lie_makes_insufficient():
    s, p, a, h = np.array([0.3]), np.array([0.5]), np.array([0.05]), 0.1
    ends = [(s + ds) / (p + dp) for ds in (-a, 0, a) for dp in (-h, 0, h)]
    assert np.abs(np.array(ends) - s / p).max() == pytest.approx(quotient_reach(s / p, a, p, h)[0])
    assert np.isinf(quotient_reach(s / p, a, p, 0.5)[0])
    campaign = campaign_of(continuous="sign")
    frame, _ = people(300)
    found = estimate(campaign, simulate(campaign, frame, np.where(np.arange(300) < 4, "b", "a"), rng=2))
    assert np.isfinite(found.mean_reach("x", 1)[0])
    assert np.isinf(found.mean_reach("x", 1)[1])
    assert np.isinf(found.mean_reach("x", 300)).all()


def voted(**privacy):
    """A campaign and a tally of its voters' answers."""
    campaign = Campaign.compile(evaluated.draft(privacy={"epsilon": 1.0, **privacy}))
    return campaign, simulate(campaign, *voters.people(), rng=1, fidelity="counts", devices=50_000)


@pytest.mark.parametrize(
    "privacy", [{}, {"discrete": "she"}, {"continuous": "laplace"}, {"continuous": "onebit"}, {"answers": "all"}]
)
def test_one_device_in_a_hundred_is_taken_to_lie_and_every_feature_has_its_change(privacy):
    campaign, tally = voted(**privacy)
    told = train(campaign, tally).model_.training["lies"]
    assert told["liars"] == pytest.approx(500, abs=10)
    assert told["named"] in ("a", "b")
    assert set(told["features"]) == {"u", "v", "size"}
    assert all(moved > 0 for moved in told["features"].values())
    assert 0 < told["classes"] <= 1
    told = train(campaign, Tally(campaign)).model_.training["lies"]
    assert told["liars"] == 1, "without reports one liar can have made the classes anything"
    assert told["classes"] in (None, 1.0)


def test_what_is_told_is_the_larger_of_the_changes_that_lies_for_either_class_make():
    """All liars about u name one class and the value least like it."""
    campaign, tally = voted(discrete="oue")
    before = train(campaign, tally)
    told, table = before.model_.training["lies"], np.array(before.model_.likelihoods[0].table)
    asked, moved = next(one for one in campaign.questions if one.feature == "u"), []
    for named in range(2):
        lied, n = Tally(campaign) + tally, int(tally.n[asked.index])
        item = int(table[:, named].argmin()) * 2 + named
        counts = lied.counts[asked.index]
        counts[:] = np.rint(counts * (1 - told["liars"] / n)) + told["liars"] * report_that_names(asked, item)
        moved.append(np.abs(np.array(train(campaign, lied).model_.likelihoods[0].table) - table).max())
    assert max(moved) == pytest.approx(told["features"]["u"], rel=0.35)


def test_where_devices_answer_all_questions_a_liar_moves_a_class_by_all_of_them_together():
    """The largest of the moves alone would give .0606 and .6145."""
    privacy = {"epsilon": 9.0, "answers": "all", "continuous": "sign", "discrete": "de"}
    campaign = Campaign.compile(draft(text("u", "a", "b"), number("g", 0, 10), privacy=privacy))
    tally = Tally(campaign)
    for question, counts in zip(campaign.questions, tally.counts, strict=True):
        tally.add(question.index, 400, np.full(len(counts), 400 // len(counts)))
    found = estimate(campaign, tally)
    assert found.mean_reach("g", 1) == pytest.approx([0.06084] * 2, abs=1e-5)
    assert found.mean_reach("g", 10) == pytest.approx([0.64270] * 2, abs=1e-5)
