"""A device hears how a campaign stands before it asks anybody: nothing is spent on one that takes no answers."""

import pytest

from ldp_client import Device, MemoryStorage, RefusedError
from ldp_client.network.stdlib import HttpTransport
from ldp_client.testing import FakeServer

RECORD = {"income": 30_000.0}
STATES = {
    "not-yet": "campaign-not-open",
    "closing": "campaign-closing",
    "closed": "campaign-closed",
    "full": "campaign-full",
    "deleted": "campaign-deleted",
}
DAY = 86400


def asked(server):
    return [path for method, path in server.requests if path.endswith("/state")]


@pytest.mark.parametrize("state", STATES)
def test_nobody_is_asked_and_nothing_spent_where_a_campaign_takes_no_answers(join, server, campaign, state):
    server.states[campaign.id] = state
    _, part = join(granted=False)
    assert part.next_step().step == "nothing"
    assert part.refusal().code == STATES[state]
    with pytest.raises(RefusedError) as refused:
        part.grant()
    assert refused.value.code == STATES[state]
    assert (part.status().epsilon, len(asked(server))) == (0.0, 1)


@pytest.mark.parametrize("state", STATES)
def test_who_has_agreed_spends_nothing_either_once_it_was_heard(join, server, campaign, clock, state):
    _, part = join()
    server.states[campaign.id] = state
    clock.advance(DAY)
    assert part.next_step().step == "nothing"
    with pytest.raises(RefusedError) as refused:
        part.contribute(RECORD, "yes")
    assert refused.value.code == STATES[state]
    assert part.status().epsilon == 0.0
    server.states.clear()
    clock.advance(DAY)
    assert part.next_step().step == "contribute", "a closing was taken back"


def test_it_is_heard_once_a_day_and_after_a_restart_too(join, server, clock, tmp_path):
    device, part = join(storage=tmp_path / "device.db")
    for _ in range(5):
        assert part.next_step().step == "contribute"
    device.close()
    device, again = join(storage=tmp_path / "device.db", granted=False)
    clock.advance(DAY - 1 - clock.time() % DAY)
    assert again.next_step().step == "contribute"
    assert len(asked(server)) == 1
    clock.advance(1)
    again.next_step()
    clock.advance(-400 * DAY)
    again.next_step()
    assert len(asked(server)) == 3, "a clock that went back asks again"


@pytest.mark.parametrize("answer", ["silence", "a later word", "no JSON", "another JSON"])
def test_what_cannot_be_heard_or_understood_stops_nobody(join, server, campaign, clock, monkeypatch, answer):
    said = {"a later word": {"state": "paused"}, "another JSON": [1]}.get(answer)
    if said is not None:
        monkeypatch.setattr("json.dumps", lambda *_: __import__("json").JSONEncoder().encode(said))
    elif answer == "silence":
        monkeypatch.setattr("ldp_client.network.aggregator.Aggregator.state", lambda *_: 1 / 0)
    else:
        monkeypatch.setattr("ldp_client.network.aggregator.Aggregator.state", lambda *_: b"<html>")
    _, part = join(granted=False)
    assert part.next_step().step == "ask"
    part.grant()
    assert part.next_step().step == "contribute"


@pytest.mark.parametrize("kept", [b"", b"no time", b"1e999 {}", b"x {}", b"1 [1]"])
def test_what_is_kept_and_is_none_of_it_stops_nobody(join, campaign, kept):
    device, part = join()
    part._standing._cache.put(f"state/{campaign.id}", kept)
    again = device.campaign(part._url, campaign.id, max_epsilon=99)
    assert again.next_step().step == "contribute"


def test_a_try_that_failed_is_not_repeated_for_ten_minutes(join, clock, monkeypatch):
    tries = []

    def fails(*_):
        tries.append(clock.time())
        raise TimeoutError

    monkeypatch.setattr("ldp_client.network.aggregator.Aggregator.state", fails)
    _, part = join()
    for _ in range(5):
        part.next_step()
    clock.advance(599)
    part.next_step()
    assert len(tries) == 1
    clock.advance(1)
    part.next_step()
    assert len(tries) == 2


def test_another_recipient_that_takes_no_answers_asks_nobody_anew(join, campaign, clock):
    device, _ = join()
    clock.advance(DAY)
    with FakeServer() as other:
        other.publish(campaign)
        other.states[campaign.id] = "closed"
        _, elsewhere = join(device=device, url=other.url, granted=False)
        assert elsewhere.next_step() == ("nothing", "campaign-closed")


def test_what_was_heard_of_one_campaign_says_nothing_of_another(join, start, server, campaign, draft, clock):
    other = server.publish({**draft, "title": "another"})
    device, part = start(granted=True)
    _, open_one = join(device=device, of=other)
    server.states[campaign.id] = "closed"
    clock.advance(DAY)
    for _ in range(2):
        assert part.next_step() == ("nothing", "campaign-closed")
        assert open_one.next_step().step == "contribute"
        # Once more, from what was kept.
        device, part = start()
        _, open_one = join(device=device, of=other, granted=False)
    assert len(asked(server)) == 4, "each once a day"


def test_the_question_takes_no_longer_than_what_the_call_has_left_and_never_more_than_five_seconds(server, campaign):
    given = []

    class Noting(HttpTransport):
        def send(self, request, timeout, cancellation=None):
            if request.url.endswith("/state"):
                given.append(timeout)
            return super().send(request, timeout, cancellation)

    for timeout in (2.0, 60.0):
        device = Device(MemoryStorage(), max_total_epsilon=8, transport=Noting())
        device.campaign(server.url, campaign.id, max_epsilon=4).next_step(timeout=timeout)
    assert given[0] <= 2.0
    assert given[1] == 5.0


def test_who_switched_contributing_off_asks_nobody_how_a_campaign_stands(join, server):
    device, part = join(granted=False)
    device.enabled = False
    assert part.next_step() == ("nothing", "switched-off")
    assert part.refusal().code == "switched-off"
    assert asked(server) == []


def test_what_the_device_itself_says_no_to_is_told_before_what_the_aggregator_says(join, server, campaign):
    server.states[campaign.id] = "full"
    _, part = join(granted=False, max_epsilon=0.5)
    assert part.refusal().code == "loss-above-cap"
    _, part = join(granted=False)
    assert part.refusal().code == "campaign-full"
