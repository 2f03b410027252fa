"""Kinds of features that nobody else has heard of are a class and a row of a table, and everything works with them."""

from __future__ import annotations

import json
import math
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from audited import Client
from drafts import draft, text
from exact_coins import SeededCoins

from ldp_aggregator import NaiveBayes, estimate, train
from ldp_aggregator.audit import audit
from ldp_aggregator.audit.asking import features as audited
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.dashboard.drawing.learned_features import believed, of_features
from ldp_aggregator.dashboard.public import _asked
from ldp_aggregator.evaluation.rounds import evaluation_draft
from ldp_aggregator.learning.projections import add_to_draft, fit_projection, moments_of_table
from ldp_aggregator.trainers import FederatedNB, PrivateKMeans, SufficientStatisticsNB
from ldp_aggregator.trainers.kmeans import read_clusters
from ldp_client import Classifier, perturb
from ldp_client.answering import encode, item_of
from ldp_client.problems import record_problems
from ldp_protocols import Campaign, DraftError, encode_upload
from ldp_protocols.features import KINDS, Feature, NumericFeature, read_missing
from ldp_protocols.fields import Fields
from ldp_protocols.values import number_of
from ldp_simulations import simulate
from ldp_simulations.columns import Columns
from ldp_simulations.commands.plan import make_plan
from ldp_simulations.studies.planning import standard_errors
from ldp_simulations.tables import Table, typed

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cyclic(Feature):
    """A number on a circle, such as the hour of a day: asked is in which of its equal parts it lies."""

    kind: ClassVar[str] = "cyclic"
    sized_by: ClassVar[str] = "parts"

    name: str
    period: float
    parts: int
    weight: int = 1
    missing: bool = True

    @classmethod
    def read(cls, fields: Fields, name: str, weight: int) -> Cyclic:
        period = fields.number("period")
        if period <= 0:
            raise fields.error("period", f"must be above 0, not {period}")
        return cls(name, period, fields.integer("parts", least=2, most=1000), weight, read_missing(fields))

    @classmethod
    def read_modelled(cls, fields: Fields, name: str) -> Cyclic:
        return cls(name, fields.number("period"), fields.integer("parts", least=2, most=1000))

    def to_json(self) -> dict[str, Any]:
        size = {"period": self.period, "parts": self.parts}
        return {"name": self.name, "kind": self.kind, **size, "weight": self.weight, "missing": self.missing}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.period * part / self.parts:g}" for part in range(self.parts))

    def index_of(self, value: object) -> int | None:
        number = number_of(value)
        if number is None or not math.isfinite(number):
            return None
        return min(int(number % self.period * self.parts / self.period), self.parts - 1)

    def wanted(self, most: int | None = None) -> str:
        return f"a number, to which {self.period} may be added"

    def wrong_with(self, value: object) -> str | None:
        return None if self.index_of(value) is not None else "is no number on a circle"


class Percentage(NumericFeature):
    """A number from 0 to 100, asked as it is."""

    kind = "percentage"

    @classmethod
    def read(cls, fields: Fields, name: str, weight: int) -> Percentage:
        return cls(name, 0, 100, None, weight, read_missing(fields))

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "weight": self.weight, "missing": self.missing}


class AskedCycle(audited.AskedFeature):
    """The same, as an audit asks about it."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        self.name, self.period = declared["name"], declared["period"]
        self.cells = self.size = declared["parts"]
        self.ends = 0, self.drawn(self.cells - 1, np.random.default_rng())

    def between(self, rng: np.random.Generator) -> list[object]:
        return [self.drawn(cell, rng) for cell in range(1, self.cells - 1)]

    def far(self, sign: int) -> object:
        return sign * math.inf

    def cell_of(self, value: object) -> int | None:
        known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < self.period
        return int(value * self.cells / self.period) if known else None

    def drawn(self, cell: int, rng: np.random.Generator) -> object:
        return self.period * (cell + 0.5) / self.cells


class AskedPercentage(audited.Numbers):
    def __init__(self, declared: Mapping[str, Any]) -> None:
        super().__init__({**declared, "low": 0, "high": 100})


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    for kind, asked in ((Cyclic, AskedCycle), (Percentage, AskedPercentage)):
        monkeypatch.setitem(KINDS, kind.kind, kind)
        monkeypatch.setitem(audited.KINDS, kind.kind, asked)


HOUR = {"name": "hour", "kind": "cyclic", "period": 24, "parts": 6}
LIGHT = {"name": "light", "kind": "percentage"}
DRAFT = draft(
    text("colour", "red", "green"),
    HOUR,
    LIGHT,
    {**LIGHT, "name": "sound", "missing": False},
    study="s",
    privacy={"epsilon": 2.0},
)


def people(number: int, seed: int = 5) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(seed)
    labels = rng.choice(["a", "b"], number, p=[0.6, 0.4])
    late = labels == "b"
    hours = (rng.normal(0, 2, number) + 12 * late).round(1)  # Around midnight, on both sides of it, and around noon.
    hours[rng.random(number) < 0.1] = np.nan
    light, sound = (np.clip(rng.normal(mean + 30 * late, 12), -5, 110) for mean in (30, 55))
    colours = np.where(rng.random(number) < 0.3 + 0.3 * late, "red", "green")
    return pd.DataFrame({"colour": colours, "hour": hours, "light": light, "sound": sound}), pd.Series(labels)


def test_a_draft_declares_them_and_a_document_says_them_again() -> None:
    campaign = Campaign.compile(DRAFT)
    assert Campaign.parse(campaign.document) == campaign
    described = {one["name"]: one for one in json.loads(campaign.document)["features"]}
    assert described["hour"] == {**HOUR, "weight": 1, "missing": True}
    assert described["light"] == {**LIGHT, "weight": 1, "missing": True}
    asked = [(one.kind, one.feature, one.domain_size) for one in campaign.questions if one.feature in ("hour", "light")]
    assert asked == [("pair", "hour", 14), ("value", "light", 6), ("square", "light", 6)]
    for changed, place in (
        ({"period": -1}, r"features\[0\].period"),
        ({"parts": None}, r"features\[0\].parts"),
        ({"low": 0}, "low: unknown key"),
        ({"kind": "lunar"}, "one of categorical, continuous, cyclic, percentage"),
    ):
        with pytest.raises(DraftError, match=place):
            Campaign.compile(draft({**HOUR, **changed}))
    classes = {"name": "y", "classes": [str(number) for number in range(100)]}
    with pytest.raises(DraftError, match=r"features\[0\].parts: values times classes"):
        Campaign.compile(draft({**HOUR, "parts": 1000}, label=classes))


def test_a_device_answers_them_and_tells_its_developer_what_is_wrong() -> None:
    campaign, coins = Campaign.compile(DRAFT), SeededCoins(1)
    hour = next(one for one in campaign.questions if one.feature == "hour")
    for value, part in ((0, 0), ("23.5", 5), (-0.5, 5), (28, 1), (None, 6), ("late", 6), (math.inf, 6)):
        assert encode(campaign, hour, {"hour": value}, 1, coins) == 2 * part + 1
    light = next(one for one in campaign.questions if one.feature == "light")
    assert [encode(campaign, light, {"light": value}, 1, coins) for value in (-7, 100, None)] == [3, 4, 5]
    found = record_problems(campaign, {"colour": "red", "hour": "late", "light": "dim"})
    assert [str(problem) for problem in found] == [
        'hour: "late" is no number on a circle; must be a number, to which 24 may be added',
        'light: "dim" is no number; must be a number from 0 to 100',
        "sound: the record does not hold it; must be a number from 0 to 100",
    ]


@pytest.mark.parametrize("fidelity", ["device", "vector", "counts"])
def test_answers_are_counted_and_estimated_without_bias(fidelity: str) -> None:
    """Five standard errors over some forty cells: wrong once in 40,000, with the same coins in every run."""
    campaign = Campaign.compile(DRAFT)
    frame, labels = people(6000)
    found = estimate(campaign, simulate(campaign, frame, labels, 7, fidelity=fidelity))
    hour = found.asking("hour", "pair").cells
    parts = [KINDS["cyclic"].index_of(campaign.feature("hour"), value) for value in frame["hour"]]
    for part in range(6):
        share = np.mean((np.array(parts, dtype=float) == part) & (labels == "a"))
        assert abs(hour.value[2 * part] - share) < 5 * math.sqrt(hour.variance[2 * part])
    light, held = found.moments["light"], frame["light"].clip(0, 100)
    for place, name in enumerate("ab"):
        assert abs(light.mean[place] - held[labels == name].mean()) < 5 * math.sqrt(light.mean_variance[place])
    told = found.to_frame()
    assert set(told.loc[told["feature"] == "hour", "value"].dropna()) >= {"0", "4", "20", "missing"}


def test_an_upload_of_them_is_counted_as_it_was_sent() -> None:
    campaign = Campaign.compile({**DRAFT, "privacy": {"epsilon": 2.0, "answers": "all"}})
    record = {"colour": "red", "hour": 3, "light": 10, "sound": 20}
    uploads = [encode_upload(perturb(campaign, record, "b"), campaign) for _ in range(50)]
    assert Tally.of_uploads(campaign, uploads).n.sum() == 50 * 5


def test_a_model_of_them_is_trained_and_a_device_classifies_as_the_aggregator_does() -> None:
    campaign = Campaign.compile(DRAFT)
    frame, labels = people(3000)
    model = train(campaign, simulate(campaign, frame, labels, 7, fidelity="counts", devices=200_000))
    assert (model.predict(frame) == labels).mean() > 0.9
    written = json.loads(model.to_json())
    assert {one["name"]: one["kind"] for one in written["features"]} == {
        "colour": "categorical",
        "hour": "cyclic",
        "light": "gaussian",
        "sound": "gaussian",
    }
    assert written["training"]["lies"]
    again = NaiveBayes.from_json(model.to_json())
    device = Classifier.from_json(model.to_json())
    rows = frame.head(200).astype(object).where(frame.head(200).notna(), None)
    for row, scores in zip(rows.to_dict("records"), again.predict_joint_log_proba(frame.head(200)), strict=True):
        assert device.joint_log_likelihood(row) == pytest.approx(scores)


def test_how_good_that_model_is_is_asked_alike_by_a_device_and_by_a_simulation() -> None:
    campaign = Campaign.compile(DRAFT)
    frame, labels = people(300)
    model = train(campaign, simulate(campaign, frame, labels, 7, fidelity="counts", devices=100_000)).model_
    asked = Campaign.compile(evaluation_draft([campaign], model))
    columns = Columns.of(asked, frame, labels)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    for question in asked.questions:
        answers = [
            item_of(asked, question, row, "ab".index(label), SeededCoins(1))
            for row, label in zip(rows, labels, strict=True)
        ]
        assert columns.of_the_model(question).tolist() == answers


def test_a_plan_is_made_of_them_with_and_without_people() -> None:
    campaign, half = (Campaign.compile({**DRAFT, "privacy": {"epsilon": epsilon}}) for epsilon in (2.0, 1.0))
    pilot = Table(*people(500))
    for known in (None, pilot):
        errors = standard_errors(campaign, 100_000, known)
        assert all((error > 0).all() and np.isfinite(error).all() for error in errors)
        assert len(make_plan(campaign, half, 100_000, known)["questions"]) == len(campaign.questions)


def test_an_audit_asks_about_them_and_passes_a_sound_client() -> None:
    """A sound client fails once in 10**7 runs: its coins are live."""
    document = Campaign.compile(DRAFT).document.decode()
    result = audit(document, Client(), 100, rng=np.random.default_rng(1), wrong=1e-7)
    assert result.passed, result.findings
    asked = [dict.get(person.record, "hour") for person in result.people]
    assert {0, math.inf, 22.0, 10.0} <= {hour for hour in asked if isinstance(hour, (int, float))}


def test_an_audit_of_a_kind_that_it_does_not_know_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(audited.KINDS, "cyclic")
    with pytest.raises(ValueError, match="feature hour is cyclic; an audit asks about categorical, continuous, "):
        audit(Campaign.compile(DRAFT).document.decode(), Client(), 5)


@pytest.mark.filterwarnings("ignore::ldp_aggregator.trainers.randomness.PrivacyWarning")
def test_trainers_and_projections_take_them() -> None:
    frame, labels = people(2000)
    schema = {"label": DRAFT["label"], "features": DRAFT["features"]}
    baseline = NaiveBayes(schema).fit(frame, labels)
    for trainer in (SufficientStatisticsNB, FederatedNB):
        trained = trainer(schema, epsilon=4.0, random_state=1).fit(frame, labels)
        assert (trained.predict(frame) == labels).mean() > (baseline.predict(frame) == labels).mean() - 0.05
    clusters = PrivateKMeans(schema, n_clusters=2, epsilon=4.0, random_state=1).fit(frame)
    assert [one.name for one in read_clusters(clusters.to_json()).features] == ["light", "sound"]
    campaign = Campaign.compile(DRAFT)
    numbers = [one.number for one in campaign.features if one.number]
    public = frame.assign(**{campaign.label.name: labels})
    projected = Campaign.compile(
        add_to_draft(DRAFT, fit_projection(moments_of_table(numbers, campaign.label, public), "dca", 1))
    )
    assert [one.name for one in projected.asked] == ["colour", "hour", "dca1"]
    model = train(projected, simulate(projected, frame, labels, 3, fidelity="counts", devices=100_000))
    row = {"hour": 1, "light": 20, "sound": 40}
    one = frame.head(1).assign(**row, colour=None)
    assert Classifier.from_json(model.to_json()).scores(row) == pytest.approx(model.scores(one)[0])
    with pytest.raises(DraftError, match="'hour' is cyclic; a projection takes features that are numbers"):
        Campaign.compile({**DRAFT, "projection": {"method": "pca", "inputs": ["hour"]}})
    moments = draft(LIGHT, HOUR, asks="moments", study="s")
    with pytest.raises(DraftError, match=r"features\[1\].kind: is cyclic"):
        Campaign.compile(moments)
    assert len(Campaign.compile({**moments, "features": [LIGHT]}).questions) == 3


def test_pages_and_tables_take_them() -> None:
    campaign = Campaign.compile(DRAFT)
    forms = {one.name: one for one in map(_asked, campaign.features)}
    assert (forms["hour"].says, forms["hour"].values[:2]) == ("a number, to which 24 may be added", ("0", "4"))
    assert (forms["light"].says, forms["light"].low, forms["light"].high) == ("a number from 0 to 100", 0.0, 100.0)
    assert "a number, to which 24 may be added" in campaign._repr_html_()
    found = estimate(campaign, simulate(campaign, *people(500), 7))
    assert {figure.title for figure in of_features(found, believed(found), 1)} == set(forms)
    texts = pd.DataFrame({"colour": ["red"], "hour": ["7"], "light": ["5"], "sound": ["6"], "y": ["a"]})
    table = typed(texts, campaign.features, campaign.label, "t.csv")
    assert (table.frame["hour"][0], table.frame["light"][0]) == ("7", 5.0)


# --- and nobody else knows the kinds that there are ---

MOST_FILES = 8
SETTING = {
    *("protocols/ldp_protocols/document/authored.py", "protocols/ldp_protocols/drafting.py"),
    *("ldp_aggregator/cli/audit.py", "simulations/ldp_simulations/commands/tables.py"),
    *("simulations/ldp_simulations/studies/trials.py", "simulations/ldp_simulations/figures/ldp_naive_bayes.py"),
    *("javascript/src/document/campaign.ts", "javascript/src/document/types.ts"),
    *("kotlin/src/main/kotlin/Document.kt", "swift/Sources/LdpBayes/Document.swift"),
}
"""Files that read or write the setting ``continuous`` of ``privacy``, which is not the kind."""

KIND = re.compile(r"categorical|continuous", re.IGNORECASE)
KIND_BESIDE_THE_SETTING = re.compile(r"(?i:categorical)|Continuous|CONTINUOUS|kind\W{1,12}continuous")
PROSE = re.compile(r"(\"\"\"|''')(?:(?!\1).)*\1|/\*.*?\*/|(?<!\S)(//|#)[^\n]*|pd\.Categorical(Dtype)?", re.DOTALL)
"""Docstrings and comments, in all four languages; and a type of pandas."""


def production() -> list[str]:
    """Every file of the four clients, the aggregator and the simulator."""
    folders = ["protocols/ldp_protocols", "ldp_client", "ldp_aggregator", "simulations/ldp_simulations"]
    folders += ["javascript/src", "kotlin/src/main", "swift/Sources"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [path for path in listed.stdout.split() if not path.endswith((".min.js", "/try/try.js", "/datasets.json"))]


def test_the_names_of_the_kinds_stand_in_few_files() -> None:
    named = {}
    for path in production():
        code = PROSE.sub("", (ROOT / path).read_text(encoding="utf-8"))
        found = (KIND_BESIDE_THE_SETTING if path in SETTING else KIND).findall(code)
        if found:
            named[path] = found
    assert len(named) <= MOST_FILES, "\n".join(f"{path}: {found}" for path, found in named.items())


def test_nobody_asks_which_class_a_feature_is() -> None:
    asked = re.compile(
        r"(?:isinstance|hasattr)\((?:feature\b|[^()\n]*Feature\b)|\b(?:is|as\??) (?:Categorical|Numeric)\b"
    )
    found = {path: asked.findall((ROOT / path).read_text(encoding="utf-8")) for path in production()}
    assert {path: lines for path, lines in found.items() if lines} == {}
