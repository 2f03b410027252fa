"""Failures as a log may tell them: their kind, by fixed names. Texts of exceptions may quote what a client sent."""

from __future__ import annotations

import errno
from typing import Final

_NAMES: Final = ("sqlite_errorname", "sqlstate", "reason")
"""Where SQLite, PostgreSQL and OpenSSL say it in a word of their own."""
_MOST_CAUSES: Final = 4


def kind_of(error: BaseException) -> str:
    """The classes and codes of an exception and of what caused it, and nothing of their texts."""
    kinds: list[str] = []
    seen: BaseException | None = error
    while seen is not None and len(kinds) < _MOST_CAUSES:
        kinds.append(_kind(seen))
        seen = seen.__cause__
    return " from ".join(kinds)


def _kind(error: BaseException) -> str:
    words = [type(error).__name__]
    words += filter(None, (_code(getattr(error, name, None)) for name in _NAMES))
    if isinstance(error, OSError) and error.errno is not None:
        words += filter(None, [errno.errorcode.get(error.errno)])
    return " ".join(words)


def _code(value: object) -> str:
    """A code as it stands in a library's table: capitals, digits and underscores; anything else is left out."""
    if isinstance(value, str) and len(value) <= 60 and value.isascii() and value.replace("_", "").isalnum():
        return value if value == value.upper() else ""
    return ""
