"""Two lives of a client, one beside the other where they are processes of their own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def two(life: Callable[[int], T], at_once: bool) -> tuple[T, T]:
    """Return the results of ``life(0)`` and ``life(1)``."""
    if not at_once:
        return life(0), life(1)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(life, (0, 1))
    return first, second
