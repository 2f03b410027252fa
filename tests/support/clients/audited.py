"""A planted client as the audit asks it: processes, fresh devices, and devices that are asked again.

And how thorough the tests of the audit are: a few clients and few trials in every run, all of them where
``LDP_BAYES_AUDIT_TRIALS`` says how many trials there are.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from planted.client import PlantedClient
from planted.randomness import HashCoins
from planted.witness import FRIDAY, Make
from studies import Studies

from ldp_aggregator.audit import Answer, Person

_TRIALS: Final = os.environ.get("LDP_BAYES_AUDIT_TRIALS")
AT_LENGTH: Final = _TRIALS is not None


def trials(otherwise: int) -> int:
    """How many trials an audit has: those of the environment, or a test's own few."""
    return otherwise if _TRIALS is None else int(_TRIALS)


def chosen(every: Collection[str], few: Collection[str]) -> list[str]:
    """Whom a test asks: everybody at length, otherwise a few."""
    unknown = set(few) - set(every)
    if unknown:
        raise ValueError(f"there is no client {', '.join(sorted(unknown))}")
    return list(every if AT_LENGTH else few)


class Planted:
    """Every call is a process, with the next seed, on a Friday. Devices of a storage are one planted process that is
    restarted at every further ask.
    """

    def __init__(self, make: Make) -> None:
        self._planted = make
        self._processes = 0
        self._studies = Studies()
        self._stored: dict[tuple[object, str], tuple[int, PlantedClient]] = {}

    def _make(self) -> PlantedClient:
        self._processes += 1
        entropy = np.random.default_rng(self._processes).bytes
        return self._planted(HashCoins(entropy(32)), entropy, lambda: FRIDAY)

    def __call__(self, document: str, people: Sequence[Person], storage: Path | None = None, /) -> list[Answer]:
        asked = [(person.record, person.label) for person in people]
        if storage is None:
            return [tuple(uploads) for uploads in self._make()(document, asked)]
        if self._studies.refuses(document, storage, None):
            return [()] * len(asked)
        key = storage, document
        if key not in self._stored:
            client = self._make()
            self._stored[key] = len(asked), client
            return [tuple(uploads) for uploads in client(document, asked)]
        devices, client = self._stored[key]
        turns = [client.restart() for _ in range(len(asked) // devices)]
        return [tuple(uploads) for turn in turns for uploads in turn]
