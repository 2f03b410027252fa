"""The client as a program of lines, for whoever checks it from outside: ``python -m ldp_client.testing.lines``.

Every line of standard input is a JSON object with ``record`` and ``label``, and with the text of a campaign document in
``document``; a line without one means that of the line before. The answer is a line with the bytes of the upload in
hexadecimal, or ``!`` and the code of the reason why there is none. Lines without ``device`` are answered by a fresh
device each. Lines with the same ``device`` and document are one device that contributes, fails to deliver, and tries
again: however often it is asked, it must send the same bytes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from ldp_client.answering import perturb
from ldp_client.delivery.machine import Send
from ldp_client.device import Device
from ldp_client.errors import TransportError
from ldp_client.storage.contract import MEMORY
from ldp_client.testing.fakes import FakeClock
from protocols import Campaign, LdpError, encode_upload

_NOWHERE = "http://127.0.0.1:1"


def answers(lines: Iterable[str]) -> Iterator[str]:
    """The answer to each line."""
    campaign: Campaign | None = None
    devices: dict[tuple[str, str], _Device] = {}
    for line in lines:
        asked = json.loads(line)
        if "document" in asked:
            campaign = Campaign.parse(asked["document"].encode())
        if campaign is None:
            raise ValueError("the first line needs a document")
        yield _answer(campaign, devices, asked)


def _answer(campaign: Campaign, devices: dict[tuple[str, str], _Device], asked: dict[str, Any]) -> str:
    name = asked.get("device")
    try:
        if name is None:
            return encode_upload(perturb(campaign, asked["record"], asked["label"])).hex()
        key = campaign.id, str(name)
        if key not in devices:
            devices[key] = _Device(campaign)
        return devices[key].send(asked["record"], asked["label"]).hex()
    except LdpError as error:
        return f"!{error.code}"


class _Device:
    """One device whose uploads never arrive."""

    def __init__(self, campaign: Campaign) -> None:
        self._clock = FakeClock()
        cap = campaign.privacy.epsilon
        self._device = Device(MEMORY, max_total_epsilon=cap, clock=self._clock)
        self._campaign = self._device.campaign(_NOWHERE, campaign.id, max_epsilon=cap)
        self._campaign.load(campaign.document)
        self._campaign.grant()

    def send(self, record: dict[str, object], label: object) -> bytes:
        """What it sends for the record, now or again."""
        self._campaign.contribute(record, label)
        task = self._device.next_task()
        if not isinstance(task, Send):
            raise AssertionError("an undelivered report is due again after the longest wait")
        body = self._device.request(task).body
        self._device.on_result(task, TransportError("connection-lost"))
        self._clock.advance(self._device.policy.longest_wait)
        return body or b""


def main() -> None:
    for answer in answers(sys.stdin):
        sys.stdout.write(answer + "\n")


if __name__ == "__main__":
    main()
