"""The client as a program of lines, for whoever checks it from outside: ``python -m ldp_client.lines``.

docs/audit.md says what is asked in a line, and answered. ``storage`` is a folder for what devices must not forget;
without one they live as long as the process.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from ldp_client.answering import perturb
from ldp_client.device import Device
from ldp_client.errors import TransportError
from ldp_client.network.transport import Cancellation, Request, Response
from ldp_client.storage.contract import MEMORY
from ldp_client.testing import FakeClock
from ldp_protocols import Campaign, LdpError, encode_upload

_NOWHERE = "http://127.0.0.1:1"
_RELAY = "http://127.0.0.1:2/relay"
_MANY_CAMPAIGNS = 100
_ATTEMPTS = 100
_ODD: Mapping[str, object] = {"nan": math.nan, "infinity": math.inf, "-infinity": -math.inf}


class _Record(dict[str, object]):
    """A record that raises where one of its ``unreadable`` features is read."""

    def __init__(self, values: Mapping[str, object], unreadable: frozenset[str]) -> None:
        super().__init__(values)
        self._unreadable = unreadable

    def __getitem__(self, name: str) -> object:
        if name in self._unreadable:
            raise LdpError("unreadable-record", name)
        return super().__getitem__(name)

    def get(self, name: str, default: object = None) -> object:
        return self[name] if name in self or name in self._unreadable else default


def answers(lines: Iterable[str]) -> Iterator[str]:
    """The answer to each line."""
    campaign: Campaign | None = None
    storage: Path | None = None
    devices: dict[tuple[str, str], _Device] = {}
    for line in lines:
        request = json.loads(line)
        if "storage" in request:
            storage = Path(request["storage"])
        if "document" in request:
            campaign = Campaign.parse(request["document"].encode())
        if campaign is None:
            raise ValueError("the first line needs a document")
        yield _answer(campaign, storage, devices, request)


def _answer(
    campaign: Campaign, storage: Path | None, devices: dict[tuple[str, str], _Device], request: dict[str, Any]
) -> str:
    name = request.get("device")
    record = _record(request)
    try:
        if name is None:
            return encode_upload(perturb(campaign, record, request.get("label")), campaign).hex()
        key, now = (campaign.id, str(name)), _seconds(request.get("now"))
        if key not in devices:
            devices[key] = _Device(campaign, _place(storage, str(name)), now)
        return " ".join(sent.hex() for sent in devices[key].answer(record, request, now))
    except LdpError as error:
        return f"!{error.code}"


def _record(request: Mapping[str, Any]) -> Mapping[str, object]:
    odd: Mapping[str, str] = request.get("odd", {})
    if not odd:
        return dict(request["record"])
    values = {**request["record"], **{name: _ODD[word] for name, word in odd.items() if word in _ODD}}
    return _Record(values, frozenset(name for name, word in odd.items() if word == "unreadable"))


def _seconds(now: str | None) -> float | None:
    return None if now is None else datetime.fromisoformat(now.replace("Z", "+00:00")).timestamp()


def _place(storage: Path | None, name: str) -> str:
    """One file for each device, whatever the letters of its name."""
    return MEMORY if storage is None else str(storage / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.sqlite")


class _Device:
    """One device whose requests never arrive."""

    def __init__(self, campaign: Campaign, storage: str, now: float | None) -> None:
        self._clock = FakeClock() if now is None else FakeClock(now)
        cap = campaign.privacy.epsilon
        relay = _RELAY if campaign.gateway else None
        self._device = Device(
            storage, max_total_epsilon=_MANY_CAMPAIGNS * cap, transport=self, clock=self._clock, relay=relay
        )
        crowd = campaign.privacy.crowd
        self._campaign = self._device.campaign(
            _NOWHERE,
            campaign.id,
            max_epsilon=cap,
            max_crowd_epsilon=crowd.epsilon if crowd else None,
            max_if_both_collude=cap,
        )
        self._document = campaign.document
        self._requests: list[Request] = []

    def send(self, request: Request, timeout: float, cancellation: Cancellation | None = None) -> Response:
        """See :class:`ldp_client.network.transport.Transport`."""
        self._requests.append(request)
        raise TransportError("connection-lost")

    def answer(self, record: Mapping[str, object], asks: Mapping[str, Any], now: float | None) -> list[bytes]:
        """The bytes that a line makes leave this device."""
        if now is not None:
            self._clock.now = now
        if "erase" in asks:
            self._device.erase()
        elif "resend" in asks:
            self._pass(asks["resend"])
        else:
            self._campaign.load(self._document)
            self._campaign.grant()
            signed = asks.get("token")
            if signed is not None and ((wanted := self._token_request(signed)) or not signed):
                return wanted
            self._campaign.contribute(record, asks.get("label"))
            for _ in range(_ATTEMPTS):
                # Another process of the same storage may have left a time for the next attempt.
                self._clock.advance(self._device.policy.longest_wait)
                self._device.run_once(1, stop=self._has_sent)
                if self._has_sent():
                    break
        whole, sent = asks.get("sealed", False), self._requests
        self._requests = []
        return [_text(request) if whole else request.body or b"" for request in sent if whole or request.body]

    def _has_sent(self) -> bool:
        return any(request.body for request in self._requests)

    def _pass(self, seconds: float) -> None:
        end = self._clock.elapsed + seconds
        self._device.run_once(seconds)
        self._clock.advance(max(0.0, end - self._clock.elapsed))

    def _token_request(self, signed: str) -> list[bytes]:
        """The request to the issuer that follows its answers so far; none where the token is there."""
        said, requests = signed.split(), list[bytes]()

        def issue(request: bytes) -> bytes:
            if said:
                return bytes.fromhex(said.pop(0))
            requests.append(request)
            raise LdpError("no-answer", "the issuer has not answered yet")

        try:
            self._campaign.obtain_token(issue)
        except LdpError:
            if not requests:
                raise
        return requests


def _text(request: Request) -> bytes:
    """A request as it leaves, less what every HTTP client adds."""
    lines = [f"{request.method} {request.url}", *(f"{name}: {value}" for name, value in request.headers.items())]
    return "\n".join([*lines, "", ""]).encode("latin-1") + (request.body or b"")


def main() -> None:
    for answer in answers(sys.stdin):
        sys.stdout.write(answer + "\n")
        # Whoever reads may kill this process after any line.
        sys.stdout.flush()


if __name__ == "__main__":
    main()
