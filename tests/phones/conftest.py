"""What ``make kotlin`` and ``make swift`` have built, or a test that is skipped."""

import pytest
from phone_programs import built


@pytest.fixture(scope="session", params=["kotlin", "swift"])
def language(request):
    return request.param


@pytest.fixture(scope="session")
def client(language):
    return built(language)


@pytest.fixture(scope="session")
def program(client):
    """The command of the test program of each language."""
    return client.command
