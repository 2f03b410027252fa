"""Every call that uses the network takes ``timeout``, and keeps it, whatever it does one after the other."""

import inspect
import threading
import time

import pytest
from holding import PATIENCE, code_of, held, returned, silent_server
from records import RECORD

from ldp_client import Classifier, ClientError, TransportError
from ldp_client.relay import Relay
from ldp_client.storage.sqlite import SqliteStorage

SHORT = 0.05
BUSY = "storage-busy"


def test_no_fetch_waits_longer_than_its_timeout_for_a_silent_server(join, campaign, tmp_path):
    with silent_server() as url:
        device, part = join(storage=tmp_path / "device.db", clock=time, url=url, granted=False)
        for call in (part.fetch, part.refusal, part.grant, part.classifier):
            assert code_of(lambda call=call: call(timeout=SHORT)) == "timeout"
        assert code_of(lambda: Classifier.fetch(url, campaign.id, timeout=SHORT)) == "timeout"
        assert not list(tmp_path.iterdir())
        part.load(campaign.document)
        part.grant()
        part.contribute(RECORD, "yes")
        assert returned(lambda: device.run_once(SHORT)) is False
        assert part.status().queued == 1


def test_a_try_whose_seconds_were_over_before_it_began_is_no_try_that_failed(join, server, clock):
    """Ten that failed let a report expire; a slow disk and a short timeout must not make them up."""

    def slow(_):
        clock.advance(10)
        return {}

    device, part = join(headers=slow, answered=True)
    assert not device.run_once(5)
    assert (part.status().retries, part.fate, server.uploads) == (0, "waiting", [])
    assert device.run_once(30)
    assert len(server.uploads) == 1


KEY = "K" * 43

RELAY_CALLS = {
    "campaign": (lambda relay, _: relay.campaign(timeout=SHORT), "timeout"),
    "model": (lambda relay, _: relay.model(timeout=SHORT), "timeout"),
    "directory": (lambda relay, _: relay.directory(KEY, timeout=SHORT), "timeout"),
    "collect": (lambda relay, upload: relay.collect(upload, timeout=SHORT), "timeout"),
    "run_once": (lambda relay, _: relay.run_once(SHORT), False),
    "gathering": (lambda relay, _: relay.gathering(timeout=SHORT), BUSY),
    "delivery": (lambda relay, _: relay.delivery(timeout=SHORT), BUSY),
    "close": (lambda relay, _: relay.close(timeout=SHORT), None),
}


@pytest.mark.parametrize("name", RELAY_CALLS)
def test_no_call_of_a_relay_waits_longer_than_its_timeout_for_a_held_file_and_a_silent_server(name, campaign, tmp_path):
    path = tmp_path / "relay.db"
    with SqliteStorage(path).transaction(write=True) as transaction:
        transaction.put("scope/relay/x", b"")
    call, expected = RELAY_CALLS[name]
    methods = {name for name, member in inspect.getmembers(Relay) if not name.startswith("_") and callable(member)}
    assert methods == {*RELAY_CALLS, "start"}
    with silent_server() as url, held(path):
        end = returned(lambda: call(Relay(url, campaign.id, storage=path, publisher=KEY), b""))
    assert (end.code if isinstance(end, ClientError) else end) == expected


def test_who_asks_a_relay_while_another_asks_for_it_waits_no_longer_than_the_timeout(campaign):
    asked, answer = threading.Event(), threading.Event()

    class Stuck:
        def send(self, request, timeout, cancellation=None):
            asked.set()
            answer.wait(PATIENCE)
            raise TransportError("unreachable")

    relay = Relay("https://collect.example.org", campaign.id, storage=":memory:", transport=Stuck())
    first = threading.Thread(target=lambda: code_of(relay.model))
    first.start()
    assert asked.wait(PATIENCE)
    assert code_of(lambda: relay.model(timeout=SHORT)) == "timeout"
    assert first.is_alive()
    answer.set()
    first.join(PATIENCE)
