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
from ldp_client.delivery.schedule import Send
from ldp_client.device import Device
from ldp_client.errors import TransportError
from ldp_client.storage.contract import MEMORY
from ldp_client.testing import FakeClock
from ldp_protocols import Campaign, LdpError, encode_upload

_NOWHERE = "http://127.0.0.1:1"
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
        asked = json.loads(line)
        if "storage" in asked:
            storage = Path(asked["storage"])
        if "document" in asked:
            campaign = Campaign.parse(asked["document"].encode())
        if campaign is None:
            raise ValueError("the first line needs a document")
        yield _answer(campaign, storage, devices, asked)


def _answer(
    campaign: Campaign, storage: Path | None, devices: dict[tuple[str, str], _Device], asked: dict[str, Any]
) -> str:
    name = asked.get("device")
    record = _record(asked)
    try:
        if name is None:
            return encode_upload(perturb(campaign, record, asked["label"]), campaign).hex()
        key, now = (campaign.id, str(name)), _seconds(asked.get("now"))
        if key not in devices:
            devices[key] = _Device(campaign, _place(storage, str(name)), now)
        return devices[key].send(record, asked["label"], now).hex()
    except LdpError as error:
        return f"!{error.code}"


def _record(asked: Mapping[str, Any]) -> Mapping[str, object]:
    odd: Mapping[str, str] = asked.get("odd", {})
    if not odd:
        return dict(asked["record"])
    values = {**asked["record"], **{name: _ODD[word] for name, word in odd.items() if word in _ODD}}
    return _Record(values, frozenset(name for name, word in odd.items() if word == "unreadable"))


def _seconds(now: str | None) -> float | None:
    return None if now is None else datetime.fromisoformat(now.replace("Z", "+00:00")).timestamp()


def _place(storage: Path | None, name: str) -> str:
    """One file for each device, whatever the letters of its name."""
    return MEMORY if storage is None else str(storage / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.sqlite")


class _Device:
    """One device whose uploads never arrive."""

    def __init__(self, campaign: Campaign, storage: str, now: float | None) -> None:
        self._clock = FakeClock() if now is None else FakeClock(now)
        cap = campaign.privacy.epsilon
        self._device = Device(storage, max_total_epsilon=_MANY_CAMPAIGNS * cap, clock=self._clock)
        self._campaign = self._device.campaign(_NOWHERE, campaign.id, max_epsilon=cap)
        self._campaign.load(campaign.document)
        self._campaign.grant()

    def send(self, record: Mapping[str, object], label: object, now: float | None) -> bytes:
        """The line's upload for the record, now or again."""
        if now is not None:
            self._clock.now = now
        self._campaign.contribute(record, label)
        for _ in range(_ATTEMPTS):
            # Another process of the same storage may have left a time for the next attempt.
            self._clock.advance(self._device.policy.longest_wait)
            task = self._device.next_task()
            if isinstance(task, Send):
                break
        else:
            raise AssertionError(f"an undelivered report is due again, but {task} is to be done")
        body = self._device.request(task).body
        self._device.on_result(task, TransportError("connection-lost"))
        return body or b""


def main() -> None:
    for answer in answers(sys.stdin):
        sys.stdout.write(answer + "\n")
        # Whoever reads may kill this process after any line.
        sys.stdout.flush()


if __name__ == "__main__":
    main()
