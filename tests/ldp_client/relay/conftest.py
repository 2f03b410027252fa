"""A gateway that listens."""

import threading
from contextlib import contextmanager

import pytest

from ldp_client.relay.gateway import Gateway


@contextmanager
def listening(relay, **options):
    with Gateway(relay, **options) as gateway:
        thread = threading.Thread(target=gateway.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield gateway
        gateway.shutdown()
        thread.join()


@pytest.fixture
def serving():
    """A context: a gateway to a relay, with options of its own."""
    return listening


@pytest.fixture
def gateway(relay):
    with listening(relay) as made:
        yield made
