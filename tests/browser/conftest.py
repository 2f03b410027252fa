"""A real headless Chromium on a real server; skips, and says why, where there is no browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browsing import Browser, start_browser

from simulations.fleet.aggregator import Aggregator, temporary_aggregator


@pytest.fixture
def aggregator() -> Iterator[Aggregator]:
    with temporary_aggregator() as running:
        yield running


@pytest.fixture
def browser() -> Iterator[Browser]:
    started = start_browser()
    try:
        yield started
        assert started.foreign() == []
    finally:
        started.driver.quit()


@pytest.fixture
def plain_browser() -> Iterator[Browser]:
    """Without JavaScript."""
    started = start_browser(javascript=False)
    try:
        yield started
        assert started.foreign() == []
    finally:
        started.driver.quit()
