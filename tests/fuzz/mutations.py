"""Changes to bytes that keep their form: a place inside of JSON or msgpack, or a line of HTTP, becomes another."""

import copy
import json
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgpack

TOKENS: Final[list[Any]] = [
    *(None, True, False, 0, 1, 2, -1, 3, 255, 256, 16_384, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63), 10**30),
    *(0.5, -0.0, 1e-300, 1e300, 1e308, 5e-324, 0.1),
    *("", "x", "1", "missing", "\ud800", "a\nb", "de", "ss", "one", "all", "2027-01-01T00:00:00Z", "9" * 40, "A" * 43),
    *([], {}, [[]], [0], {"": 0}),
]
LINES: Final = [
    *(b"Content-Length: 0", b"Content-Length: 44", b"Content-Length: 99999999999", b"Transfer-Encoding: chunked"),
    *(b"Connection: close", b"Connection: keep-alive, upgrade", b"Upgrade: h2c", b"Upgrade: websocket", b"Host: y"),
    *(b"Expect: 100-continue", b"Origin: https://x.example", b"Content-Encoding: gzip", b" folded", b"", b"X: \x00"),
    *(b"Authorization: Bearer x", b"Authorization: Basic eA==", b"Trailer: X", b"TE: trailers", b"Range: bytes=0-1"),
    *(b"GET / HTTP/1.1", b"HEAD /v1/campaigns HTTP/1.1", b"PRI * HTTP/2.0", b"GET http://x/ HTTP/1.1", b"0", b"-1"),
    *(b"Content-Type: application/json", b"X-Long: " + b"x" * 1100, b"Accept-Encoding: gzip", b"5;x=y", b"hello"),
]
_LONGEST: Final = 300
"""Times that something is repeated."""


def changed(data: bytes, rng: random.Random) -> bytes:
    """Bytes of the same form with one to four changes; as they are where they have none of the forms."""
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = _changed_once(data, rng)
    return data


def _changed_once(data: bytes, rng: random.Random) -> bytes:
    if b"HTTP/1" in data:
        return _line_changed(data, rng)
    try:
        text = json.dumps(_place_changed(json.loads(data), rng), ensure_ascii=rng.random() < 0.5)
        return text.encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        pass
    try:
        value = _place_changed(msgpack.unpackb(data[1:], strict_map_key=False), rng)
        return data[:1] + msgpack.packb(value)
    except Exception:  # msgpack raises many types; each means that there is no such form.
        return data


def _places(value: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*prefix, key)
        yield from _places(member, (*prefix, key))


def _place_changed(value: Any, rng: random.Random) -> Any:
    places = list(_places(value))
    if not places:
        return rng.choice(TOKENS)
    *above, key = rng.choice(places)
    held = _at(value, above)
    way = rng.randrange(7)
    if way == 0:
        held[key] = copy.deepcopy(rng.choice(TOKENS))
    elif way == 1:
        del held[key]
    elif way == 2:
        held[key] = copy.deepcopy(_at(value, rng.choice(places)))
    elif way == 3 and isinstance(held, list):
        held[key:key] = [held[key]] * rng.choice([1, 1, 2, _LONGEST])
    elif way == 4 and isinstance(held, dict):
        held[str(rng.choice(TOKENS))] = held[key]
    elif way == 5 and isinstance(held, list) and all(type(member) is float for member in held):
        # What has to add up to one still does.
        amount = rng.choice([held[key], 0.5, 1.0, 2 * held[key]])
        held[key] -= amount
        held[rng.randrange(len(held))] += amount
    else:
        held[key] = _beside(held[key], rng)
    return value


def _at(value: Any, place: Sequence[Any]) -> Any:
    for step in place:
        value = value[step]
    return value


def _beside(value: Any, rng: random.Random) -> Any:
    """A value that is nearly the same."""
    if isinstance(value, bool) or value is None:
        return rng.choice(TOKENS)
    if isinstance(value, (int, float)):
        near = [value + 1, value - 1, -value, value * 2, str(value)]
        return rng.choice([*near, float(value)] if abs(value) < 2**60 else near)
    if isinstance(value, str):
        if value.isdigit():
            return str(int(value[:30]) + rng.choice([-1, 1, 1 << 40]))
        return rng.choice([value + "x", value[1:], value * 2, value[:1] * _LONGEST])
    if isinstance(value, bytes):
        at = rng.randrange(len(value) + 1)
        return rng.choice([value + value, value[1:], value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]])
    return rng.choice([[value], list(value), dict.fromkeys(map(str, value), 0)])


def _line_changed(data: bytes, rng: random.Random) -> bytes:
    lines = data[1:].split(b"\r\n")
    at = rng.randrange(len(lines))
    way = rng.randrange(6)
    if way == 0:
        lines[at] = rng.choice(LINES)
    elif way == 1:
        lines[at:at] = [rng.choice(LINES)] * rng.choice([1, 1, 1, 40])
    elif way == 2:
        del lines[at]
    elif way == 3:
        lines[at:at] = lines[rng.randrange(len(lines)) :]
    elif way == 4:
        lines[at] = rng.choice([lines[at].swapcase(), *(lines[at].replace(b":", by) for by in (b" :", b"", b":\t"))])
    else:
        lines = lines[: at + 1]
    first = rng.randrange(256) if rng.random() < 0.2 else data[0]
    return bytes([first]) + rng.choice([b"\r\n"] * 9 + [b"\n"]).join(lines)
