"""A headless Firefox by WebDriver BiDi, which it speaks by itself: no driver of its own is needed."""

import asyncio
import itertools
import re
import shutil
import tempfile
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

WAIT_SECONDS = 60


class Tab:
    """A tab, in which scripts are evaluated."""

    def __init__(self, line: aiohttp.ClientWebSocketResponse) -> None:
        self._line = line
        self._numbers = itertools.count()
        self._context = ""

    async def ask(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        await self._line.send_json({"id": number, "method": method, "params": params})
        while (answer := await self._line.receive_json(timeout=WAIT_SECONDS)).get("id") != number:
            pass
        assert answer["type"] == "success", answer
        return answer["result"]

    async def open(self, address: str) -> None:
        """Load a page, all of it."""
        tree = await self.ask("browsingContext.getTree")
        self._context = tree["contexts"][0]["context"]
        await self.ask("browsingContext.navigate", context=self._context, url=address, wait="complete")

    async def evaluate(self, script: str) -> Any:
        """The value of an expression, or what its promise is kept with: a text, a number, true or false."""
        target = {"context": self._context}
        told = await self.ask("script.evaluate", expression=script, target=target, awaitPromise=True)
        assert told["type"] == "success", told
        return told["result"].get("value")


@asynccontextmanager
async def open_firefox():
    """A tab as long as the block lasts; None where there is no Firefox."""
    path = shutil.which("firefox-esr") or shutil.which("firefox")
    if path is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as profile:
        flags = ("--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0")
        browser = await asyncio.create_subprocess_exec(
            path, *flags, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                while not (found := re.search(rb"WebDriver BiDi listening on (\S+)", await browser.stderr.readline())):
                    pass
            address = f"{found[1].decode()}/session"
            async with aiohttp.ClientSession() as session, session.ws_connect(address, max_msg_size=0) as line:
                tab = Tab(line)
                await tab.ask("session.new", capabilities={})
                yield tab
        finally:
            browser.terminate()
            await browser.wait()
