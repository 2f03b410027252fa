"""The time, injected so that tests can step it, and its one spelling in databases and answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(timezone.utc)


def to_text(moment: datetime) -> str:
    """RFC 3339 in UTC."""
    return moment.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """The inverse of :func:`to_text`."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))
