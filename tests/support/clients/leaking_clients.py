"""Clients that break the promise, by name; one file of :mod:`planted` for each theme."""

from __future__ import annotations

from planted import answers, coins, framing, hidden, ids, memory, numbers, questions
from planted.witness import Leak

_THEMES = (ids, coins, answers, numbers, questions, framing, memory, hidden)

LEAKING: dict[str, Leak] = {name: leak for theme in _THEMES for name, leak in theme.LEAKS.items()}
