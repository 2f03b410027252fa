"""A planted client as the audit asks it: processes, fresh devices, and devices that are asked again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planted.client import PlantedClient
from planted.witness import Make

from ldp_aggregator.audit import Answer, Person


class Planted:
    """Every call is a process. Devices of a storage are one planted process that is restarted at every further ask."""

    def __init__(self, make: Make) -> None:
        self._make = make
        self._stored: dict[tuple[object, str], tuple[int, PlantedClient]] = {}

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
        asked = [(person.record, person.label) for person in people]
        if storage is None:
            return [tuple(uploads) for uploads in self._make()(document, asked)]
        key = storage, document
        if key not in self._stored:
            client = self._make()
            self._stored[key] = len(asked), client
            return [tuple(uploads) for uploads in client(document, asked)]
        devices, client = self._stored[key]
        turns = [client.restart() for _ in range(len(asked) // devices)]
        return [tuple(uploads) for turn in turns for uploads in turn]
