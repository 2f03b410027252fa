"""Clients of a series, as the audit asks them: the sound one, and those that make something of time.

Each is a function of a device, the window that is open by its clock and the person it has then: an upload, or None.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from audited_campaigns import SERIES
from exact_coins import SeededCoins

from ldp_aggregator.audit import Answer, Person
from ldp_aggregator.audit.asking.black_box import command_client
from ldp_aggregator.audit.asking.people import Lives
from ldp_aggregator.audit.verdict import BESIDE, LOSS, RETRY, TWICE
from ldp_client.answering import item_of
from ldp_client.draw import draw_questions, draw_window
from ldp_protocols import Campaign, Report, decode_upload, encode_upload
from ldp_protocols.values import held
from ldp_protocols.wire import report_id


class Device:
    """A device and what it remembers."""

    def __init__(self, campaign: Campaign, seed: int) -> None:
        self.campaign, self.coins = campaign, SeededCoins((1 << 100) + seed)
        self.secret = np.random.default_rng([seed, 7]).bytes(32)
        self.window = draw_window(campaign, self.secret)
        self.memory: dict[Any, Any] = {}

    def upload(self, window: int, person: Person, mark: bytes = b"") -> bytes:
        """A perturbed answer from this record, told to be of a window."""
        (question,) = draw_questions(self.campaign, self.secret)
        item = item_of(self.campaign, question, person.record, self.class_of(person), self.coins)
        identifier = report_id(self.secret[: 32 - len(mark)] + mark, self.campaign, question)
        number = window * len(self.campaign.questions) + question.index
        return encode_upload([Report(number, identifier, question.perturb(item, self.coins))], self.campaign)

    def class_of(self, person: Person) -> int:
        return self.campaign.label.classes.index(person.label)


class SeriesClient:
    """A client as the audit asks it; devices of a storage outlive the process."""

    def __init__(self, live: Callable[[Device, int, Person], bytes | None]) -> None:
        self._live, self._made, self._stored = live, 0, {}

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
        campaign, devices, answers = Campaign.parse(document.encode()), {}, []
        for person in people:
            place = self._stored if storage is not None else devices
            key = storage, campaign.id, person.device
            if person.device is None or key not in place:
                self._made += 1
                place[key] = Device(campaign, self._made)
            if campaign.study is not None and storage is not None:
                first = self._stored.setdefault((storage, campaign.study, person.device), campaign.id)
                if first != campaign.id:
                    answers.append(())
                    continue
            moment = datetime.fromisoformat(person.now.replace("Z", "+00:00"))
            sent = self._live(place[key], campaign.windows.open_at(moment), person)
            answers.append(() if sent is None else (sent,))
        return answers


def sound(device: Device, window: int, person: Person) -> bytes | None:
    """Answers in its window; asked again, it sends the same bytes."""
    if "sent" not in device.memory and window == device.window:
        device.memory["sent"] = device.upload(window, person)
    return device.memory.get("sent")


def window_chosen_by_the_record(device: Device, window: int, person: Person) -> bytes | None:
    """Of one class it answers in the window after its own, where there is one: people look different then."""
    if "own" not in device.memory:
        device.memory["own"] = min(device.window + device.class_of(person), device.campaign.windows.count - 1)
    if "sent" not in device.memory and window == device.memory["own"]:
        device.memory["sent"] = device.upload(window, person)
    return device.memory.get("sent")


def two_answers(device: Device, window: int, person: Person) -> bytes | None:
    """Answers in its window, and in the last one once more with the record of then, under another id."""
    sent = sound(device, window, person)
    if window != device.campaign.windows.count - 1 or device.window == window:
        return sent
    return device.memory.setdefault("second", device.upload(window, person, b"again"))


def answer_kept_for_a_better_window(device: Device, window: int, person: Person) -> bytes | None:
    """Of one class it keeps silent and waits for a window in which the person is of another one."""
    if "sent" not in device.memory and window >= device.window and not device.class_of(person):
        device.memory["sent"] = device.upload(window, person)
    return device.memory.get("sent")


def memo_that_tells_of_change(device: Device, window: int, person: Person) -> bytes | None:
    """Answers in every window what it once answered for this record: it changes when the record does."""
    memory = device.memory.setdefault("memo", {})
    key = repr(person.record), person.label
    if key not in memory:
        memory[key] = device.upload(0, person, bytes([len(memory)]))
    return memory[key]


def again_where_the_class_is_the_second(device: Device, window: int, person: Person) -> bytes | None:
    """Sends the old upload again in every later window, if the person is of the second class then."""
    return sound(device, window, person) if window == device.window or device.class_of(person) else None


def again_until_the_record_changes(device: Device, window: int, person: Person) -> bytes | None:
    """Sends it again for as long as the person is who was asked first."""
    first = device.memory.setdefault("first", (repr(person.record), person.label))
    sent = sound(device, window, person)
    return sent if window == device.window or first == (repr(person.record), person.label) else None


def again_once_by_the_value(device: Device, window: int, person: Person) -> bytes | None:
    """Of one value it is sent again in the next window, of the others in the one after."""
    sent, later = sound(device, window, person), window - device.window
    return sent if later in (0, 1 if held(person.record, "f0") == "2" else 2) else None


def again_by_lot(device: Device, window: int, person: Person) -> bytes | None:
    """Keeps the promise: in later windows a coin decides, which knows nobody."""
    return sound(device, window, person) if window == device.window or device.coins.below(2) else None


def answers_once_in_a_life(command: Sequence[str]) -> None:
    """Devices of a program send one upload each in their lives, in the window that its report names."""
    lives = Lives.of(SERIES)
    people = lives.people([Person({"f0": str(number)}, "c0") for number in range(3)])
    campaign, windows = Campaign.parse(lives.document.encode()), set()
    for answer in lives.client(command_client(command))(lives.document, people * 3):
        (window,) = (window for window, upload in enumerate(answer[:-1]) if upload)
        (block,) = decode_upload(answer[window], campaign)
        assert block.question // len(campaign.questions) == window
        windows.add(window)
    assert len(windows) > 1


LEAKING = {
    window_chosen_by_the_record: {BESIDE, LOSS},
    two_answers: {TWICE, LOSS},
    answer_kept_for_a_better_window: {BESIDE, LOSS},
    memo_that_tells_of_change: {TWICE, LOSS, RETRY},
    again_where_the_class_is_the_second: {BESIDE},
    again_until_the_record_changes: {BESIDE},
    again_once_by_the_value: {BESIDE},
}
"""With codes of which one at least is found."""
