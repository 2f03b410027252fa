"""A client driven from asyncio: nothing blocks the event loop.

Storage is disk, so it runs in the loop's thread executor. The network runs there too, unless the app has aiohttp and
hands over its session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ldp_client.client import Client
from ldp_client.delivery.machine import Idle, Send, Wait
from ldp_client.errors import TransportError
from ldp_client.ledger.receipts import Receipt
from ldp_client.network.transport import Response
from ldp_client.status import Status

if TYPE_CHECKING:
    from typing import Self

_PIECE = 1 << 16


class AsyncDriver:
    """Drives ``client``; ``session`` is an ``aiohttp.ClientSession`` of the app's, or None.

    Use it as a context manager to deliver in a background task, or await :meth:`run_once` from a scheduler.
    """

    def __init__(self, client: Client, *, session: Any = None, first_delay: float | None = None) -> None:
        self.client = client
        self._session = session
        self._first_delay = client.policy.first_delay if first_delay is None else first_delay
        self._task: asyncio.Task[None] | None = None
        self._awake = asyncio.Event()

    async def contribute(self, record: Mapping[str, object], label: object) -> Receipt:
        """See :meth:`Client.contribute`."""
        receipt = await asyncio.to_thread(self.client.contribute, record, label)
        self._awake.set()
        return receipt

    async def predict(self, record: Mapping[str, object]) -> str:
        """See :meth:`Client.predict`; waits for the network where there is no model yet."""
        classifier = await asyncio.to_thread(self.client.classifier)
        return classifier.predict(record)

    async def status(self) -> Status:
        """See :meth:`Client.status`."""
        return await asyncio.to_thread(self.client.status)

    async def run_once(self, deadline: float, *, first_delay: float = 0.0) -> bool:
        """See :meth:`Client.run_once`."""
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline
        while True:
            task = await asyncio.to_thread(self.client.next_task, first_delay)
            remaining = until - loop.time()
            if isinstance(task, Idle):
                return True
            if remaining <= 0 or (isinstance(task, Wait) and task.seconds >= remaining):
                return False
            if isinstance(task, Wait):
                await asyncio.sleep(task.seconds)
            else:
                await self._deliver(task, min(remaining, self.client.policy.request_timeout))

    def start(self) -> None:
        """Deliver in a background task from now on."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="ldp-client")

    async def close(self) -> None:
        """Stop; a send under way is given up, and its report stays queued."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self) -> None:
        policy = self.client.policy
        while True:
            self._awake.clear()
            pause = policy.backoff_base
            # Whatever goes wrong here is not the app's trouble: the report is on disk and is tried again.
            with contextlib.suppress(Exception):
                task = await asyncio.to_thread(self.client.next_task, self._first_delay)
                if isinstance(task, Send):
                    await self._deliver(task, policy.request_timeout)
                    continue
                pause = policy.idle_check if isinstance(task, Idle) else min(task.seconds, policy.idle_check)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._awake.wait(), pause)

    async def _deliver(self, task: Send, timeout: float) -> None:
        if self._session is None:
            answer = await asyncio.to_thread(self.client.exchange, task, timeout)
        else:
            answer = await self._exchange(task, timeout)
        await asyncio.to_thread(self.client.on_result, task, answer)

    async def _exchange(self, task: Send, timeout: float) -> Response | TransportError:
        """The exchange over the app's aiohttp session; every failure comes back as a value."""
        request = self.client.request(task)
        try:
            return await asyncio.wait_for(self._request(request.url, request.headers, request.body), timeout)
        except TransportError as error:
            return error
        except asyncio.TimeoutError:
            return TransportError("timeout")
        except Exception:
            # aiohttp's own exceptions, which this package does not know by name.
            return TransportError("unreachable")

    async def _request(self, url: str, headers: Mapping[str, str], body: bytes | None) -> Response:
        sending = self._session.request("POST", url, data=body, headers=headers, allow_redirects=False)
        async with sending as answer:
            received = bytearray()
            async for piece in answer.content.iter_chunked(_PIECE):
                received += piece
                if len(received) > self.client.policy.largest_answer:
                    raise TransportError("answer-too-long")
            return Response(
                answer.status, {name.lower(): value for name, value in answer.headers.items()}, bytes(received)
            )
