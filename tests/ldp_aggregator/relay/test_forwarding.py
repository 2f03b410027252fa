"""A relay keeps each report once, whoever sends it again, and no more of them than it may."""

from dataclasses import replace

import pytest
from records import RECORD

from ldp_aggregator.relay import BATCH_HEADER, Mixing, Relay
from ldp_client import MemoryStorage, StorageError, perturb
from ldp_client.network.transport import Response, TransportError
from ldp_client.policy import DEFAULT_POLICY
from ldp_protocols import Report, encode_upload


class Silent:
    """A network on which nothing arrives but the document."""

    begins_body = True

    def __init__(self, campaign):
        self.campaign = campaign

    def send(self, request, timeout, cancellation=None):
        if request.method == "GET":
            return Response(200, {"content-type": "application/json"}, self.campaign.document)
        return Response(503)


@pytest.fixture
def build(campaign, clock):
    def made(least=100, **policy):
        limits = replace(DEFAULT_POLICY, **policy)
        options = {"mixing": Mixing(least), "storage": MemoryStorage(), "clock": clock, "policy": limits}
        return Relay("https://collect.example.org", campaign.id, transport=Silent(campaign), **options)

    return made


@pytest.fixture
def reports(campaign):
    """Two answers to one question under two ids, and what another one would be."""
    (first,) = perturb(campaign, RECORD, "yes", secret=bytes(32))
    payload = first.payload
    while payload == first.payload:
        ((payload, _),) = [(one.payload, one) for one in perturb(campaign, RECORD, "no", secret=bytes(32))]
    return first, Report(first.question, bytes([7]) * 16, first.payload), Report(first.question, first.id, payload)


def test_of_two_answers_under_one_id_the_first_is_kept_in_one_upload_in_two_and_once_it_leaves(
    build, campaign, reports
):
    first, second, other = reports

    def sent(*some):
        return relay.collect(encode_upload(some, campaign))

    relay = build(2)
    assert sent(first, other) == sent(first, first) == sent(other) == {}, "nobody is told which"
    assert (relay.gathering(), relay.queued()) == (1, 0)
    assert sent(second) == {}
    relay.run_once(0.1)
    assert (relay.gathering(), relay.queued()) == (0, 2)
    assert sent(first) == sent(second) == {}
    assert sent(other) == {}
    assert (relay.gathering(), relay.queued()) == (0, 2)


@pytest.mark.parametrize("limit", ["most_queued_reports", "most_queued_bytes"])
def test_a_relay_is_full_by_number_and_by_bytes_of_all_that_it_holds_and_keeps_all_of_an_upload_or_nothing(
    build, campaign, reports, limit
):
    first, second, _ = reports
    each = 1 if limit == "most_queued_reports" else len(first.payload) + 32
    relay = build(3 if limit == "most_queued_reports" else 100, **{limit: 3 * each})
    relay.collect(encode_upload([first], campaign))
    relay.collect(encode_upload([second], campaign))
    assert relay.room() > 0
    third, fourth = (Report(first.question, bytes([number]) * 16, first.payload) for number in (8, 9))
    with pytest.raises(StorageError, match="as much as it may"):
        relay.collect(encode_upload([third, fourth], campaign))
    assert relay.gathering() == 2
    relay.collect(encode_upload([first, third], campaign))
    assert (relay.gathering(), relay.room()) == (3, 0)
    with pytest.raises(StorageError):
        relay.collect(encode_upload([fourth], campaign))
    assert relay.collect(encode_upload([first], campaign)) == {}, "what waits already takes no room"


@pytest.mark.parametrize("limit", ["most_queued_reports", "most_queued_bytes"])
def test_a_batch_on_its_way_takes_the_room_that_it_took_before(build, campaign, reports, limit):
    first, second, _ = reports
    relay = build(2, **{limit: 3 if limit == "most_queued_reports" else 3 * (len(first.payload) + 32)})
    relay.collect(encode_upload([first, second], campaign))
    relay._form()
    assert (relay.gathering(), relay.queued()) == (0, 2)
    third, fourth = (Report(first.question, bytes([number]) * 16, first.payload) for number in (8, 9))
    with pytest.raises(StorageError, match="as much as it may"):
        relay.collect(encode_upload([third, fourth], campaign))
    relay.collect(encode_upload([third], campaign))
    assert (relay.gathering(), relay.queued(), relay.room()) == (1, 2, 0)


def test_an_upload_of_which_one_report_is_not_of_the_batch_is_vouched_for_by_nobody(build, campaign, reports):
    first, second, _ = reports
    relay = build(2)
    relay.collect(encode_upload([first, second], campaign))
    relay._form()
    assert relay._vouch(campaign.id, [first.id, second.id]) == {BATCH_HEADER: "2"}
    assert relay._vouch(campaign.id, [second.id]) == {BATCH_HEADER: "2"}
    assert relay._vouch(campaign.id, [first.id, bytes(16)]) == {}
    assert relay._vouch(campaign.id, [bytes(16), first.id]) == {}


@pytest.mark.parametrize(("status", "asked"), [(503, 6), (None, 6), (404, 1)])
def test_that_there_is_no_model_is_handed_out_for_a_minute_and_a_failure_to_nobody_else(campaign, clock, status, asked):
    """By the number of questions that reach the aggregator, three of each try, while no time passes."""
    seen = []

    class Ailing(Silent):
        def send(self, request, timeout, cancellation=None):
            if not request.url.endswith("/model"):
                return super().send(request, timeout, cancellation)
            seen.append(request.url)
            if status is None:
                raise TransportError("unreachable")
            return Response(status)

    options = {"mixing": Mixing(2), "storage": MemoryStorage(), "clock": clock}
    relay = Relay("https://collect.example.org", campaign.id, transport=Ailing(campaign), **options)
    for _ in range(2):
        with pytest.raises(TransportError):
            relay.model()
    assert len(seen) == asked
