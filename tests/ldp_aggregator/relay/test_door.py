"""Places at a door: whoever comes takes one, and gives it back however the visit ends."""

import socketserver

import pytest

from ldp_aggregator.relay.door import Door


@pytest.fixture
def door():
    with Door((), "127.0.0.1", 0, most_connections=2) as made:
        yield made


def test_a_connection_for_which_no_thread_can_be_had_keeps_no_place(door, monkeypatch):
    def no_thread(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(socketserver.ThreadingMixIn, "process_request", no_thread)
    for _ in range(5):
        with pytest.raises(RuntimeError):
            door.process_request(object(), ("127.0.0.1", 1))
    assert door.counts.open == 0
    assert door.counts.refused == {}
    assert [door._places.acquire(blocking=False) for _ in range(3)] == [True, True, False]
    door._places.release(2)
