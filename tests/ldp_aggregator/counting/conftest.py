"""Campaigns whose every report hits a cell of its own."""

from cells import make_campaign  # noqa: F401 - a fixture
