from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from exact_coins import SeededCoins, enumerate_outcomes


@pytest.fixture
def outcomes() -> Callable[..., dict[Any, Fraction]]:
    """:func:`exact_coins.enumerate_outcomes`."""
    return enumerate_outcomes


@pytest.fixture
def seeded() -> type[SeededCoins]:
    """:class:`exact_coins.SeededCoins`."""
    return SeededCoins
