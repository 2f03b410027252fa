"""What a campaign with a crowd promises is what is told, wherever its guarantees are."""

from crowds import crowd_draft

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.guarantees import published_by, published_guarantee, relay_guarantee, relayed
from ldp_protocols import Campaign

CAMPAIGN = Campaign.compile(crowd_draft())


def test_the_promise_is_told_of_whole_batches_and_what_holds_of_fewer():
    for told in (published_guarantee(CAMPAIGN, 20_000), relay_guarantee(CAMPAIGN, 30_000, colluding=10_000)):
        assert (told.epsilon, told.delta, told.colluding) == (1, 1e-9, 10_000)
    assert 1 > relay_guarantee(CAMPAIGN, 19_999).epsilon > 0.3
    assert relay_guarantee(CAMPAIGN, 20_000, colluding=19_990).epsilon == CAMPAIGN.realised_epsilon


def test_both_numbers_are_told_of_what_was_counted():
    tally = Tally(CAMPAIGN, Tally(CAMPAIGN).n + 10_000)
    arrivals = Arrivals(20_000, 20_000, 20_000)
    assert published_by([(CAMPAIGN, tally)], [arrivals]).epsilon == 1
    assert relayed(CAMPAIGN, arrivals).guarantee.epsilon == 1
