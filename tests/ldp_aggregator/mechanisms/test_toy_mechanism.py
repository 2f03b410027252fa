"""A mechanism that nobody else has heard of is two classes and a line in each table, and everything works with it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from audited import Client
from drafts import draft, number, text

from ldp_aggregator import estimate, train
from ldp_aggregator.audit import audit
from ldp_aggregator.counting.payloads import lay_out
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.guarantees import published_guarantee
from ldp_aggregator.mechanisms import ENUMERATION, FACTS, analysis_of, verify_thoroughly, worst_case
from ldp_aggregator.mechanisms.analysis import Blanket, Flags, Integers, Limit, Rows, count_positions
from ldp_aggregator.mechanisms.pure import PureFacts
from ldp_client import perturb
from ldp_protocols import Campaign, Coins, DocumentError, encode_upload
from ldp_protocols.exact import exact_epsilon, exp_bounds, probability_down
from ldp_protocols.mechanisms import DISCRETE, MOMENTS, PURE, DirectEncoding, NoisyVector, PureMechanism, WorstCase
from ldp_protocols.mechanisms.base import Parameters, read_names, read_probability
from ldp_protocols.verification import CLOSED_FORM, verify
from ldp_simulations import simulate
from ldp_simulations.devices import lying_reports
from ldp_simulations.studies.planning import standard_errors

ONE = 2**64


DRAFT = draft(
    text("colour", "red", "green", "blue", missing=True),
    number("hours", high=10),
    number("age", high=90, bins=5),
    privacy={"epsilon": 2.0, "discrete": "toy", "continuous": "sign"},
)


@dataclass(frozen=True, slots=True)
class Uniform(PureMechanism):
    """The true index with probability ``told`` / 2**64, else any of the d, the true one among them; big-endian."""

    name: ClassVar[str] = "toy"
    domain_size: int
    told: int

    @classmethod
    def make(cls, domain_size: int, epsilon: Fraction) -> Uniform:
        e, _ = exp_bounds(epsilon)
        return cls(domain_size, probability_down((e - 1) / (e - 1 + domain_size)))

    @classmethod
    def from_parameters(cls, domain_size: int, parameters: Parameters) -> Uniform:
        read_names(parameters, "told")
        return cls(domain_size, read_probability(parameters, "told"))

    def parameters(self) -> dict[str, int | str]:
        return {"told": str(self.told)}

    def worst_case(self) -> WorstCase:
        return WorstCase(self.p / self.q)

    @property
    def p(self) -> Fraction:
        return Fraction(self.told, ONE) + self.q

    @property
    def q(self) -> Fraction:
        return Fraction(ONE - self.told, ONE * self.domain_size)

    @property
    def joint_support(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def width(self) -> int:
        return 3

    def perturb(self, item: int, coins: Coins) -> bytes:
        index = item if coins.bernoulli(self.told) else coins.below(self.domain_size)
        return index.to_bytes(3, "big")

    def check(self, payload: bytes) -> None:
        if int.from_bytes(payload, "big") >= self.domain_size:
            raise DocumentError("index-out-of-range")

    def support(self, payload: bytes) -> Collection[int]:
        self.check(payload)
        return (int.from_bytes(payload, "big"),)


class UniformFacts(PureFacts[Uniform]):
    """The same, as the aggregator asks."""

    name = "toy"
    words = "a toy: the true answer, or any"

    @property
    def limits(self) -> tuple[int, ...]:
        return (self.mechanism.domain_size,)

    @staticmethod
    def _named(rows: Rows) -> Integers:
        return rows[:, :3].astype(np.int64) @ np.array([1 << 16, 1 << 8, 1])

    @classmethod
    def refusals(cls, rows: Rows, limits: Sequence[Limit]) -> Iterator[tuple[str, Flags]]:
        yield "index-out-of-range", cls._named(rows) >= limits[0]

    @classmethod
    def sums(cls, rows: Rows, starts: Integers, cells: Integers, limits: Sequence[Limit]) -> list[Integers]:
        return count_positions(cls._named(rows), starts, cells)

    @property
    def law_size(self) -> int:
        return self.mechanism.domain_size**2

    def laws(self) -> Iterable[Sequence[Fraction]]:
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        return ([p if item == output else q for item in range(d)] for output in range(d))

    def blanket(self) -> Blanket:
        d, p, q = self.mechanism.domain_size, self.mechanism.p, self.mechanism.q
        return Blanket(p / q, d * q, q, Fraction(0))

    def reach(self, members: int) -> float:
        return 1 / self.gain

    def loudest(self, cells: Sequence[int], *, high: bool = True, against: Sequence[int] = ()) -> bytes:
        return cells[0].to_bytes(3, "big")

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:
        told = rng.random(len(items)) < self.mechanism.told / ONE
        sent = np.where(told, items, rng.integers(0, self.mechanism.domain_size, len(items)))
        return sent.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:].copy()

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        told = rng.binomial(holders, self.mechanism.told / ONE)
        d = self.mechanism.domain_size
        return told + rng.multinomial(int((holders - told).sum()), np.full(d, 1 / d))


@pytest.fixture(autouse=True)
def campaign(monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A campaign that asks with it, in every encoding there is."""
    monkeypatch.setitem(DISCRETE, "toy", Uniform)
    monkeypatch.setitem(PURE, "toy", Uniform)
    monkeypatch.setitem(FACTS, "toy", UniformFacts)
    # ``sign`` is asked with whichever fits best: here nothing else is left.
    for name in [name for name in PURE if name != "toy"]:
        monkeypatch.delitem(PURE, name)
    return Campaign.compile(DRAFT)


@pytest.fixture
def people() -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(5)
    labels = rng.choice(["a", "b"], 6000, p=[0.6, 0.4])
    late = labels == "b"
    colours = np.where(rng.random(6000) < 0.2 + 0.5 * late, "red", rng.choice(["green", "blue"], 6000)).astype(object)
    colours[rng.random(6000) < 0.1] = None
    hours, age = rng.uniform(0, 6, 6000) + 4 * late, rng.uniform(0, 90, 6000)
    return pd.DataFrame({"colour": colours, "hours": hours, "age": age}), pd.Series(labels)


def test_it_is_counted_as_it_says_itself(campaign: Campaign) -> None:
    record = {"colour": "red", "hours": 3.0, "age": 44}
    uploads = [encode_upload(perturb(campaign, record, "ab"[i % 2]), campaign) for i in range(500)]
    tally = Tally.of_uploads(campaign, uploads)
    assert int(tally.n.sum()) == 500
    questions, payloads = [0, 0, 1, len(campaign.questions) - 1], [b"\0\0\1", b"\1\0\0", b"\0\0\2", b"\0\0\0"]
    for copies in (1, 100):  # A few reports to each of many questions, and many reports to each.
        laid_out = lay_out(campaign, np.repeat(questions, copies), b"".join(one * copies for one in payloads))
        codes = {place: code for sheet in laid_out for place, code in sheet.refusals().items()}
        assert codes == dict.fromkeys(range(copies, 2 * copies), "index-out-of-range")
        sound = np.repeat([True, False, True, True], copies)
        sums = {q: (n, counts.tolist()) for sheet in laid_out for q, (n, counts) in sheet.sums(sound).items()}
        assert sums[0] == (copies, [0, copies])
        assert sums[1][1][2] == copies


def test_every_question_is_asked_with_it_and_its_laws_are_its_closed_form(campaign: Campaign) -> None:
    assert {question.mechanism.name for question in campaign.questions} == {"toy"}
    assert Campaign.parse(campaign.document) == campaign
    assert {question.encoding for question in campaign.questions} == {"index", "sign"}
    thorough = verify_thoroughly(campaign)
    assert thorough.holds
    assert {check.method for check in thorough.questions} == {ENUMERATION}
    assert all(check.worst == check.question.mechanism.worst_case() for check in thorough.questions)


@pytest.mark.parametrize("fidelity", ["device", "vector", "counts"])
def test_it_is_simulated_and_estimated_without_bias(campaign, people, fidelity) -> None:
    """Five standard errors over some forty cells: wrong once in 40,000."""
    frame, labels = people
    tally = simulate(campaign, frame, labels, 7, fidelity=fidelity)
    found = estimate(campaign, tally)
    share = (labels == "b").mean()
    assert abs(found.class_prior.value[1] - share) < 5 * np.sqrt(found.class_prior.variance[1])
    assert np.isfinite(found.questions[1].cells.variance).all()
    (colour,) = (one for one in found.questions if one.question.feature == "colour")
    red = [((frame["colour"] == "red") & (labels == name)).mean() for name in "ab"]
    assert np.all(np.abs(colour.cells.value[:2] - red) < 5 * np.sqrt(colour.cells.variance[:2]))


def test_it_is_trained_published_lied_about_planned_and_audited(campaign, people) -> None:
    frame, labels = people
    model = train(campaign, simulate(campaign, frame, labels, 7, fidelity="counts", devices=200_000))
    assert json.loads(model.to_json())["training"]["lies"]
    assert (model.predict(frame) == labels).mean() > 0.7
    assert published_guarantee(campaign, 10_000_000, delta=1e-9).epsilon < 2.0
    reports = lying_reports(campaign, campaign.questions, 1)
    for question, report in zip(campaign.questions, reports, strict=True):
        question.mechanism.check(report.payload)
    assert all((error > 0).all() and np.isfinite(error).all() for error in standard_errors(campaign, 100_000))
    result = audit(campaign.document.decode(), Client(), 100, rng=np.random.default_rng(1), wrong=1e-7)
    assert result.passed, "the client's coins are live: a sound one fails once in 10**7 runs"
    assert analysis_of(campaign.questions[0].mechanism).words == UniformFacts.words


ALL = {**DISCRETE, **MOMENTS}


def campaign_of(**privacy):
    features = text("u", "1", "2", "missing"), number("v"), number("w", -3, 8, bins=40)
    label = {"name": "y", "classes": ["a", "b", "c"]}
    return Campaign.compile(draft(*features, label=label, privacy={"epsilon": 1.0, **privacy}))


@pytest.mark.parametrize("name", [name for name, kind in ALL.items() if not issubclass(kind, NoisyVector)])
def test_enumeration_and_closed_form_give_the_same_ratio(name):
    for size in range(2, 9):
        for epsilon in (0.01, 1.0, 6.0):
            mechanism = ALL[name].make(size, exact_epsilon(epsilon))
            assert worst_case(mechanism) == (mechanism.worst_case(), ENUMERATION)


def test_a_device_enumerates_nothing_and_finds_what_the_enumeration_finds_whose_json_form_is_plain_data():
    campaign = campaign_of(discrete="oue", answers="all")
    thorough, quick = verify_thoroughly(campaign), verify(campaign)
    assert {check.method for check in quick.questions} == {CLOSED_FORM}
    assert ENUMERATION in {check.method for check in thorough.questions}
    assert [check.worst.loss for check in quick.questions] == [check.worst.loss for check in thorough.questions]
    assert quick.loss == thorough.loss
    told = verify_thoroughly(campaign_of(discrete="the")).to_json()
    assert json.loads(json.dumps(told)) == told
    assert told["holds"]
    assert told["realised_epsilon"] <= told["epsilon"]
    assert {row["method"] for row in told["questions"]} == {ENUMERATION, CLOSED_FORM}


def test_large_domains_take_the_closed_form_and_a_mechanism_that_excludes_an_output_has_no_finite_ratio():
    assert analysis_of(DISCRETE["oue"].make(8, Fraction(1))).law_size == 8 * 2**8
    assert analysis_of(DISCRETE["she"].make(2, Fraction(1))).law_size == 0
    assert analysis_of(DISCRETE["oue"].make(65536, Fraction(1))).law_size == 0
    assert worst_case(DISCRETE["oue"].make(1024, Fraction(1)))[1] == CLOSED_FORM
    assert worst_case(DISCRETE["ss"].make(1024, Fraction(1)))[1] == CLOSED_FORM
    for prove in (worst_case, DirectEncoding.worst_case):
        with pytest.raises(ZeroDivisionError):
            prove(DirectEncoding(4, ONE))
