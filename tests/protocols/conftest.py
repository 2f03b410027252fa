import pytest
from exact_coins import SeededCoins, enumerate_outcomes


@pytest.fixture
def outcomes():
    """:func:`exact_coins.enumerate_outcomes`."""
    return enumerate_outcomes


@pytest.fixture
def seeded():
    """:class:`exact_coins.SeededCoins`."""
    return SeededCoins
