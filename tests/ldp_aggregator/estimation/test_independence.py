"""Whether features tell anything of the class: a score that is exact, and a stated rate of false alarms, whatever asks
the questions.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from drafts import draft, number, text
from scipy.stats import binom, chi2

from ldp_aggregator import Tally
from ldp_aggregator.estimation import independence
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.evidence import covariance_of_cells
from ldp_aggregator.estimation.independence import covariance_of_shares, p_value
from ldp_aggregator.learning.series import present
from ldp_aggregator.learning.training import Decoding, learn
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Campaign
from ldp_protocols.document.model import GaussianLikelihood
from ldp_simulations import simulate
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts

WINDOWS = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 10}


@dataclass(frozen=True)
class Null:
    """Features that tell nothing: ``features`` of these ``values`` (their shares), or numbers about a ``mean`` where
    there are none.
    """

    features: int
    devices: int
    epsilon: float = 1.0
    prior: tuple[float, ...] = (0.5, 0.5)
    values: tuple[float, ...] = ()
    mean: float = 0.0
    missing: float = 0.0
    privacy: tuple[tuple[str, str], ...] = ()
    copies: bool = False
    others: tuple[tuple[float, int, tuple[float, ...]], ...] = ()
    """Epsilon, devices and classes of campaigns that are pooled with it."""
    windows: bool = False

    def campaign(self, epsilon, number_of_it):
        gaps, label = self.missing > 0, {"name": "y", "classes": [f"c{n}" for n in range(len(self.prior))]}
        names = [f"x{n}" for n in range(self.features)]
        declared = [text(name, *map(str, range(len(self.values))), missing=gaps) for name in names]
        if not self.values:
            declared = [number(name, -1, 1, missing=gaps) for name in names]
        changes = {"windows": WINDOWS} if self.windows else {}
        privacy = {"epsilon": epsilon, **dict(self.privacy)}
        return Campaign.compile(draft(*declared, label=label, privacy=privacy, study=f"s{number_of_it}", **changes))

    def drawn(self, devices, rng):
        if self.values:
            codes = rng.choice(len(self.values), devices, p=self.values)
            return pd.Categorical.from_codes(codes, [*map(str, range(len(self.values)))])
        return np.clip(self.mean + rng.exponential(0.1, devices) - 0.1 * (self.mean == 0), -1, 1)

    def counted(self, campaign, devices, prior, rng):
        """A tally drawn from the exact law of the counts, where each device answers one question."""
        tally, weights = Tally(campaign), np.array([one.weight for one in campaign.questions], dtype=float)
        for question, n in zip(campaign.questions, rng.multinomial(devices, weights / weights.sum()), strict=True):
            held = np.outer(self.values, prior).ravel() * (1 - self.missing)
            cells = held if not self.missing else np.concatenate([held, self.missing * np.array(prior)])
            law = prior if question.feature is None else cells
            tally.add(question.index, int(n), analysis_of(question.mechanism).tally(rng.multinomial(n, law), rng))
        return tally

    def pairs(self, rng):
        found = []
        for place, (epsilon, devices, prior) in enumerate([(self.epsilon, self.devices, self.prior), *self.others]):
            campaign = self.campaign(epsilon, place)
            if self.values and not (self.privacy == ALL or self.windows):
                found.append((campaign, self.counted(campaign, devices, prior, rng)))
                continue
            first = self.drawn(devices, rng)
            frame = pd.DataFrame(
                {f"x{n}": first if self.copies else self.drawn(devices, rng) for n in range(self.features)}
            )
            labels = pd.Categorical.from_codes(rng.choice(len(prior), devices, p=prior), [*campaign.label.classes])
            tally = simulate(campaign, frame, labels, rng, devices=devices if self.windows else None)
            found.append((campaign.one_window, present(campaign, tally)) if self.windows else (campaign, tally))
        return found


def p_of(pairs):
    learned = learn(pairs, Decoding())
    numbers = [one.feature.name for one in learned.model.likelihoods if isinstance(one, GaussianLikelihood)]
    return p_value(learned.estimates, learned.posterior, numbers, learned.shares, learned.telling)


EVEN3, RARE = (1 / 3,) * 3, (0.999, 0.001)
ZIPF = tuple((1 / np.arange(1, 17) ** 2 / (1 / np.arange(1, 17) ** 2).sum()).tolist())
ALL = (("answers", "all"),)
EACH = (1.0, 2.0, 4.0, 8.0)

SETTINGS = {
    **{f"values-{e:g}": Null(10, 20_000, e, values=EVEN3) for e in EACH},
    **{
        f"{d}-4": Null(5, 2_000, 4.0, values=ZIPF, privacy=(("discrete", d),))
        for d in ("de", "oue", "sue", "she", "the")
    },
    **{f"rare-class-{e:g}": Null(10, 40_000, e, RARE, EVEN3) for e in EACH},
    **{f"rare-values-{e:g}": Null(5, 2_000, e, values=ZIPF) for e in EACH},
    **{f"missing-{e:g}": Null(10, 20_000, e, (0.8, 0.2), EVEN3, missing=0.3) for e in EACH},
    **{
        f"{how}-{where}-{e:g}": Null(10, 20_000, e, mean=mean, privacy=(("continuous", how),))
        for how in ("sign", "onebit", "laplace")
        for where, mean in (("centred", 0.0), ("end", -0.95))
        for e in EACH
    },
    **{
        f"copies-{e:g}": Null(4 if e < 40 else 10, 5_000, e, values=(0.5, 0.5), privacy=ALL, copies=True)
        for e in (4.0, 16.0, 40.0)
    },
    **{f"copies-of-numbers-{e:g}": Null(4, 5_000, e, privacy=ALL, copies=True) for e in (4.0, 16.0)},
    **{f"all-own-{e:g}": Null(4, 5_000, e, (0.8, 0.2), EVEN3, privacy=ALL) for e in (4.0, 16.0)},
    "pooled-two": Null(10, 40_000, 0.5, values=(0.5, 0.5), others=((4.0, 2_000, (0.5, 0.5)),)),
    "pooled-five": Null(
        10,
        20_000,
        0.5,
        (0.7, 0.3),
        EVEN3,
        others=((1.0, 10_000, (0.7, 0.3)),) * 2 + ((2.0, 5_000, (0.7, 0.3)), (4.0, 1_000, (0.7, 0.3))),
    ),
    "pooled-classes-differ": Null(10, 20_000, 1.0, (0.7, 0.3), (0.5, 0.5), others=((1.0, 20_000, (0.4, 0.6)),)),
    "pooled-signs": Null(10, 10_000, 2.0, others=((8.0, 10_000, (0.5, 0.5)),)),
    "pooled-bits": Null(
        10, 10_000, 2.0, mean=-0.95, privacy=(("continuous", "onebit"),), others=((8.0, 10_000, (0.5, 0.5)),)
    ),
    "windows-1": Null(5, 20_000, 1.0, values=EVEN3, windows=True),
    "windows-4": Null(5, 5_000, 4.0, (0.8, 0.2), EVEN3, windows=True),
    "windows-signs": Null(5, 20_000, 4.0, windows=True),
}
FEW = [
    "values-1",
    "rare-class-4",
    "rare-values-8",
    "sign-centred-8",
    "onebit-end-4",
    "copies-40",
    "copies-of-numbers-16",
]


@pytest.mark.parametrize(
    ("name", "runs"),
    [*((name, 60) for name in FEW), *(pytest.param(name, 1_000, marks=pytest.mark.long) for name in SETTINGS)],
)
def test_features_that_tell_nothing_are_said_to_tell_something_in_two_of_a_hundred_campaigns_at_most(name, runs):
    """At .02 more than this are a chance of .02 (1,000 runs), of .0001 (60 runs: six); these seeds are as they are."""
    found = [p_of(SETTINGS[name].pairs(np.random.default_rng([7, run]))) for run in range(runs)]
    wrong = sum(p <= 0.015 for p in found)
    assert wrong <= (6 if runs == 60 else 0.02 * runs + 2 * (0.02 * 0.98 * runs) ** 0.5), wrong / runs


def test_there_are_sixty_settings():
    assert len(SETTINGS) == 60


@pytest.mark.parametrize("mechanism", ["ss", "de", "oue", "sue", "she", "the"])
@pytest.mark.parametrize("missing", [False, True])
def test_the_score_is_what_least_squares_leave_beside_all_nuisances(mechanism, missing, monkeypatch):
    """By the dense covariance of all cells, and a basis of what is orthogonal to every direction of a nuisance."""
    monkeypatch.setattr(independence, "LEAST_EXPECTED", 0.0)
    classes = ["a", "b", "c"]
    campaign = Campaign.compile(
        draft(
            text("x", "0", "1", "2", "3", missing=missing),
            label={"name": "y", "classes": classes},
            privacy={"epsilon": 2.0, "discrete": mechanism},
        )
    )
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"x": rng.choice(["0", "1", "2", "3"], 3_000)})
    told = estimate(campaign, simulate(campaign, frame, rng.choice(classes, 3_000), rng)).asking("x", "pair")
    marginal, shares = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.5, 0.3, 0.2]) * (0.9 if missing else 1.0)
    f = np.outer(marginal, shares).ravel()
    absent = np.array([0.05, 0.03, 0.02])
    nuisance = [np.outer(np.eye(4)[v], shares).ravel() for v in range(4)]
    nuisance += [np.outer(marginal, np.eye(3)[c]).ravel() for c in range(3)]
    if missing:
        f = np.concatenate([f, absent])
        nuisance = [np.concatenate([one, np.zeros(3)]) for one in nuisance] + list(np.eye(15)[12:])
    left = np.linalg.svd(np.array(nuisance))[2][np.linalg.matrix_rank(np.array(nuisance)) :].T
    covariance = left.T @ (covariance_of_cells(told.question, f) / told.n) @ left
    score = left.T @ told.cells.value
    found = independence._score_of_table(independence.Answers([told], [False]), marginal, shares)
    assert found.square == pytest.approx(score @ np.linalg.solve(covariance, score), rel=1e-6)
    assert [one.size for one in found.shared] == [6]
    assert not found.shared[0].any()


def test_rare_values_are_one_group_in_which_enough_reports_are_expected():
    groups = independence._together(np.array([0.1, 0.5, 0.02, 0.38]), np.array([2.0, 9.0, 0.4, 7.0]))
    assert [group.tolist() for group in groups] == [[1], [3, 0, 2]]
    groups = independence._together(np.array([0.1, 0.5, 0.05, 0.35]), np.array([2.0, 9.0, 1.5, 7.0]))
    assert [group.tolist() for group in groups] == [[1], [3], [0, 2]]
    assert [group.tolist() for group in independence._together(np.array([0.6, 0.4]), np.array([1.0, 0.5]))] == [[0, 1]]


@pytest.mark.parametrize("mechanism", ["ss", "de", "oue", "she"])
def test_the_covariance_of_shares_is_that_of_the_cells_that_they_add_up(mechanism):
    campaign = Campaign.compile(
        draft(
            text("x", "0", "1", "2"),
            label={"name": "y", "classes": ["a", "b", "c"]},
            privacy={"epsilon": 2.0, "discrete": mechanism},
        )
    )
    (question,) = [one for one in campaign.questions if one.kind == "pair"]
    classes = np.array([0.5, 0.3, 0.2])
    cells = covariance_of_cells(question, np.outer([0.2, 0.5, 0.3], classes).ravel()).reshape(3, 3, 3, 3)
    assert covariance_of_shares(question, classes) == pytest.approx(cells.sum(axis=(0, 2)), rel=1e-9, abs=1e-12)


def test_scores_that_share_nothing_are_chi_squared_and_those_that_share_all_are_one_score_as_often_as_there_are():
    free, alike = np.zeros(3), np.ones(3)
    assert independence._tail(14.0, [free] * 2) == pytest.approx(chi2.sf(14.0, 6))
    assert independence._tail(14.0, [alike] * 2) == pytest.approx(chi2.sf(7.0, 3))
    assert independence._tail(14.0, [alike, free]) == pytest.approx(chi2.sf(14.0, 6))
    assert independence._tail(0.0, []) == 1.0


def test_half_shared_scores_are_as_long_as_drawn_ones():
    rng, share = np.random.default_rng(1), 0.5
    drawn = np.sqrt(share) * rng.standard_normal((400_000, 2, 1)) + np.sqrt(1 - share) * rng.standard_normal(
        (400_000, 2, 5)
    )
    squares = (drawn**2).sum(axis=(1, 2))
    for tail in (0.1, 0.015):
        limit = np.quantile(squares, 1 - tail)
        assert independence._tail(limit, [np.full(2, share)] * 5) == pytest.approx(tail, rel=0.1)


def test_without_a_report_nothing_is_told():
    campaign = Campaign.compile(draft(text("x", "0", "1"), number("g")))
    assert p_of([(campaign, Tally(campaign))]) == 1.0


@pytest.mark.parametrize("how", ["sign", "onebit", "laplace"])
def test_numbers_and_copies_that_tell_something_are_found(how):
    """The worst that records may share costs some power, not all: a gap of a seventh of the range, under ``all``."""
    rng = np.random.default_rng(3)
    of_b = rng.random(20_000) < 0.5
    frame = pd.DataFrame({f"x{n}": np.clip(rng.normal(0.3 * of_b, 0.1), -1, 1) for n in range(3)})
    for answers in ("one", "all"):
        privacy = {"epsilon": 6.0, "continuous": how, "answers": answers}
        campaign = Campaign.compile(draft(*(number(f"x{n}", -1, 1) for n in range(3)), privacy=privacy))
        tally = simulate(campaign, frame, np.where(of_b, "b", "a"), rng)
        assert p_of([(campaign, tally)]) < 1e-4


def together(epsilon, dependence, missing, runs):
    """The p-values of so many campaigns that ask two features of 3 and 4 values together."""
    rng, people = np.random.default_rng(11), 4000
    first, other = rng.choice(3, people, p=[0.5, 0.3, 0.2]), rng.choice(4, people, p=[0.4, 0.3, 0.2, 0.1])
    other = np.where(rng.random(people) < dependence, first, other)
    frame = pd.DataFrame({"a": [f"v{v}" for v in first], "b": [f"v{v}" for v in other]}, dtype=object)
    frame.loc[rng.random(people) < missing, "a"] = None
    # Independent in the table too, but for what is said: every pair stands there as often as its shares have it.
    if not dependence:
        frame = pd.concat([frame.assign(b=list(np.roll(frame["b"], 37 * shift))) for shift in range(40)])
    features = [text("a", "v0", "v1", "v2", missing=missing > 0), text("b", "v0", "v1", "v2", "v3")]
    campaign = Campaign.compile(draft(*features, label=None, pairs=[["a", "b"]], privacy={"epsilon": epsilon}))
    columns = Columns.of(campaign, frame, np.full(len(frame), None))
    for seed in range(runs):
        tally = simulate_counts(columns, np.random.default_rng(seed), 6000)
        found = estimate(campaign, tally)
        yield independence.joint_p_value(found, found.questions[-1])


@pytest.mark.parametrize(
    ("epsilon", "missing", "runs"),
    [
        (1.0, 0.1, 80),
        *(pytest.param(*one, 1000, marks=pytest.mark.long) for one in ((1.0, 0.0), (0.5, 0.3), (4.0, 0.1))),
    ],
)
def test_two_features_that_tell_nothing_of_each_other_are_seldom_called_dependent(epsilon, missing, runs):
    """By chance as many more than .05 are below it, or than .5, less than once in 10^5."""
    values = np.array(list(together(epsilon, 0.0, missing, runs)))
    assert binom.sf((values < 0.05).sum() - 1, runs, 0.05) > 1e-5
    assert 1e-5 < binom.cdf((values < 0.5).sum(), runs, 0.5) < 1 - 1e-5


def test_two_features_that_go_together_are_called_dependent():
    assert np.median(list(together(2.0, 0.3, 0.1, 15))) < 1e-3


def test_without_answers_to_each_feature_alone_nothing_is_said_of_two():
    campaign = Campaign.compile(draft(text("a", "x", "y"), text("b", "x", "y"), label=None, pairs=[["a", "b"]]))
    found = estimate(campaign, Tally(campaign))
    assert independence.joint_p_value(found, found.questions[-1]) == 1.0
