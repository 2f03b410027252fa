"""The guarantee of what is published: what it counts, how it adds up, what it says, and its inverse."""

import math
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from drafts import draft, number, text
from evaluated import U, V, evaluation, model
from issuing import issuer

from ldp_aggregator.counting.tally import Arrivals, Tally, devices_counted
from ldp_aggregator.guarantees import (
    local_guarantee,
    published_by,
    published_guarantee,
    published_together,
    relay_guarantee,
    relayed,
    studies_of,
    sum_up,
)
from ldp_protocols import Campaign
from ldp_protocols.document.issuer import key_text

SMALL = (text("age", "young", "medium", "old"), number("hours", high=100))
EIGHT = [text(f"f{i}", "a", "b", "c", "d") for i in range(8)]


def compiled(epsilon=1.0, *, features=SMALL, privacy=None, **changes):
    return Campaign.compile(draft(*features, privacy={"epsilon": epsilon, **(privacy or {})}, **changes))


@pytest.mark.parametrize("discrete", ["auto", "de", "sue", "oue", "she", "the", "ss"])
@pytest.mark.parametrize("continuous", ["auto", "laplace", "onebit", "sign"])
@pytest.mark.parametrize("answers", ["one", "all"])
def test_every_mechanism_has_a_guarantee_below_its_local_one(discrete, continuous, answers):
    campaign = compiled(privacy={"discrete": discrete, "continuous": continuous, "answers": answers})
    found = published_guarantee(campaign, 100_000)
    assert found.epsilon is not None
    assert 0 < found.epsilon < 0.1 < campaign.realised_epsilon
    assert found.delta == 1e-9


def test_answers_all_add_up_over_the_groups_and_their_crowd_is_that_of_the_smallest_group():
    one, everything = compiled(), compiled(privacy={"answers": "all", "discrete": "de"})
    assert any(
        "composition over what" in condition for condition in published_guarantee(everything, 100_000).conditions
    )
    assert not any("composition" in condition for condition in published_guarantee(one, 100_000).conditions)
    assert devices_counted(one, [5, 7, 2, 3]) == 17
    assert devices_counted(everything, [5, 7, 2, 3]) == 5


def test_colluding_devices_hide_nobody():
    campaign = compiled()
    alone = published_guarantee(campaign, 10_000)
    assert published_guarantee(campaign, 30_000, colluding=20_000).epsilon == alone.epsilon
    for colluding in (30_000, 29_999, 40_000):
        alone = published_guarantee(campaign, 30_000, colluding=colluding)
        assert (alone.epsilon, alone.delta) == (campaign.realised_epsilon, 0.0)
    for reports in (0, 1, 2):  # Where the crowd hides nothing the local guarantee is stated.
        found = published_guarantee(campaign, reports)
        assert (found.epsilon, found.delta) == (campaign.realised_epsilon, 0.0)
    assert published_guarantee(compiled(200.0), 10**6).delta == 0.0


def test_what_cannot_be_meant_is_refused():
    for wrong in ({"delta": 0.0}, {"delta": 1.0}, {"delta": float("nan")}, {"colluding": -1}):
        with pytest.raises(ValueError, match=r"must be|numbers"):
            published_guarantee(compiled(), 10, **wrong)
    with pytest.raises(ValueError, match="numbers of devices"):
        published_guarantee(compiled(), -1)


def test_campaigns_of_one_study_do_not_add_up_and_others_do():
    first, second = compiled(study="s", title="1"), compiled(study="s", title="2")
    apart = compiled(title="3")
    alone = published_guarantee(first, 10_000).epsilon
    assert alone is not None
    assert published_together([(first, 10_000)]).epsilon == alone
    assert published_together([(first, 10_000), (second, 50_000)]).epsilon == pytest.approx(alone, rel=1e-12)
    both = published_together([(first, 10_000), (apart, 10_000)])
    assert both.epsilon is not None
    assert 2 * alone < both.epsilon < 2.2 * alone
    assert both.delta == pytest.approx(1e-9)
    assert both.reports == 20_000


def test_what_is_told_of_several_losses_is_the_least_double_that_is_not_below_their_sum():
    rng = np.random.default_rng(1)
    for losses in [[0.1, 0.2, 0.3], [0.1] * 10, [1e-17, 1.0], [1e16, 1.0], *rng.uniform(0, 3, (200, 3)).tolist()]:
        exact = sum(map(Fraction, losses))
        told = local_guarantee(dict(enumerate(losses))).epsilon
        assert Fraction(math.nextafter(told, 0)) < exact <= Fraction(told)
    assert local_guarantee({"study s": 0.1}).epsilon == 0.1
    assert sum_up([]) == 0
    assert sum_up([1.0, math.inf]) == math.inf


@pytest.mark.parametrize("order", [1, -1])
def test_of_one_study_the_most_that_any_of_its_campaigns_costs_is_told_in_whatever_order_they_are_named(order):
    losses = [
        compiled(epsilon, study=study, title=str(epsilon)) for epsilon, study in ((3.0, "s"), (1.0, "s"), (2.0, "t"))
    ]
    assert studies_of(losses[::order]) == {"study s": 3.0, "study t": 2.0}
    alone = [published_guarantee(one, 1000, 5e-10) for one in losses]
    together = published_together([(one, 1000) for one in losses[::order]])
    assert alone[0].epsilon > alone[1].epsilon
    assert together.epsilon == pytest.approx(alone[0].epsilon + alone[2].epsilon, rel=1e-12)
    assert together.delta == pytest.approx(1e-9)
    hidden = [(losses[0], 2), (losses[1], 1000)]  # Two devices hide nothing: the study costs what it does locally.
    assert published_together(hidden[::order]).epsilon == pytest.approx(losses[0].realised_epsilon, rel=1e-12)
    assert published_together(hidden[::order]).delta == pytest.approx(1e-9)


def fitted(epsilon, study):
    """A campaign whose projection was fitted on a private round."""
    projection = SimpleNamespace(fitted_epsilon=epsilon, fitted_study=study, fitted_on="B" * 43)
    return replace(compiled(title=f"{epsilon} {study}"), projection=projection)


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_private_round_cost_is_told_once_for_a_study_and_at_its_most(order):
    campaigns = [fitted(2.0, "s"), fitted(0.5, "s"), fitted(3.0, None)]
    alone = {campaign.id: 1.0 for campaign in campaigns}
    assert studies_of(campaigns[::order]) == {"study s": 2.0, "B" * 43: 3.0, **alone}
    plain = published_guarantee(campaigns[0], 10_000).epsilon
    assert published_together([(campaigns[0], 10_000)]).epsilon == pytest.approx(2 + plain, rel=1e-3)


@pytest.mark.parametrize(("twice", "crowd"), [(0, 10), (9, 1), (10, 0), (11, 0), (500, 0)])
def test_behind_a_relay_more_that_was_counted_twice_than_a_batch_holds_leaves_nobody_to_hide_among(twice, crowd):
    campaign = compiled()
    found = relayed(campaign, Arrivals(reports=3000, vouched=3000, least_batch=10, unchecked=twice)).guarantee
    assert found.reports == crowd
    assert (found.epsilon, found.delta) == (campaign.realised_epsilon, 0.0) or crowd == 10


WINDOWS = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 3}


def counted(campaign, *devices):
    """A tally in which so many devices answered, in each window, the first of its questions."""
    tally = Tally(campaign)
    asked = len(campaign.questions)
    for window, number_of in enumerate(devices):
        for question in range(asked) if campaign.privacy.answers == "all" else (0,):
            tally.n[window * asked + question] = number_of
    return tally


@pytest.mark.parametrize("devices", [(1000, 0, 50_000), (50_000, 1000, 1000), (0, 0, 1000), (1000, 1000, 1000)])
@pytest.mark.parametrize("answers", ["one", "all"])
def test_in_a_series_a_device_hides_among_those_of_the_smallest_window_that_anybody_answered(devices, answers):
    privacy = {"discrete": "de", "answers": answers}
    series, alone = compiled(windows=WINDOWS, privacy=privacy), compiled(privacy=privacy)
    found = published_by([(series, counted(series, *devices))])
    assert found.reports == 1000
    assert found.epsilon == published_guarantee(alone, 1000).epsilon > 3 * published_guarantee(alone, 50_000).epsilon


def test_of_a_series_that_nobody_answered_nothing_but_the_local_guarantee_is_said():
    series = compiled(windows=WINDOWS)
    found = published_by([(series, counted(series))])
    assert (found.reports, found.epsilon, found.delta) == (0, series.realised_epsilon, 0.0)


def test_two_publications_each_have_the_crowd_of_their_own_campaign():
    """The smaller one's crowd is not that of both, nor of the larger."""
    large, small = compiled(title="large"), compiled(title="small")
    found = published_by([(large, counted(large, 50_000)), (small, counted(small, 1000))])
    each = [published_guarantee(large, 50_000, 5e-10).epsilon, published_guarantee(small, 1000, 5e-10).epsilon]
    assert found.epsilon == pytest.approx(sum(each), rel=1e-12)
    assert (found.reports, found.delta) == (51_000, pytest.approx(1e-9))


def test_reports_that_were_counted_twice_in_either_of_two_merged_stores_hide_nobody():
    campaigns = [compiled(title=title) for title in "ab"]
    tallies = [(one, counted(one, 20_000)) for one in campaigns]
    for arrivals in ([Arrivals(overlap=7), Arrivals()], [Arrivals(), Arrivals(overlap=3, unchecked=4)]):
        found = published_by(tallies, arrivals)
        assert found.colluding == 14
        assert "not for the devices, 7 at most, that two merged stores had both counted" in str(found)
        assert found.epsilon > published_by(tallies).epsilon


def test_the_crowd_behind_a_relay_is_that_of_the_smallest_batch_and_a_campaign_without_one_has_none():
    campaign = compiled()
    sound = relayed(campaign, Arrivals(reports=3000, vouched=3000, least_batch=1000))
    assert sound.guarantee.reports == 1000
    assert sound.guarantee.epsilon == relay_guarantee(campaign, 1000).epsilon
    assert relayed(campaign, Arrivals(3000, 3000, 1000, overlap=1, unchecked=2)).guarantee.reports == 997
    for arrivals in (Arrivals(), Arrivals(3000, 2999, 1000), Arrivals(3000, 0, None)):
        assert relayed(campaign, arrivals).guarantee is None
    everything = compiled(privacy={"answers": "all", "discrete": "de"})
    assert len(everything.groups) == 3
    assert relayed(everything, Arrivals(2700, 2700, 1000)).guarantee.reports == 900


def test_the_number_behind_a_relay_says_in_its_own_line_whether_it_is_of_people_or_of_uploads():
    gateway = {"key": "AQAgMeHwWnQBAhFSIOmvkY9zhnSuyV9U224E63Baro55gVUACAABAAEAAQAD"}
    key = key_text(generate_private_key(65537, 2048).public_key().public_numbers().n)
    uploads = "behind the relay, if all uploads came from different people: any two records of one of the devices"
    people = "behind the relay, which takes one upload a token; the issuer signs {} for a person: any two records"
    cases = [
        ({}, uploads),
        ({"gateway": gateway}, uploads),
        ({"gateway": gateway, "issuer": issuer()}, uploads),
        ({"issuer": issuer()}, people.format("one")),
        ({"gateway": gateway, "issuer": issuer(relay_key=key, tokens=3)}, people.format(3)),
    ]
    for more, told in cases:
        assert told in str(relay_guarantee(compiled(**more), 1000))


def test_a_relay_gives_who_runs_the_server_the_same_with_its_batch_and_the_sentence_names_its_conditions():
    campaign = compiled()
    behind, published = relay_guarantee(campaign, 5000), published_guarantee(campaign, 5000)
    assert (behind.epsilon, behind.delta) == (published.epsilon, published.delta)
    assert "collude" in str(behind)
    assert behind.relation != published.relation
    found = published_guarantee(campaign, 10_000, colluding=10)
    assert all(condition in str(found) for condition in found.conditions)
    assert "10,000, 10 of them colluding" in str(found)
    told = found.to_json()
    assert set(told) == {"epsilon", "delta", "relation", "public", "reports", "colluding", "conditions"}


def test_releases_at_fixed_counts_cost_no_more_than_the_least_of_them():
    """The difference of two releases is a tally of devices that are in no other difference."""
    once, fixed = compiled(), compiled(privacy={"release_every": 5000})
    for reports in (5000, 20_000, 10**6):
        assert published_guarantee(fixed, reports).epsilon == published_guarantee(once, 5000).epsilon
    assert published_guarantee(fixed, 1000).epsilon == published_guarantee(once, 1000).epsilon
    assert any("5,000 more devices" in condition for condition in published_guarantee(fixed, 10**6).conditions)
    assert not any("published once" in condition for condition in published_guarantee(fixed, 10**6).conditions)


def shuffled_counts(cells, ratio, others, own):
    """Distribution of the counts of reports by direct encoding, of devices with these cells and one with ``own``."""
    low = 1 / (ratio + cells - 1)
    counts = {(0,) * cells: 1.0}
    for cell in (*others, own):
        grown = {}
        for state, probability in counts.items():
            for told in range(cells):
                after = (*state[:told], state[told] + 1, *state[told + 1 :])
                grown[after] = grown.get(after, 0.0) + probability * low * (ratio if told == cell else 1)
        counts = grown
    return counts


def test_releases_of_answers_all_reveal_no_more_than_is_said():
    """A device's answers to two groups are in different releases; what all releases tell of it, exactly.

    Only the difference of releases that an answer is in depends on it, and the groups' coins are independent.
    """
    every, delta = 40, 1e-2
    privacy = {"answers": "all", "discrete": "de", "release_every": every}
    campaign = compiled(2.0, features=[text("age", "young", "old")], privacy=privacy)
    found = published_guarantee(campaign, 10 * every, delta=delta)
    assert 0.4 < found.epsilon < campaign.realised_epsilon - 0.5, "the bound says something here"
    ratio = math.exp(campaign.realised_epsilon / 2)
    alone = [[shuffled_counts(cells, ratio, [1] * (every - 1), own) for own in (0, 1)] for cells in (2, 4)]
    pairs = [np.array([[one[state], other[state]] for state in one]) for one, other in alone]
    p, q = (np.multiply.outer(pairs[0][:, side], pairs[1][:, side]) for side in (0, 1))
    for first, second in ((p, q), (q, p)):
        exact = np.maximum(first - math.exp(found.epsilon) * second, 0).sum()
        assert 0 < exact <= delta


def _rounded_up(bound):
    """Three digits of a bound, never below it."""
    unit = 10.0 ** (math.floor(math.log10(bound)) - 2)
    return f"{math.ceil(bound / unit - 1e-9) * unit:.3g}"


def test_the_picture_of_who_learns_what_says_how_sure_the_server_and_a_reader_become():
    docs = Path(__file__).parents[2] / "docs"
    told = (docs / "site" / "observers.html").read_text(encoding="utf-8")
    campaign = compiled(1.0, features=EIGHT)
    reader = published_guarantee(campaign, 100_000).epsilon
    for epsilon, digits in ((campaign.realised_epsilon, 0), (reader, 1)):
        sure = math.ceil(10**digits * 100 / (1 + math.exp(-epsilon))) / 10**digits
        percent = f"{sure:.{digits}f}"
        assert f'<b style="--sure: {percent}%">{percent} % at most</b>' in told
    assert "epsilon 1, 100,000 devices" in (docs / "privacy.md").read_text(encoding="utf-8")


def test_the_table_of_the_privacy_page_is_what_comes_out():
    page = (Path(__file__).parents[2] / "docs" / "privacy.md").read_text(encoding="utf-8")
    campaigns = [compiled(epsilon, features=EIGHT) for epsilon in (0.5, 1.0, 2.0, 4.0)]
    for devices in (1_000, 10_000, 100_000, 1_000_000):
        found = [published_guarantee(campaign, devices).epsilon for campaign in campaigns]
        cells = " | ".join(map(_rounded_up, found))
        told = [line for line in page.splitlines() if f"of {devices:,}" in line and line.startswith("|")]
        assert any(line.endswith(f"| {cells} |") for line in told), (devices, cells)


def test_the_readmes_range_holds_what_campaigns_of_one_question_a_device_reveal():
    """100,000 devices at epsilon 1: cells, a number by sign or Laplace noise, and the one bit of an evaluation."""
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    low, high = (float(number) for number in re.findall(r"\((0\.0\d\d), 1e-9\)", readme))
    bit = evaluation(evaluation={"model": model(U, V), "weights": [1, 0]})
    campaigns = (compiled(features=EIGHT), compiled(features=[number("x")]), bit)
    found = [published_guarantee(campaign, 100_000).epsilon for campaign in campaigns]
    assert min(found) == pytest.approx(low, abs=5e-4)
    assert max(found) == pytest.approx(high, abs=5e-4)
