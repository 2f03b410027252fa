"""Strict reading of JSON objects: every key is known, every value has its type, every refusal names the field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from ldp_protocols.errors import LdpError

Refusal = Callable[[str, str], LdpError]
"""Builds the error for (field, problem)."""

LONGEST_TEXT: Final = 200
"""Characters of a name, a title, a class or a value."""

_NOT_TEXT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that no text of a document holds, because people are shown them: control characters, ends of lines and
paragraphs, which could forge a second line; marks that reverse the order of what is read (bidirectional controls); and
halves of a surrogate pair, which have no UTF-8.
"""

_ADDRESS: Final = re.compile(r"https://[0-9A-Z_a-z][!#-?A-~]{0,191}")

_LEAST_SPAN: Final = 1e-150
_LARGEST_SPAN: Final = 1e150
"""Widths of a value range whose squares, which variances are made of, are still doubles."""

_INSTANT: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}Z")


def parse_json(text: bytes | str, refuse: Refusal) -> Any:
    """JSON as RFC 8259 has it: UTF-8, no NaN or infinities, no key twice in one object."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(items)
        if len(members) != len(items):
            raise refuse(shorten(_first_repeated(name for name, _ in items)), "this key stands twice in one object")
        return members

    def number(digits: str) -> float:
        value = float(digits)
        if math.isinf(value):
            raise refuse("document", f"{shorten(digits)} is beyond a double; write a finite number")
        return value

    def integer(digits: str) -> int:
        number(digits)
        return int(digits)

    def constant(name: str) -> Any:
        raise refuse("document", f"{name} is not JSON; write a finite number")

    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        return json.loads(
            decoded, object_pairs_hook=pairs, parse_float=number, parse_int=integer, parse_constant=constant
        )
    except LdpError:
        raise
    except (ValueError, RecursionError) as error:
        raise refuse("document", f"not JSON in UTF-8 ({error})") from None


def describe(value: Any) -> str:
    """A value for an error message, shortened."""
    try:
        return shorten(json.dumps(value, ensure_ascii=False, default=repr))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, enormous integers, cycles, deep nesting
        return f"this {type(value).__name__}"


def shorten(text: str) -> str:
    """The beginning of a text, at most 60 characters, fit for UTF-8."""
    beginning = text if len(text) <= 60 else text[:57] + "..."
    return beginning.encode("utf-8", "backslashreplace").decode("utf-8")


def read_instant(value: object) -> datetime | None:
    """Read an RFC 3339 time in UTC (``2027-01-01T00:00:00Z``), None for what is none."""
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value[:-1] + "+00:00")
    except ValueError:
        return None


class Fields:
    """One JSON object, read key by key; :meth:`finish` refuses unread keys, ``like`` words a missing object's error."""

    def __init__(self, value: Any, path: str, refuse: Refusal, *, like: str | None = None) -> None:
        if value is None and like is not None:
            raise refuse(path, f"is missing; it looks like {like}")
        if not isinstance(value, Mapping):
            raise refuse(path or "document", f"must be an object, not {describe(value)}")
        self._members = dict(value)
        self._asked: list[str] = []
        self._path = path
        self._refuse = refuse

    def place(self, name: str) -> str:
        """The full name of a field, for messages."""
        return f"{self._path}.{name}" if self._path else name

    def error(self, name: str, problem: str) -> LdpError:
        return self._refuse(self.place(name), problem)

    def _wrong(self, name: str, right: str, value: Any, got: str | None = None) -> LdpError:
        """The refusal of a value that is not ``right``; null is as good as absent. ``got`` describes the value."""
        if value is None:
            return self.error(name, f"is missing; it must be {right}")
        return self.error(name, f"must be {right}, not {got or describe(value)}")

    def has(self, name: str) -> bool:
        """True if the key is present and not null."""
        return self.raw(name) is not None

    def raw(self, name: str) -> Any:
        """The value as it stands, None where absent."""
        self._asked.append(name)
        return self._members.get(name)

    def text(self, name: str, *, default: str | None = None, longest: int = LONGEST_TEXT) -> str:
        value = self.raw(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (not value.strip() and default is None):
            raise self._wrong(name, "a non-empty text", value)
        self._check_text(name, value, longest)
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def address(self, name: str) -> str | None:
        """The address of a page for people, or None: of ``https``, so that nobody on the way can show another page, and
        without an ``@``, before which a name could look like the host.
        """
        address = self.optional_text(name)
        if address is not None and not _ADDRESS.fullmatch(address):
            raise self._wrong(name, "an address such as https://example.org/privacy", address)
        return address

    def switch(self, name: str) -> bool | None:
        """True or false; None where it is absent or null."""
        value = self.raw(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(name, f"must be true or false, not {describe(value)}")
        return value

    def choice(self, name: str, choices: Iterable[str], *, default: str | None = None) -> str:
        value = self.raw(name)
        value = default if value is None else value
        names = list(choices)
        if value not in names:
            raise self._wrong(name, f"one of {', '.join(names)}", value)
        return str(value)

    def number(self, name: str) -> float:
        """A finite number; integral values are kept as int so that equal drafts give equal documents."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._wrong(name, "a number", value)
        return finite(value, self.place(name), self._refuse)

    def integer(self, name: str, *, least: int, most: int, default: int | None = None) -> int:
        value = self.raw(name)
        number = default if value is None else integral(value)
        if number is None or not least <= number <= most:
            right = str(least) if least == most else f"an integer from {least} to {most}"
            raise self._wrong(name, right, value)
        return number

    def texts(self, name: str, *, least: int, most: int) -> tuple[str, ...]:
        """A list of distinct non-empty texts."""
        value = self.sequence(name, least=least, most=most)
        for position, member in enumerate(value):
            place = f"{name}[{position}]"
            if not isinstance(member, str) or not member:
                raise self.error(place, f"must be a non-empty text, not {describe(member)}")
            self._check_text(place, member, LONGEST_TEXT)
        if len(set(value)) != len(value):
            twice = _first_repeated(value)
            raise self.error(name, f"{describe(twice)} stands in the list twice; every entry must be different")
        return tuple(value)

    def numbers(self, name: str, count: int) -> tuple[float, ...]:
        """A list of exactly ``count`` finite numbers."""
        return self.row(name, self.raw(name), count)

    def row(self, name: str, value: Any, count: int) -> tuple[float, ...]:
        """``value`` as exactly ``count`` finite numbers; ``name`` is its place in messages."""
        right = isinstance(value, (list, tuple)) and len(value) == count
        if not right or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
            raise self._wrong(name, f"a list of {count} numbers", value)
        return tuple(float(finite(v, self.place(f"{name}[{i}]"), self._refuse)) for i, v in enumerate(value))

    def sequence(self, name: str, *, least: int, most: int, like: str | None = None) -> list[Any]:
        """A list; where it is missing it is told what it looks ``like``."""
        value = self.raw(name)
        if value is None and like is not None:
            raise self.error(name, f"is missing; it looks like {like}")
        if not isinstance(value, (list, tuple)) or not least <= len(value) <= most:
            got = f"{len(value)} entries" if isinstance(value, (list, tuple)) else None
            raise self._wrong(name, f"a list of {least} to {most} entries", value, got)
        return list(value)

    def instant(self, name: str) -> datetime | None:
        """An RFC 3339 time in UTC (``2027-01-01T00:00:00Z``), or None."""
        value = self.raw(name)
        if value is None:
            return None
        instant = read_instant(value)
        if instant is None:
            raise self._wrong(name, "a time in UTC such as 2027-01-01T00:00:00Z", value)
        return instant

    def _check_text(self, name: str, text: str, longest: int) -> None:
        if len(text) > longest:
            raise self.error(name, f"must have at most {longest} characters, not {len(text)}")
        if _NOT_TEXT.search(text):
            wrong = "control characters, ends of lines, marks of writing direction or unpaired surrogates"
            raise self.error(name, f"must have no {wrong}; got {shorten(ascii(text))}")

    def finish(self) -> None:
        """Refuse unknown keys."""
        unknown = [name for name in self._members if name not in self._asked]
        if unknown:
            from difflib import get_close_matches  # Here: a device refuses few documents.

            near = get_close_matches(str(unknown[0])[:LONGEST_TEXT], self._asked, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            names = ", ".join(dict.fromkeys(self._asked))
            raise self.error(shorten(str(unknown[0])), f"unknown key; {meant}the keys here are {names}")


def integral(value: Any) -> int | None:
    """A JSON number's integer, or None beyond 2**53, where a double may differ; 1, 1.0 and 1e0 are one (RFC 8259)."""
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and abs(value) < 2**53 else None


def finite(value: float, place: str, refuse: Refusal) -> float:
    """A finite number, as int where it is integral and exact."""
    try:
        as_float = float(value)
    except OverflowError:
        as_float = math.inf
    if not math.isfinite(as_float):
        raise refuse(place, f"must be finite, not {describe(value)}")
    return int(as_float) if as_float.is_integer() and abs(as_float) < 2**53 else as_float


def _first_repeated(names: Iterable[str]) -> str:
    """The first name that stood before; one pass, because a hostile document may hold very many."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("called only where a name repeats")


def read_bounds(fields: Fields) -> tuple[float, float]:
    """``low`` and ``high`` of a continuous feature."""
    low, high = fields.number("low"), fields.number("high")
    if low >= high:
        raise fields.error("low", f"must be below high; got low {low} and high {high}")
    if not _LEAST_SPAN <= float(high) - float(low) <= _LARGEST_SPAN:
        raise fields.error("high", f"high - low must be from {_LEAST_SPAN} to {_LARGEST_SPAN}; choose other units")
    return low, high
