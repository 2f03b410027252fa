"""What makes a device's sender a relay's: it may send whatever it has, and batches fill its queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ldp_client.delivery.machine import Idle, Outcome, Place, Send, Task, Wait
from ldp_client.delivery.sender import Sender
from ldp_client.errors import ClientError
from ldp_client.network.aggregator import Aggregator
from ldp_client.storage.contract import Transaction


class RelayPermits:
    """A relay forwards whatever it was given, and keeps nothing of it."""

    def __init__(self, aggregator: Aggregator) -> None:
        self._aggregator = aggregator

    def asleep(self, transaction: Transaction) -> bool:
        return False

    def may_leave(self, transaction: Transaction, place: Place) -> bool:
        return True

    def aggregator(self, transaction: Transaction, place: Place) -> Aggregator:
        return self._aggregator

    def begin(self, task: Send) -> bool:
        return True

    def was_withdrawn(self, transaction: Transaction, place: Place) -> bool:
        return False

    def settle(self, transaction: Transaction, place: Place, outcome: Outcome) -> None:
        """There is no ledger of others' reports."""


class MixingSender(Sender):
    """A sender whose queue is filled by batches."""

    def __init__(self, form: Callable[[], float | None], *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._form = form

    def next_task(self, first_delay: float = 0.0) -> Task:
        """See :meth:`Sender.next_task`; never raises."""
        try:
            wait = self._form()
        except ClientError as error:
            return self._pause(error.code)
        task = super().next_task(first_delay)
        return Wait(wait) if isinstance(task, Idle) and wait is not None else task
