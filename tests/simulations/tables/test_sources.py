"""A table and a draft that belong together, whatever the draft is written in."""

import json

import pytest
from drafts import draft, number

from protocols import Campaign, DraftError
from simulations.tables.benchmarks import BINS, BOUNDS, EPSILON, demonstration_source
from simulations.tables.sources import draft_of, read_draft, source_with_schema, source_without_schema

DRAFT = draft(number("x", high=10, bins=2))
TOML = """
version = 1
title = "t"
label = {name = "y", classes = ["a", "b"]}
features = [{name = "x", kind = "continuous", low = 0, high = 10, bins = 2, missing = false}]
privacy = {epsilon = 1.0}
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{x},{'ab'[x % 2]}\n" for x in range(20)), encoding="utf-8")
    return str(path)


def test_a_draft_is_the_same_in_json_and_toml_and_a_wrong_one_is_refused_by_its_field(tmp_path):
    (tmp_path / "d.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    (tmp_path / "d.toml").write_text(TOML, encoding="utf-8")
    read = read_draft(tmp_path / "d.toml")
    assert read == read_draft(tmp_path / "d.json")
    assert Campaign.compile(read).id == Campaign.compile(DRAFT).id
    assert draft_of(Campaign.compile(read)) == read
    (tmp_path / "d.json").write_text(json.dumps({**DRAFT, "privacy": {"epsilon": -1}}), encoding="utf-8")
    with pytest.raises(DraftError, match=r"privacy\.epsilon"):
        read_draft(tmp_path / "d.json")


def test_clipped_numbers_are_noted_and_nothing_else_and_a_derived_campaign_fits_its_table(table, tmp_path):
    (tmp_path / "d.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    source = source_with_schema(table, tmp_path / "d.json")
    assert source.notes == ("x: 45.0% of the numbers lie beyond the declared bounds; devices clip them",)
    assert source.with_epsilon(3.0).draft["privacy"]["epsilon"] == 3.0
    assert source.draft["privacy"]["epsilon"] == 1.0
    source = source_without_schema(table, "y", epsilon=0.5, bins=3)
    campaign = Campaign.compile(source.draft)
    assert (campaign.privacy.epsilon, campaign.features[0].size) == (0.5, 3)
    assert source.people.frame["x"].between(campaign.features[0].low, campaign.features[0].high).all()


def test_the_demonstration_hardly_clips_anyone_and_its_arithmetic_holds():
    """The standard errors that justify its bins, from the mechanism the campaign really uses."""
    source = demonstration_source()
    campaign = Campaign.compile(source.draft)
    assert len(source.people) == 569
    for name, (low, high) in BOUNDS.items():
        assert source.people.frame[name].between(low, high).mean() > 0.98
    (question, *_), devices = campaign.questions, 20_000
    assert len(campaign.questions) == len(BOUNDS) == 10
    assert question.domain_size == 2 * BINS
    assert campaign.realised_epsilon <= EPSILON
    standard_error = (question.mechanism.noise_variance(1 / 8) / (devices / 10)) ** 0.5
    assert standard_error == pytest.approx(0.015, abs=5e-4)
