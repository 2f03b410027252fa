"""P(value | class) is the joint table over P(class); its intervals hold the truth as often as they say."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, text

from ldp_aggregator import Tally, estimate
from ldp_aggregator.estimation.ratios import conditional_reach, conditional_table
from protocols import Campaign
from simulations import simulate

PEOPLE = 4_000
RUNS = 300
VALUES = {"u": ["p", "q"], "w": ["1", "2", "3"]}


def campaign(classes=("a", "b", "c"), **privacy):
    label, features = {"name": "y", "classes": list(classes)}, (text(name, *values) for name, values in VALUES.items())
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": 2, **privacy}))


def people(classes=("a", "b", "c")):
    rng, shares = np.random.default_rng(3), np.array([0.5, 0.3, 0.2])[: len(classes)]
    label = rng.choice(len(classes), PEOPLE, p=shares / shares.sum())
    u = np.where(rng.random(PEOPLE) < 0.8, label == 0, label != 0)
    w = np.where(rng.random(PEOPLE) < 0.5, label + 1, rng.integers(1, 4, PEOPLE)).astype(str)
    return pd.DataFrame({"u": np.where(u, "q", "p"), "w": w}), np.array(classes)[label]


def truth(frame, labels, name):
    return pd.crosstab(frame[name], labels, normalize="columns").to_numpy().ravel()


@pytest.mark.parametrize(
    ("classes", "privacy"),
    [
        *[(("a", "b", "c"), {"discrete": name}) for name in ("de", "sue", "oue", "she", "ss")],
        (("a", "b", "c"), {"discrete": "oue", "answers": "all"}),
        (("a", "b", "c"), {"discrete": "de", "answers": "all", "epsilon": 6}),
        (("a", "b"), {}),
    ],
    ids=str,
)
def test_the_interval_of_a_conditional_share_holds_the_truth_as_often_as_it_says(classes, privacy):
    """Each assertion fails by chance in less than one of 10,000 choices of the seeds."""
    asked, (frame, labels) = campaign(classes, **privacy), people(classes)
    found = [
        estimate(asked, simulate(asked, frame, labels, rng=seed, fidelity="counts", devices=12_000))
        for seed in range(RUNS)
    ]
    for name in VALUES:
        cells, tables = truth(frame, labels, name), [conditional_table(one, name).cells for one in found]
        values = np.array([one.value for one in tables])
        stated = np.mean([one.variance for one in tables], axis=0)
        assert values.var(axis=0) == pytest.approx(stated, rel=0.4)
        covered = np.mean([(one.low <= cells) & (cells <= one.high) for one in tables], axis=0)
        assert covered == pytest.approx(0.95, abs=0.055), name


def test_a_class_that_cannot_be_told_from_nobodys_has_no_shares():
    asked, (frame, labels) = campaign(), people()
    few = estimate(asked, simulate(asked, frame, labels, rng=1, fidelity="counts", devices=12))
    for found in (few, estimate(asked, Tally(asked))):
        for name, values in VALUES.items():
            cells = conditional_table(found, name).cells
            unknown = np.isinf(cells.variance)
            assert unknown.any()
            assert (cells.value[unknown] == 1 / len(values)).all()
            assert (cells.low[unknown] == 0).all()
            assert (cells.high[unknown] == 1).all()


@pytest.mark.parametrize("classes", [("a", "b"), ("a", "b", "c")], ids=len)
@pytest.mark.parametrize("liars", [1, 40])
def test_liars_move_no_conditional_share_by_more_than_is_stated(classes, liars):
    """The devices of the worst answers anybody can give, in place of as many honest ones."""
    asked, (frame, labels) = campaign(classes, discrete="oue"), people(classes)
    tally = simulate(asked, frame, labels, rng=2, fidelity="counts", devices=12_000)
    honest = estimate(asked, tally)
    for question in asked.questions:
        for supports in (0, 1):
            lied = Tally(asked) + tally
            counts = lied.counts[question.index]
            counts[:] = np.clip(counts + (2 * supports - 1) * liars, 0, tally.n[question.index])
            moved = estimate(asked, lied)
            for name in VALUES:
                table = conditional_table(honest, name)
                distance = np.abs(conditional_table(moved, name).cells.value - table.cells.value)
                assert (distance <= conditional_reach(honest, table, liars) + 1e-12).all()


def test_no_liar_moves_nothing_and_many_can_move_everything():
    asked, (frame, labels) = campaign(), people()
    found = estimate(asked, simulate(asked, frame, labels, rng=2, fidelity="counts", devices=12_000))
    table = conditional_table(found, "w")
    assert (conditional_reach(found, table, 0) == 0).all()
    assert (conditional_reach(found, table, 10**6) == 1).all()
    nobody = estimate(asked, Tally(asked))
    assert (conditional_reach(nobody, conditional_table(nobody, "w"), 1) == 1).all()
