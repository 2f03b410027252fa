"""A device driven from asyncio: nothing blocks the event loop.

Storage is disk and the network is the device's own transport, so both run in daemon threads: neither the loop's
executor, which ``asyncio.run`` waits for, nor an app's HTTP session, which would send the app's headers and cookies
along with the report, takes part.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from ldp_client.device import Device

if TYPE_CHECKING:
    from typing import Self

Result = TypeVar("Result")


class AsyncDriver:
    """Drives ``device``. As a context manager it delivers in the background; or await :meth:`run_once` now and then.

    ``first_delay`` is in seconds; None takes the policy's.
    """

    def __init__(self, device: Device, *, first_delay: float | None = None) -> None:
        self.device = device
        self._first_delay = first_delay
        self._closed = False

    async def call(self, function: Callable[..., Result], *arguments: object, **options: object) -> Result:
        """Await any method: ``await driver.call(campaign.grant)``. Raises what it raises; a cancelled call goes on."""
        return await _in_daemon_thread(lambda: function(*arguments, **options))

    async def run_once(self, timeout: float, *, first_delay: float = 0.0) -> bool:  # noqa: ASYNC109 - as Device.run_once
        """See :meth:`Device.run_once`; given up when the task is cancelled or the driver closed."""
        given_up = threading.Event()

        def stop() -> bool:
            return self._closed or given_up.is_set()

        try:
            return await self.call(self.device.run_once, timeout, first_delay=first_delay, stop=stop)
        except asyncio.CancelledError:
            given_up.set()
            self.device._install.sender.flight.cancel()
            raise

    def start(self) -> None:
        """Deliver in the background from now on."""
        self._closed = False
        self.device.start(first_delay=self._first_delay)

    async def close(self) -> None:
        """Stop at once; what is being sent stays queued until the server is known to have it."""
        self._closed = True
        await self.call(self.device.close, 0.0)
        self.device._install.sender.flight.cancel()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


async def _in_daemon_thread(function: Callable[[], Result]) -> Result:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # None is a result where a function gives it

    def work() -> None:
        result, error = None, None
        try:
            result = function()
        except Exception as raised:
            error = raised
        # The loop may have ended meanwhile; then nobody asks any more.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name="ldp-client-call", daemon=True).start()
    return await future
