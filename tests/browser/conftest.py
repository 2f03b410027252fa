"""A real headless Chromium on a real server; skips, and says why, where there is no browser."""

import pytest
from browsing import open_browser

from simulations.fleet.experiment import temporary_aggregator


@pytest.fixture
def aggregator():
    with temporary_aggregator() as running:
        yield running


@pytest.fixture
def browser():
    with open_browser() as opened:
        yield opened
        assert opened.foreign() == []


@pytest.fixture
def plain_browser():
    """Without JavaScript."""
    with open_browser(javascript=False) as opened:
        yield opened
        assert opened.foreign() == []
