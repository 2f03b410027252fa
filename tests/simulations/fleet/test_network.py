"""Accidents on the way happen as often as asked, and only to uploads."""

from __future__ import annotations

from contextlib import suppress

import pytest

from ldp_client import TransportError
from ldp_client.network.transport import Request, Response
from simulations.fleet.devices import Network


class Server:
    """Answers everything, and remembers the bodies."""

    def __init__(self) -> None:
        self.bodies: list[bytes | None] = []

    def send(self, request: Request, timeout: float, cancellation: object = None) -> Response:
        self.bodies.append(request.body)
        return Response(200, {}, b"{}")


def test_a_lost_answer_was_counted_by_the_server_and_is_an_error_on_the_device():
    server = Server()
    network = Network(server, lost_answers=1.0)
    with pytest.raises(TransportError):
        network.send(Request("POST", "http://x", {}, b"report"), 1.0)
    assert server.bodies == [b"report"]
    assert network.first_upload == b"report"


def test_only_uploads_meet_accidents():
    server = Server()
    network = Network(server, lost_answers=1.0)
    assert network.send(Request("GET", "http://x", {}), 1.0).status == 200
    assert (network.first_upload, network.upload_bytes) == (None, 0)
    assert server.bodies == [None]


def test_accidents_are_as_frequent_as_asked():
    """2,000 uploads, a fifth lost; false alarm below 1e-6."""
    server, arrived = Server(), 0
    network = Network(server, lost_answers=0.2, seed=1)
    for _ in range(2_000):
        with suppress(TransportError):
            arrived += network.send(Request("POST", "http://x", {}, b"12345"), 1.0).status == 200
    assert (len(server.bodies), network.upload_bytes) == (2_000, 10_000)
    assert abs(2_000 - arrived - 400) < 5 * (2_000 * 0.2 * 0.8) ** 0.5
