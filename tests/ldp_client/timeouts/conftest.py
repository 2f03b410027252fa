"""No limit but a call's own."""

import pytest

import ldp_client.storage.memory
import ldp_client.storage.sqlite

NEVER = 600.0
"""Seconds, more than any test takes; what waits so long has not kept its timeout."""


@pytest.fixture(autouse=True)
def no_timeout_but_the_calls(monkeypatch):
    """The limit of a call that is given none would hide one that is not kept."""
    for module in (ldp_client.storage.sqlite, ldp_client.storage.memory):
        monkeypatch.setattr(module, "STORAGE_WAIT", NEVER)
