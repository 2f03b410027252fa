"""No lies move a mean, a variance or a trained model further than is printed; without lies nothing is moved."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from payloads import possible_payloads

from ldp_aggregator import NaiveBayes, Tally, estimate, train
from ldp_aggregator.estimation.moments import present_shares
from ldp_aggregator.estimation.shrinkage import shrink_moments
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.learning.model_poisoning import model_reach, table_reach
from ldp_aggregator.learning.training import _hundredth
from protocols import Campaign
from protocols.document.questions import SQUARE, VALUE
from protocols.wire.upload import Block
from simulations import simulate

MISSING = "missing"
"""Features that may be missing, asked as signs, of people of whom one in ten lacks each."""

PEOPLE = 3000
MOST_LIES = 6
SETTINGS = [
    (continuous, discrete, answers)
    for continuous, discrete in (
        ("sign", "de"),
        ("sign", "oue"),
        ("laplace", "she"),
        ("laplace", "ss"),
        ("onebit", "sue"),
        (MISSING, "oue"),
        (MISSING, "ss"),
    )
    for answers in ("one", "all")
]
OPEN_SIGNS = "signs, missing"
JOINT = [("signs", discrete, answers) for discrete in ("de", "ss") for answers in ("one", "all")]
JOINT += [(OPEN_SIGNS, "de", answers) for answers in ("one", "all")]
"""``sign`` with value and square in one answer, and of a number that one in ten lacks."""


def campaign_of(continuous, discrete, answers, **changes):
    missing, joint = continuous == MISSING, continuous in ("signs", OPEN_SIGNS)
    open_number = missing or continuous == OPEN_SIGNS
    continuous = "sign" if missing or joint else continuous
    return Campaign.compile(
        {
            "version": 1,
            "title": "t",
            "label": {"name": "y", "classes": ["a", "b"]},
            "features": [
                {"name": "x", "kind": "continuous", "missing": open_number, "low": -10, "high": 30},
                {"name": "u", "kind": "categorical", "missing": missing, "values": ["p", "q"]},
            ],
            "privacy": {
                "epsilon": 8.0 if joint else 4.0,
                "continuous": continuous,
                "discrete": discrete,
                "answers": answers,
                "joint": joint,
            },
            **changes,
        }
    )


def people(count=PEOPLE, seed=5, *, missing=False):
    rng = np.random.default_rng(seed)
    labels = np.where(rng.random(count) < 0.4, "a", "b")
    x = np.where(labels == "a", rng.normal(2, 5, count), rng.normal(14, 6, count)).clip(-10, 30)
    u = np.where(rng.random(count) < np.where(labels == "a", 0.3, 0.6), "p", "q")
    frame = pd.DataFrame({"x": x, "u": u})
    if missing:
        frame = frame.mask(rng.random(frame.shape) < 0.1)
    return frame, labels, rng


def counts_of(campaign, question, payload):
    tally = Tally(campaign)
    assert not tally.add_block(Block(question, bytes(16), payload))
    return tally.counts[question]


def lies(campaign, honest, liars, rng):
    """Tallies in which ``liars`` devices have sent another report: every extreme to every question, and all at once."""
    by_question = []
    for question in campaign.questions:
        payloads = possible_payloads(question)
        changes = []
        for before, after in itertools.permutations(payloads, 2):
            change = counts_of(campaign, question.index, after) - counts_of(campaign, question.index, before)
            changes.append((question.index, change))
        rng.shuffle(changes)
        by_question.append(changes[:MOST_LIES])
    alone = [(change,) for changes in by_question for change in changes]
    groups = {}
    for question, changes in zip(campaign.questions, by_question, strict=True):
        groups.setdefault(question.group, []).extend(changes)
    together = [tuple(changes[rng.integers(len(changes))] for changes in groups.values()) for _ in range(4 * MOST_LIES)]
    for told in alone if campaign.privacy.answers == "one" else alone + together:
        tally = Tally(campaign) + honest
        for question, change in told:
            tally.counts[question] += liars * change
        yield tally


def parameters(model):
    """Every parameter of a model document, by name."""
    told = json.loads(model.to_json())
    found = {"prior": np.array(told["prior"])}
    for feature in told["features"]:
        for key in ("likelihood", "mean", "variance"):
            if key in feature:
                found[feature["name"], key] = np.array(feature[key])
    return found


def bounds(model, position):
    told = json.loads(model.to_json())["training"]["poisoning"][position]
    named = {(name, key): bound for name, reach in told["features"].items() for key, bound in reach.items()}
    return {"prior": told["prior"], **named}


def within(moved, bound):
    return bound is None or moved <= bound * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("continuous", "discrete", "answers"), SETTINGS + JOINT)
def test_no_lies_move_a_moment_further_than_is_printed_and_some_get_near(continuous, discrete, answers):
    campaign = campaign_of(continuous, discrete, answers)
    frame, labels, rng = people(missing=continuous in (MISSING, OPEN_SIGNS))
    honest = simulate(campaign, frame, labels, rng=rng)
    found = estimate(campaign, honest)
    reach, before = found.moments_per_liar["x"], found.moments["x"]
    nearest = 0.0
    for tally in lies(campaign, honest, 1, rng):
        after = estimate(campaign, tally).moments["x"]
        assert (np.abs(after.mean - before.mean) <= reach.mean * (1 + 1e-9)).all()
        assert (np.abs(after.variance - before.variance) <= reach.variance * (1 + 1e-9)).all()
        nearest = max(nearest, (np.abs(after.mean - before.mean) / reach.mean).max())
    # Of what may be missing a lie moves a sum or the share that it is divided by; the bound takes both.
    least = {MISSING: 0.8, OPEN_SIGNS: 0.5, "signs": 0.85}.get(continuous, 0.9)
    assert nearest > (least if answers == "one" else 0.4)


@pytest.mark.parametrize(
    ("continuous", "discrete", "answers", "post"),
    [
        *((*setting, "norm_sub") for setting in SETTINGS + JOINT),
        ("sign", "oue", "one", "floor"),
        ("laplace", "she", "all", "floor"),
        (MISSING, "oue", "one", "floor"),
    ],
)
def test_no_lies_move_a_model_further_than_it_states(continuous, discrete, answers, post):
    campaign = campaign_of(continuous, discrete, answers)
    frame, labels, rng = people(missing=continuous in (MISSING, OPEN_SIGNS))
    honest = simulate(campaign, frame, labels, rng=rng)
    model = train(campaign, honest, post=post)
    before = parameters(model)
    stated = json.loads(model.to_json())["training"]["poisoning"]
    for position, row in enumerate(stated):
        for tally in lies(campaign, honest, row["liars"], rng):
            after = parameters(train(campaign, tally, post=post))
            for name, bound in bounds(model, position).items():
                assert within(np.abs(after[name] - before[name]).max(), bound), name


@pytest.mark.parametrize(("continuous", "discrete", "answers"), SETTINGS + JOINT)
def test_without_lies_nothing_is_moved(continuous, discrete, answers):
    """The intervals follow the training step by step: with nothing to move they are the model itself."""
    campaign = campaign_of(continuous, discrete, answers)
    frame, labels, rng = people(missing=continuous in (MISSING, OPEN_SIGNS))
    found = estimate(campaign, simulate(campaign, frame, labels, rng=rng))
    feature = campaign.asked[0]
    asked = [found.asking("x", kind) for kind in (VALUE, SQUARE)]
    sums, present = (one.cells for one in asked), present_shares(found.class_prior, asked)
    shrunk = shrink_moments(found.moments["x"], feature, *sums, present, variance_floor=1e-3)
    reach = model_reach(
        [found],
        found.questions,
        found.class_prior,
        {"x": shrunk},
        0,
        post="norm_sub",
        smoothing=1.0,
        variance_floor=1e-3,
        shrinkage=True,
    )
    for moved in (reach.prior, reach.features["u"], reach.features["x"].mean, reach.features["x"].variance):
        assert moved == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("continuous", ["sign", "laplace", "onebit", MISSING])
@pytest.mark.parametrize("count", [1, 4, 40])
def test_the_fewest_reports_still_give_bounds_or_say_that_there_are_none(continuous, count):
    for discrete, answers in (("she", "one"), ("ss", "all"), ("de", "one")):
        campaign = campaign_of(continuous, discrete, answers)
        frame, labels, rng = people(count, missing=continuous == MISSING)
        tally = simulate(campaign, frame, labels, rng=rng)
        for told in (estimate(campaign, tally).to_json(), json.loads(train(campaign, tally).to_json())):
            assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_lies_in_both_rounds_of_a_study_are_covered():
    first, second = (campaign_of("laplace", "she", "one", title=title) for title in ("round 1", "round 2"))
    frame, labels, rng = people()
    tallies = [simulate(one, frame, labels, rng=rng) for one in (first, second)]
    model = train(list(zip((first, second), tallies, strict=True)))
    before, bound = parameters(model), bounds(model, 0)
    for one, other in zip(lies(first, tallies[0], 1, rng), lies(second, tallies[1], 1, rng), strict=True):
        after = parameters(train([(first, one), (second, other)]))
        assert all(within(np.abs(after[name] - before[name]).max(), bound[name]) for name in bound)


def test_a_thousand_times_as_many_people_are_moved_by_a_thousandth():
    campaign = campaign_of("sign", "oue", "one")
    frame, labels, rng = people()
    few = simulate(campaign, frame, labels, rng=rng)
    many = Tally(campaign)
    many.n += 1000 * few.n
    for mine, theirs in zip(many.counts, few.counts, strict=True):
        mine += 1000 * theirs
    for name, bound in bounds(train(campaign, many), 0).items():
        assert bound == pytest.approx(bounds(train(campaign, few), 0)[name] / 1000, rel=0.5)


def test_where_a_class_may_be_empty_a_moment_is_unbounded():
    campaign = campaign_of("sign", "oue", "one")
    frame, labels, rng = people(20)
    tally = simulate(campaign, frame, labels, rng=rng)
    stated = json.loads(train(campaign, tally).to_json())["training"]["poisoning"]
    assert stated[0]["features"]["x"] == {"mean": None, "variance": None}
    told = estimate(campaign, tally).to_json()["moments"]["x"]
    assert None in told["mean_per_liar"]
    assert NaiveBayes.from_json(train(campaign, tally).to_json()).model_.training["poisoning"] == stated


def test_a_campaign_without_reports_states_that_anything_may_be_moved():
    campaign = campaign_of("onebit", "ss", "one")
    (stated, _) = json.loads(train(campaign, Tally(campaign)).to_json())["training"]["poisoning"]
    assert stated == {
        "liars": 1,
        "prior": 1.0,
        "features": {"x": {"mean": None, "variance": None}, "u": {"likelihood": 1.0}},
    }


def test_one_device_in_a_hundred_is_counted_by_devices():
    frame, labels, rng = people(1000)
    for answers in ("one", "all"):
        campaign = campaign_of("sign", "oue", answers)
        assert _hundredth([(campaign, simulate(campaign, frame, labels, rng=rng))]) == 10


@pytest.mark.parametrize("post", ["norm_sub", "floor"])
def test_a_tables_bound_holds_for_every_corner_of_what_its_cells_can_be(post):
    rng = np.random.default_rng(11)
    for _ in range(10):
        values = rng.dirichlet(np.ones(6)) + rng.normal(0, 0.05, 6)
        reach = np.full(6, rng.choice([0.001, 0.02, 0.1]))
        size = int(rng.choice([2, 3]))
        bound = table_reach(values, reach, 2, 500, post, 1.0, size=size)
        centre = train_table(values, post, size)
        for signs in itertools.product((-1, 0, 1), repeat=6):
            moved = train_table(values + np.array(signs) * reach, post, size)
            assert (np.abs(moved - centre) <= bound + 1e-12).all()


def train_table(values, post, size):
    from ldp_aggregator.estimation.simplex import floor

    joint = (floor(values, 500) if post == "floor" else norm_sub(values) * 500 + 1.0).reshape(-1, 2)[:size]
    return joint / joint.sum(axis=0)


def test_norm_sub_moves_a_cell_by_at_most_twice_what_it_is_given():
    rng = np.random.default_rng(7)
    nearest = 0.0
    for _ in range(2000):
        size = int(rng.integers(2, 30))
        values = rng.dirichlet(np.ones(size)) + rng.normal(0, 0.1, size)
        change = rng.choice([-1.0, 1.0], size) * 0.01
        change[int(rng.integers(size))] *= -1
        moved = np.abs(norm_sub(values + change) - norm_sub(values)).max()
        assert moved <= 0.02 + 1e-12
        nearest = max(nearest, moved)
    values, change = np.full(50, 1 / 50), np.full(50, -0.001)
    change[0] = 0.001
    assert np.abs(norm_sub(values + change) - norm_sub(values)).max() > 0.0019
