"""Delivery by an app's own network code, for one that may not use a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ldp_client.delivery.queue import listed
from ldp_client.policy import STORAGE_WAIT
from ldp_client.runtime import within

if TYPE_CHECKING:
    from ldp_client.delivery.schedule import Send, Task
    from ldp_client.device import Device
    from ldp_client.errors import TransportError
    from ldp_client.network.transport import Request, Response


class ManualDelivery:
    """The queue of ``device``, of all its campaigns and scopes, for an app that does its own network I/O: ask for the
    next task, send its request, settle it by the answer. A ``timeout`` is in seconds and is kept.

    Examples
    --------
    >>> from ldp_client import Device
    >>> ManualDelivery(Device(":memory:", max_total_epsilon=2.0)).next_task()
    Idle()
    """

    def __init__(self, device: Device) -> None:
        self._storage = device._install.storage
        self._sender = device._install.sender

    def next_task(self, first_delay: float = 0.0, *, timeout: float = STORAGE_WAIT) -> Task:
        """The next task: Send, Wait or Idle. Never raises."""
        with within(timeout):
            return self._sender.next_task(first_delay)

    def request(self, task: Send, *, timeout: float = STORAGE_WAIT) -> Request:
        """The HTTP request that carries out a task, to be sent now: it counts as on its way from here on.

        Raises TransportError where it must not be sent any more, LdpError where the policy no longer allows
        the URL that was agreed to, and StorageError.
        """
        with within(timeout):
            return self._sender.request(task)

    def on_result(self, task: Send, answer: Response | TransportError, *, timeout: float = STORAGE_WAIT) -> None:
        """Settle a task by its answer, or none. Never raises; what cannot be stored in time is sent again, the same."""
        with within(timeout):
            self._sender.on_result(task, answer)

    def scopes_waiting(self, *, timeout: float = STORAGE_WAIT) -> tuple[str, ...]:
        """The scopes with reports that wait, the earliest due first ("" is the device itself). Raises
        StorageError.
        """
        with within(timeout), self._storage.transaction(write=False) as transaction:
            return tuple(dict.fromkeys(entry.place.scope for entry in listed(transaction, None)))
