"""Functions of an operator's own, by their names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def function_named(name: str) -> Callable[..., Any]:
    """The function that ``MODULE:FUNCTION`` names. Raises ValueError, which says what is wrong with the name."""
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{name!r} cannot be loaded ({type(error).__name__})") from None
    if not callable(found):
        raise ValueError(f"{name!r} is no function")
    return found  # type: ignore[no-any-return]
