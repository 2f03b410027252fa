"""The whole traffic of devices: what a relay, a gateway and an issuer see, sends that are repeated, and erasure.

Devices of a few people are asked for everything that leaves them: requests to the relay with their headers, token
requests, and what is sent again while no answer comes. What stands around answers has one form. What is drawn, the
ephemeral key of every seal, the blinded request, the factor that blinds it, the salt of a token, ids, is uniform,
never repeats, and has one law whoever the person is; and so has the number of sends in any time. After an erasure a
device is another one, and nothing of the former one is on the disk.
"""

from __future__ import annotations

import base64
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgpack
import numpy as np

from ldp_aggregator.audit import repeats
from ldp_aggregator.audit.asking.black_box import Answer, Dialogue, Person, Talk, all_refused, two
from ldp_aggregator.audit.asking.observations import Seen, read_tables
from ldp_aggregator.audit.asking.parties import SEALED_TYPE, ForeignError, Opened, Parties, nonce_of
from ldp_aggregator.audit.asking.people import spread
from ldp_aggregator.audit.searching.comparisons import Chosen, Claims, search
from ldp_aggregator.audit.searching.events import SIDE, WHOLE, Event

CLEAR: Final = "clear"
FORM: Final = "form"
RETRIED: Final = "retried"
REPEATED: Final = "repeated"
UNEVEN: Final = "uneven"
TOKEN: Final = "token"  # noqa: S105 - the name of a rule
ERASED: Final = "erased"
REFUSED: Final = "refused"

PEOPLE: Final = 8
SHARE: Final = 80
"""Devices of each of them are so many times fewer than trials."""
_LEAST, _MOST = 8, 250

ERASED_DEVICES: Final = 24
PAUSES: Final = (10, 60, 600)
"""Seconds after which devices are asked what they have sent meanwhile, nothing having come back."""
_LONG: Final = 86_400

PARTS: Final = {SIDE: 0.4, WHOLE: 0.2, UNEVEN: 0.2, REPEATED: 0.1, ERASED: 0.1}
"""How the traffic's part of the probability to be wrong is divided."""

_GROUPS: Final = ("ids", "ephemeral keys", "blinded token requests", "blinding factors", "salts and nonces of tokens")
_SCHEME: Final = "PrivateToken "
_COUNTS: Final = "requests in each pause"
_PART: Final = 16


@dataclass(frozen=True)
class Request:
    """A request as a device sent it; ``opened`` where it was sealed to the gateway."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    opened: Opened | None = None

    @property
    def host(self) -> str:
        return _host(self.url)

    @property
    def upload(self) -> bytes:
        return self.body if self.opened is None else self.opened.body

    @property
    def credentials(self) -> tuple[str, ...]:
        """The headers that show tokens: the aggregator's, and the relay's where there is one."""
        inside = () if self.opened is None else self.opened.headers
        return tuple(value for _, value in (*inside, *self.headers) if value.startswith(_SCHEME))


@dataclass
class Device:
    """Everything that left one device: token requests, and requests by turns."""

    person: int
    process: int
    token_requests: dict[int, list[bytes]] = field(default_factory=dict)
    turns: list[list[Request]] = field(default_factory=list)

    @property
    def uploads(self) -> list[Request]:
        return [request for turn in self.turns for request in turn if request.body]


@dataclass(frozen=True)
class Traffic:
    """Devices that were asked, those that were erased, with what they sent ``after``, and what was found meanwhile."""

    people: tuple[Person, ...]
    devices: list[Device]
    erased: list[Device]
    after: list[Device]
    found: list[tuple[str, str]]


def ask_traffic(parties: Parties, talk: Talk, people: Sequence[Person], trials: int, at_once: bool) -> Traffic:
    """Ask some of the people, each for many devices, in two processes."""
    chosen = tuple(spread(people, PEOPLE))
    each = min(max(_LEAST, trials // SHARE), _MOST)
    found: list[tuple[str, str]] = []

    def life(process: int) -> list[Device]:
        devices = [Device(number % len(chosen), process) for number in range(each * len(chosen) // 2)]
        with talk(parties.timeless, None) as ask:
            asking = _Asking(parties, ask, chosen, devices, found)
            asking.answers()
            for pause in PAUSES:
                asking.turn(f"devices that are to send again within {pause} seconds", {"resend": pause}, silent=True)
        return devices

    lives = two(life, at_once)
    erased = [Device(number % 2, 0) for number in range(ERASED_DEVICES)]
    after = [Device(device.person, 0) for device in erased]
    pair = (chosen[0], chosen[-1])
    with tempfile.TemporaryDirectory() as folder, talk(parties.timeless, Path(folder)) as ask:
        before = _Asking(parties, ask, pair, erased, found)
        before.answers()
        before.erase()
        found += [(ERASED, text) for text in _left_over(erased, Path(folder))]
        silent = _Asking(parties, ask, pair, [Device(device.person, 0) for device in erased], found)
        silent.turn("devices that were erased", {"resend": _LONG}, silent=True)
        sending = sum(bool(device.uploads) for device in silent.devices)
        if sending:
            found.append((ERASED, f"{sending} of {len(erased)} devices sent uploads after they had been erased"))
        _Asking(parties, ask, pair, after, found).answers()
    return Traffic(chosen, [*lives[0], *lives[1]], erased, after, found)


class _Asking:
    """Ask devices in turns, and take note of what is refused."""

    def __init__(
        self,
        parties: Parties,
        ask: Dialogue,
        people: Sequence[Person],
        devices: list[Device],
        found: list[tuple[str, str]],
    ) -> None:
        self._parties, self._ask, self._found = parties, ask, found
        self.devices = devices
        self._lines = [
            people[device.person].to_json() | {"device": f"device {number}"} for number, device in enumerate(devices)
        ]

    def answers(self) -> None:
        """Have every device ask for its token, twice, and send its answer with it."""
        more: list[Mapping[str, Any]] = [{} for _ in self.devices]
        signed: list[str | None] = ["" for _ in self.devices]
        for number in range(len(self._parties.issuers)):
            lines = [line | {"token": token or ""} for line, token in zip(self._lines, signed, strict=True)]
            for answers in (self._ask(lines), self._ask(lines)):
                self._refused("devices that ask for a token", answers)
                for device, answer in zip(self.devices, answers, strict=True):
                    device.token_requests.setdefault(number, []).extend(answer[:1])
            signed = [
                self._parties.signed(number, token, tuple(device.token_requests[number][:1]))
                for device, token in zip(self.devices, signed, strict=True)
            ]
        if self._parties.issuers:
            more = [{"token": token} if token else {} for token in signed]
        self.turn("devices that send an upload", *more)

    def turn(self, what: str, *more: Mapping[str, Any], silent: bool = False) -> None:
        """Ask everybody with ``more``, one for all or one for each; ``silent``: a device may send nothing."""
        each = more if len(more) == len(self.devices) else more * len(self.devices)
        lines = [{**line, "sealed": True, **of} for line, of in zip(self._lines, each, strict=True)]
        answers = self._ask(lines)
        if not silent or all(map(_is_refusal, answers)):
            self._refused(what, answers)
        for device, answer in zip(self.devices, answers, strict=True):
            device.turns.append([_read(self._parties, text, self._found) for text in answer])

    def erase(self) -> None:
        answers = self._ask([line | {"erase": True} for line in self._lines])
        if any(map(_is_refusal, answers)) or any(map(len, answers)):
            wrong = sum(bool(answer) or _is_refusal(answer) for answer in answers)
            self._found.append(
                (REFUSED, f"{wrong} of {len(answers)} lines that erase a device were not answered by nothing")
            )

    def _refused(self, what: str, answers: Sequence[Answer]) -> None:
        if (text := all_refused(what, answers)) is not None:
            self._found.append((REFUSED, text))


def _is_refusal(answer: Answer) -> bool:
    return bool(getattr(answer, "reason", ""))


def _read(parties: Parties, text: bytes, found: list[tuple[str, str]]) -> Request:
    if not text.startswith((b"GET http", b"POST http")):
        found.append((FORM, "what is said to be sent is no request: METHOD URL, headers, an empty line, the body"))
        return Request("", "", (), b"")
    head, _, body = text.partition(b"\n\n")
    first, *lines = head.decode("latin-1").split("\n")
    method, _, url = first.partition(" ")
    headers = tuple((name, value) for name, _, value in (line.partition(": ") for line in lines))
    request = Request(method, url, headers, body)
    if parties.gateway is None or not body:
        return request
    media_type = {name.lower(): value for name, value in headers}.get("content-type", "")
    try:
        opened = parties.gateway.open(body)
    except ForeignError as error:
        found.append((CLEAR, f"an upload of type {media_type!r} to {_host(url)} {error}: it is not sealed"))
        return request
    if media_type != SEALED_TYPE or _host(opened.url) == _host(url):
        found.append((CLEAR, f"an upload of type {media_type!r} goes to {_host(url)}, which is no relay"))
    if opened.padding.strip(b"\0"):
        found.append(
            (FORM, f"the padding of an upload holds {opened.padding.strip(bytes(1)).hex()[:64]}; zeros are right")
        )
    return replace(request, opened=opened)


def _host(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def findings(
    parties: Parties, traffic: Traffic, claims: Claims, alpha: float
) -> tuple[list[tuple[str, str]], list[Event]]:
    """Broken rules, and events that tell people apart; wrong with probability at most ``alpha`` in all."""
    found = [*_counted(traffic.found)]
    found += [(FORM, text) for text in _forms(parties, traffic.devices)]
    found += [(CLEAR, text) for text in _direct(parties, traffic.devices)]
    found += [(RETRIED, text) for text in _other_bytes(traffic.devices)]
    drawn, wrong = _drawn(parties, traffic.devices)
    found += [(TOKEN, text) for text in wrong]
    found += [(REPEATED, text) for text in _repeated_seals([*traffic.devices, *traffic.erased, *traffic.after])]
    found += [(ERASED, text) for text in _same_after(traffic, alpha * PARTS[ERASED])]
    groups = {name: seen for name in _GROUPS if (seen := _seen(traffic, [of[name] for of in drawn])) is not None}
    for name, seen in groups.items():
        ids = [one for table in seen.tables for one in repeats.ids_of([table])]
        if (text := repeats.repeated_ids(ids, alpha * PARTS[REPEATED] / len(_GROUPS))) is not None:
            found.append((REPEATED, f"{name}: {text}"))
        if (text := repeats.uneven_ids(seen, alpha * PARTS[UNEVEN] / len(_GROUPS))) is not None:
            found.append((UNEVEN, f"{name}: {text}"))
    counts = [{_COUNTS: [bytes(min(len(turn), 255) for turn in device.turns)]} for device in traffic.devices]
    if (counted := _seen(traffic, [of[_COUNTS] for of in counts])) is not None:
        groups[_COUNTS] = counted
    events = [*_side_events(traffic, groups, claims, alpha * PARTS[SIDE])]
    return found, events + _whole_events(traffic, claims, alpha * PARTS[WHOLE])


def _counted(found: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each finding once."""
    for (rule, text), times in Counter(found).items():
        yield rule, text if times == 1 else f"{text}; {times} times"


def _side_events(traffic: Traffic, groups: Mapping[str, Seen], claims: Claims, alpha: float) -> Iterator[Event]:
    """One law for everybody, of each group."""
    for name, seen in groups.items():
        chosen = Chosen()
        search(traffic.people, seen, claims, chosen)
        events = chosen.of(SIDE)
        part = alpha / (len(_GROUPS) + 1) / max(1, len(events))
        yield from (replace(event, name=f"{name}: {event.name}").bounded(part) for event in events)


def _whole_events(traffic: Traffic, claims: Claims, alpha: float) -> list[Event]:
    """Answers that went the whole way tell no more than others."""
    answers: list[Answer] = [tuple(request.upload for request in device.uploads[:1]) for device in traffic.devices]
    if not any(answers):
        return []
    chosen = Chosen()
    search(traffic.people, _of(traffic, answers), claims, chosen)
    events = chosen.of(WHOLE)
    return [replace(event, name=f"as sent by devices: {event.name}").bounded(alpha / len(events)) for event in events]


def _of(traffic: Traffic, answers: Sequence[Answer]) -> Seen:
    person, process = (np.array([getattr(of, name) for of in traffic.devices]) for name in ("person", "process"))
    return Seen(len(traffic.people), person, process, read_tables(answers))


def _seen(traffic: Traffic, drawn: Sequence[Sequence[bytes]]) -> Seen | None:
    """Draws of devices, as if each part were the id of an answer that says nothing."""
    answers: list[Answer] = [
        (msgpack.packb([1, [[number, part, b""] for number, part in enumerate(parts)]]),) if parts else ()
        for parts in drawn
    ]
    return _of(traffic, answers) if any(answers) else None


def _parts(drawn: bytes) -> list[bytes]:
    return [drawn[at : at + _PART] for at in range(0, len(drawn) - _PART + 1, _PART)]


def _drawn(parties: Parties, devices: Sequence[Device]) -> tuple[list[dict[str, list[bytes]]], list[str]]:
    """Random bytes of devices beside their noise, by group in parts of 16; and the faults of their tokens."""
    drawn, wrong = [], []
    for device in devices:
        of: dict[str, list[bytes]] = {name: [] for name in _GROUPS}
        drawn.append(of)
        for request in device.uploads[:2]:
            if request.opened is not None:
                # The highest bit of a point of Curve25519 is 0; the rest are uniform but for 2^-120.
                of["ephemeral keys"] += [request.opened.enc[:_PART], request.opened.enc[15:31]]
        if not device.uploads:
            continue
        of["ids"] = _ids(device.uploads[0].upload)
        headers = device.uploads[0].credentials
        if len(headers) != len(parties.issuers):
            wrong.append(f"an upload shows {len(headers)} tokens; {len(parties.issuers)} are right")
            continue
        for number, (issuer, credentials) in enumerate(zip(parties.issuers, headers, strict=True)):
            try:
                token = issuer.read(credentials)
            except ForeignError as error:
                wrong.append(f"an upload {error}")
                continue
            if number == 0 and of["ids"] and token.nonce != nonce_of(of["ids"]):
                wrong.append("a token is not of the ids of its answer")
            of["salts and nonces of tokens"] += _parts(token.salt) + (_parts(token.nonce) if number else [])
            for blinded in device.token_requests.get(number, [])[:1]:
                # The first bytes of a number below the modulus are not uniform.
                of["blinded token requests"] += _parts(blinded[3 + _PART :])
                of["blinding factors"] += _parts(issuer.factor(issuer.sign(blinded), token)[_PART:])
    return drawn, [text for _, text in _counted((TOKEN, text) for text in wrong)]


def _ids(upload: bytes) -> list[bytes]:
    reader = msgpack.Unpacker(raw=True, strict_map_key=False)
    reader.feed(upload)
    try:
        return [bytes(block[1]) for block in reader.unpack()[1]]
    except Exception:  # Hostile bytes raise many types; each means that there are none.
        return []


def _forms(parties: Parties, devices: Sequence[Device]) -> Iterator[str]:
    """Differences between requests of devices in anything but answers and tokens."""
    forms: dict[str, Callable[[Request], Any]] = {
        "uploads, as the relay or the network sees them": _outer_form,
        "uploads, as the aggregator sees them": partial(_inner_form, parties),
        "other requests": lambda request: (request.method, request.url, request.headers),
    }
    for what, form_of in forms.items():
        with_body = what != "other requests"
        found = Counter(
            form_of(request)
            for device in devices
            for turn in device.turns
            for request in turn
            if bool(request.body) == with_body
        )
        if len(found) > 1:
            (one, often), (other, rarely) = found.most_common()[0], found.most_common()[-1]
            yield f"{what} have {len(found)} forms; of {often} is {_difference(one, other)} of {rarely}"
    for number in range(len(parties.issuers)):
        requests = [one for device in devices for one in device.token_requests.get(number, [])]
        heads = sorted({f"{request[:3].hex()} of {len(request)} bytes" for request in requests})
        if len(heads) > 1:
            yield f"token requests have {len(heads)} forms, among them {heads[0]} and {heads[1]}"


def _outer_form(request: Request) -> tuple[Any, ...]:
    headers = _less_tokens(request.headers)
    begins = b"" if request.opened is None else request.opened.header
    return request.method, request.url, headers, len(request.body), begins


def _inner_form(parties: Parties, request: Request) -> tuple[Any, ...]:
    if request.opened is None:
        return ()
    of, ends = request.opened, b""
    if parties.issuers and request.credentials:
        try:
            ends = parties.issuers[0].read(request.credentials[0]).ends
        except ForeignError:
            ends = b"no token"
    return of.method, of.url, _less_tokens(of.headers), len(of.body), len(of.padding), ends


def _less_tokens(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _SCHEME if value.startswith(_SCHEME) else value) for name, value in headers)


def _difference(one: tuple[Any, ...], other: tuple[Any, ...]) -> str:
    place = next((number for number, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), 0)
    return f"{str(one[place:][:1])[:120]}, where {str(other[place:][:1])[:120]} is"


def _direct(parties: Parties, devices: Sequence[Device]) -> Iterator[str]:
    """Nothing at all goes to the aggregator of a campaign with a relay."""
    hosts = {request.opened and _host(request.opened.url) for device in devices for request in device.uploads} - {None}
    direct = sum(request.host in hosts for device in devices for turn in device.turns for request in turn)
    if parties.gateway is not None and direct:
        yield f"{direct} requests go to the aggregator, {sorted(map(str, hosts))[0]}, itself"


def _other_bytes(devices: Sequence[Device]) -> Iterator[str]:
    different = sum(len({request.upload for request in device.uploads}) > 1 for device in devices)
    if different:
        yield f"{different} of {len(devices)} devices sent another upload when nothing had come back"
    asking = sum(any(len(set(one)) > 1 for one in device.token_requests.values()) for device in devices)
    if asking:
        yield f"{asking} of {len(devices)} devices asked for their token by another request the second time"
    tokens = sum(len({request.credentials for request in device.uploads}) > 1 for device in devices)
    if tokens:
        yield f"{tokens} of {len(devices)} devices showed another token when nothing had come back"


def _repeated_seals(devices: Sequence[Device]) -> Iterator[str]:
    encs = Counter(request.opened.enc for device in devices for request in device.uploads if request.opened)
    again = sum(encs.values()) - len(encs)
    if again:
        yield f"{again} of {sum(encs.values())} seals have the ephemeral key of another one"


def _same_after(traffic: Traffic, alpha: float) -> Iterator[str]:
    """An erased device is another one."""
    before, after = traffic.erased, traffic.after
    pairs = list(zip(before, after, strict=True))
    same = sum(not set(_ids_of(one)).isdisjoint(_ids_of(other)) for one, other in pairs)
    if same:
        yield f"{same} of {len(pairs)} devices had the ids of before when they had been erased"
    tokens = sum(not set(_requests_of(one)).isdisjoint(_requests_of(other)) for one, other in pairs)
    if tokens:
        yield f"{tokens} of {len(pairs)} devices asked for the token of before when they had been erased"
    for person in (0, 1):
        mine = [[_sent(device) for device in devices if device.person == person] for devices in (before, after)]
        if all(any(answers) for answers in mine):
            first, second = (repeats.keys_of(read_tables(answers), len(answers)) for answers in mine)
            # Others of this person, whose answers have nothing in common, say what is usual.
            usual = {of: repeats.equal_pairs(keys[0::2], keys[1::2]) for of, keys in first.items()}
            alikes = list(repeats.alike_keys("before and after an erasure", first, second, usual))
            for alike in alikes:
                if alike.excessive(alpha / 2 / max(len(alikes), 1)):
                    yield str(alike)


def _requests_of(device: Device) -> list[bytes]:
    return [request for of in device.token_requests.values() for request in of]


def _sent(device: Device) -> Answer:
    return tuple(request.upload for request in device.uploads[:1])


def _ids_of(device: Device) -> list[bytes]:
    return [one for upload in _sent(device) for one in _ids(upload)]


def _left_over(devices: Sequence[Device], folder: Path) -> Iterator[str]:
    """Find ids of devices that were erased in the files that are left."""
    drawn = [one for device in devices for one in _ids_of(device)]
    files = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    forms: dict[str, Callable[[bytes], bytes]] = {"": bytes, "in hexadecimal": _hexadecimal, "in base64": _base64}
    for how, written in forms.items():
        left = sum(any(written(one) in content for content in files) for one in drawn)
        if left:
            yield f"{left} of {len(drawn)} ids are still on the disk {how}".rstrip()


def _hexadecimal(raw: bytes) -> bytes:
    return raw.hex().encode()


def _base64(raw: bytes) -> bytes:
    """As far as it does not depend on what follows."""
    return base64.b64encode(raw)[: len(raw) * 8 // 6]
