"""A campaign, a fake server, devices that take part, and a gateway that listens."""

import threading
from contextlib import contextmanager

import pytest
from joined import all_campaign, campaign, clock, draft, eventually, join, model, server  # noqa: F401 - fixtures

from ldp_aggregator.relay.gateway import Gateway


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
