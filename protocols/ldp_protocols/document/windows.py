"""Windows: a campaign that asks the same population time after time, each device once in its life.

A device draws (window, question) from its secret before any record is read, and answers with the record that it has
while its window is open; where it is off or has no record then, it answers in none. So any two lives are told apart by
at most the one answer's epsilon, whatever happened in them and whenever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

from ldp_protocols.fields import Fields, Refusal

MOST_WINDOWS: Final = 1 << 12
WINDOW_GRACE: Final = timedelta(days=7)
"""A window's answers are counted for so long after its end: a device that answered in time may have been offline."""

_LENGTH: Final = re.compile(r"P(?:([1-9][0-9]{0,3})([WD])|T([1-9][0-9]{0,3})([HM]))")
_UNITS: Final = {"W": timedelta(weeks=1), "D": timedelta(days=1), "H": timedelta(hours=1), "M": timedelta(minutes=1)}
_WORDS: Final = {"W": "week", "D": "day", "H": "hour", "M": "minute"}
_LIKE: Final = '{"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52}'
_LATEST_YEAR: Final = 9000


@dataclass(frozen=True)
class Windows:
    """``count`` windows in a row from ``start``; ``length`` in ISO 8601 and one unit: ``P7D``, ``P1W``, ``PT30M``."""

    start: datetime
    length: str
    count: int

    @property
    def duration(self) -> timedelta:
        """The length of one window."""
        number, unit = _length(self.length)
        return number * _UNITS[unit]

    @property
    def each(self) -> str:
        """The length of one window in words."""
        number, unit = _length(self.length)
        return f"{number} {_WORDS[unit]}{'' if number == 1 else 's'}"

    @property
    def end(self) -> datetime:
        """The moment at which the last window ends."""
        return self.opens(self.count)

    def opens(self, window: int) -> datetime:
        """The moment from which on devices of this window answer; it ends when the next one opens."""
        return self.start + window * self.duration

    def open_at(self, moment: datetime) -> int:
        """The window at a moment: below 0 before the first one, ``count`` or more after the last."""
        return (moment - self.start) // self.duration

    def counted_at(self, moment: datetime) -> range:
        """The windows whose answers are counted at a moment: the open one, and those not long over."""
        last = min(self.open_at(moment), self.count - 1)
        return range(max(0, self.open_at(moment - WINDOW_GRACE)), last + 1)

    def name(self, window: int) -> str:
        """A window in words: its number, from 1 on."""
        return f"window {window + 1} of {self.count}"

    def told(self, window: int) -> str:
        """A window in words with its times."""
        first, end = (self.opens(one).strftime("%Y-%m-%d %H:%M") for one in (window, window + 1))
        return f"{self.name(window)}, from {first} to {end} UTC"

    def to_json(self) -> dict[str, Any]:
        start = self.start.isoformat().replace("+00:00", "Z")
        return {"from": start, "length": self.length, "count": self.count}


@cache
def _length(text: str) -> tuple[int, str]:
    """The number and the unit of a length that was read."""
    days, of_days, hours, of_hours = _LENGTH.fullmatch(text).groups()  # type: ignore[union-attr]
    return int(days or hours), of_days or of_hours


def read_windows(value: Any, refuse: Refusal) -> Windows | None:
    """Read a draft's or document's windows, None where it has none."""
    if value is None:
        return None
    fields = Fields(value, "windows", refuse, like=_LIKE)
    start = fields.instant("from")
    if start is None:
        raise fields.error("from", "is missing; it is when the first window opens, such as 2027-01-04T00:00:00Z")
    length = fields.text("length")
    if not _LENGTH.fullmatch(length):
        raise fields.error("length", f"must be one number of weeks, days, hours or minutes (P7D, PT1H), not {length!r}")
    windows = Windows(start, length, fields.integer("count", least=2, most=MOST_WINDOWS))
    fields.finish()
    if start.year + windows.count * windows.duration / timedelta(days=365) > _LATEST_YEAR:
        raise fields.error("count", f"windows of {length} would last beyond the year {_LATEST_YEAR}")
    return windows
