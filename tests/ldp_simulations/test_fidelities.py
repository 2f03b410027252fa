"""``simulate``: what every device of a table leaves in the tally, whatever the fidelity."""

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number
from scipy.stats import ks_2samp

from ldp_protocols import Campaign, RecordError
from ldp_simulations import FIDELITIES, simulate
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts, simulate_vector

FALSE_ALARM = 1e-6
ROUNDS = {"device": 30, "vector": 120, "counts": 200}
PEOPLE = 60
SIMULATORS = {"vector": simulate_vector, "counts": simulate_counts}

SETTINGS = [
    ("sue", "sign", "one"),
    ("the", "sign", "one"),
    ("oue", "laplace", "one"),
    ("ss", "onebit", "one"),
    ("de", "laplace", "all"),
    ("ss", "onebit", "all"),
    ("sue", "sign", "all"),
]
OPEN = [(name, "sign", answers) for name, answers in (("de", "one"), ("oue", "all"), ("ss", "one"), ("she", "all"))]
"""Of features that may be missing, whose numbers are asked as signs."""
ALONE = [("ss", "laplace", "one", False), ("oue", "sign", "all", True), ("de", "sign", "one", True)]
"""Without a label."""


def tallies(campaign, frame, labels, fidelity, devices=None) -> np.ndarray:
    """One row per round: reports and counts of every question, and two combinations of the counts.

    The combinations (the plain sum, and one with unequal weights) differ where only the covariances do.
    """
    rows = []
    columns = Columns.of(campaign, frame, labels)  # Once: the table is the same in every round.
    for seed in range(ROUNDS[fidelity]):
        if fidelity == "device":
            tally = simulate(campaign, frame, labels, seed, fidelity=fidelity, devices=devices)
        else:
            tally = SIMULATORS[fidelity](columns, np.random.default_rng(seed), devices)
        combined = [(counts.sum(), counts @ np.arange(len(counts)) ** 2) for counts in tally.counts]
        rows.append(np.concatenate([tally.n, *tally.counts, *combined]))
    return np.array(rows)


def assert_same_tallies(real: np.ndarray, drawn: np.ndarray) -> None:
    """Two-sample Kolmogorov-Smirnov on every number (conservative for integers), Bonferroni over the numbers."""
    p_values = [ks_2samp(a, b, method="asymp").pvalue for a, b in zip(real.T, drawn.T, strict=True)]
    assert min(p_values) > FALSE_ALARM / len(p_values), p_values


@pytest.fixture
def in_parts(monkeypatch) -> None:
    """Few devices at once: what is drawn for each of many is drawn in parts."""
    monkeypatch.setattr("ldp_simulations.fidelities._DEVICES_AT_ONCE", 7)


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    ("discrete", "continuous", "answers", "missing", "labelled"),
    [
        *((*one, False, True) for one in SETTINGS),
        *((*one, True, True) for one in OPEN),
        *((*one, False) for one in ALONE),
    ],
)
def test_every_fidelity_draws_from_the_distribution_of_the_device(
    discrete, continuous, answers, missing, labelled, make_everything, make_people
):
    """The same people, with missing, undeclared and out-of-bounds values, answer over and over."""
    shape = {"missing": missing, "labelled": labelled}
    campaign = make_everything(discrete=discrete, continuous=continuous, answers=answers, **shape)
    frame, labels = make_people(PEOPLE, 4)
    labels = labels if labelled else np.full(PEOPLE, None)
    real = tallies(campaign, frame, labels, "device")
    for fidelity in SIMULATORS:
        assert_same_tallies(real, tallies(campaign, frame, labels, fidelity))


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_a_seed_repeats_the_tally_and_every_device_answers_once(fidelity, make_everything, make_people):
    frame, labels = make_people(50, 2)
    one, every = make_everything(), make_everything(answers="all")
    first, again, other = (simulate(one, frame, labels, seed, fidelity=fidelity) for seed in (5, 5, 6))
    assert first == again != other
    assert first.n.sum() == 50
    answered = simulate(every, frame, labels, 5, fidelity=fidelity).n
    assert [sum(answered[q.index] for q in group) for group in every.groups] == [50] * len(every.groups)
    if fidelity in SIMULATORS:  # It is its simulator on the columns of the table.
        drawn = SIMULATORS[fidelity](Columns.of(one, frame, labels), np.random.default_rng(5), 30)
        assert simulate(one, frame, labels, 5, fidelity=fidelity, devices=30) == drawn


def test_an_undeclared_label_is_refused_at_every_fidelity_and_an_unknown_one_says_which_there_are(
    make_everything, make_people
):
    frame, labels = make_people(5, 2)
    with pytest.raises(ValueError, match="device, vector, counts"):
        simulate(make_everything(), frame, labels, 1, fidelity="perfect")
    labels.iloc[3] = "perhaps"
    for fidelity in FIDELITIES:
        with pytest.raises(RecordError, match="must be one of yes, no"):
            simulate(make_everything(), frame, labels, 1, fidelity=fidelity)


def test_devices_that_replace_what_they_lack_are_never_listed_all_at_once(monkeypatch, in_parts, make_everything):
    """Where many people lack a number that is called complete, a billion devices would not fit into memory."""
    campaign = make_everything(continuous="laplace")
    listed = []
    real = Columns.moments

    def noted(columns, question, rows, rng):
        listed.append(len(rows))
        return real(columns, question, rows, rng)

    monkeypatch.setattr(Columns, "moments", noted)
    people = pd.DataFrame(
        {"colour": ["red"] * 3, "age": [1, None, 2], "shape": ["round"] * 3, "hours": [None, 1, None]}
    )
    assert simulate(campaign, people, ["yes"] * 3, 1, fidelity="counts", devices=2_000).n.sum() == 2_000
    assert max(listed) <= 7
    assert sum(listed) > 150


@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize("missing", [False, True])
def test_missing_numbers_of_a_projection_are_what_they_are_on_every_device(make_people, missing):
    """Half of the people lack one input: ``counts`` must replace it per device, as the device does, or by its mean. Of
    those who lack both there is no output.
    """
    projection = {
        "method": "pca",
        "inputs": ["age", "hours"],
        "mean": [50, 3],
        "scale": [25, 2],
        "matrix": [[0.6, 0.8], [0.8, -0.6]],
        "outputs": [number("first", -3, 3, missing=missing), number("second", -3, 3, bins=3, missing=missing)],
        "fitted_on": "public",
    }
    features = number("age", high=100, missing=missing), number("hours", -1, 7, missing=missing)
    label, privacy = {"name": "outcome", "classes": ["yes", "no"]}, {"epsilon": 8.0, "answers": "all"}
    campaign = Campaign.compile(draft(*features, label=label, projection=projection, privacy=privacy))
    frame, labels = make_people(40, 6)
    frame.loc[::2, "hours"] = None
    frame.loc[::5, "age"] = None
    real = tallies(campaign, frame, labels, "device", 60)
    for fidelity in SIMULATORS:
        assert_same_tallies(real, tallies(campaign, frame, labels, fidelity, 60))
