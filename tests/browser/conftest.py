"""A real headless Chromium on a real server; skips, and says why, where there is no browser."""

import pytest
from browsing import start_browser

from simulations.fleet.aggregator import temporary_aggregator


@pytest.fixture
def aggregator():
    with temporary_aggregator() as running:
        yield running


@pytest.fixture
def browser():
    started = start_browser()
    try:
        yield started
        assert started.foreign() == []
    finally:
        started.driver.quit()


@pytest.fixture
def plain_browser():
    """Without JavaScript."""
    started = start_browser(javascript=False)
    try:
        yield started
        assert started.foreign() == []
    finally:
        started.driver.quit()
