"""Databases that do not answer: nothing is brought to them until they do, so that no report to another one waits."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Final

from ldp_aggregator.store.contract import StoreError
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.postgres.store import PostgresStore

LOG: Final = logging.getLogger("ldp_aggregator")

LOOK_SECONDS: Final = 0.5
"""A database that does not answer is asked again after a random time below twice this."""


class Absences:
    """Of the databases ``stores``, by their numbers."""

    def __init__(self, stores: Mapping[int, PostgresStore]) -> None:
        self._stores = stores
        self._looking: dict[int, asyncio.Task[None]] = {}

    def __contains__(self, number: int) -> bool:
        return number in self._looking

    def note(self, number: int, error: Exception) -> None:
        """It has failed: leave it out until it is seen to write."""
        if number in self._stores and number not in self._looking:
            LOG.error("a database of the store does not answer", extra={"database": number, "reason": kind_of(error)})
            self._looking[number] = asyncio.create_task(self._look(number))

    async def check(self) -> None:
        """See which of the others write; whoever is left out is asked elsewhere."""
        here = [number for number in self._stores if number not in self._looking]
        results = await asyncio.gather(*(self._stores[number].check() for number in here), return_exceptions=True)
        for number, result in zip(here, results, strict=True):
            if isinstance(result, StoreError):
                self.note(number, result)
            elif result is not None:
                raise result

    async def close(self) -> None:
        """Look no more."""
        tasks = list(self._looking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, number: int) -> None:
        while True:
            if await self._writes(number):
                break
            await asyncio.sleep(random.uniform(0, 2 * LOOK_SECONDS))  # noqa: S311 - only a delay
        del self._looking[number]
        LOG.info("a database of the store answers", extra={"database": number})

    async def _writes(self, number: int) -> bool:
        try:
            await self._stores[number].check()
        except StoreError:
            return False
        return True
