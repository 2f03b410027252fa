"""A real headless Chromium on a real server; skips, and says why, where there is no browser."""

import pytest
from browsing import open_browser

from ldp_simulations.experiment import temporary_aggregator


@pytest.fixture
def aggregator():
    with temporary_aggregator() as running:
        yield running


@pytest.fixture
def browser(request):
    """Without JavaScript where a parameter says so."""
    with open_browser(javascript=getattr(request, "param", True)) as opened:
        yield opened
        assert opened.foreign() == []
