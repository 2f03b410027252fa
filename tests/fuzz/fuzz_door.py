"""The server's door: bytes on a connection of the public listener, in one piece or in several.

Whatever comes, every answer is HTTP that the server's table of problems knows, or a page; nothing is logged as an
error, nobody waits, and the place and the memory that a client had are given back.
"""

import asyncio
import functools
import gc
import json
import logging
import re
import shutil
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from cells import cell_campaign, cell_report

from ldp_aggregator.server.problems import MEDIA_TYPE as PROBLEM
from ldp_aggregator.server.problems import PROBLEMS
from ldp_aggregator.server.process import running
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.listener import Listeners
from ldp_aggregator.service.settings import Limits, Settings
from ldp_aggregator.store import SqliteStore
from ldp_protocols import encode_upload
from ldp_protocols.wire import MEDIA_TYPE

WAIT_SECONDS: Final = 20.0
"""Nobody waits longer for an answer, and for his place to be free again; the server's own times are longer."""
MOST_PIECES: Final = 8
CAMPAIGN: Final = cell_campaign(64)
PATH: Final = f"/v1/campaigns/{CAMPAIGN.id}"
BELOW_500: Final = {100, 200, 202, 204, 304} | {kind.status for kind in PROBLEMS.values() if kind.status < 500}
LOGGERS: Final = (logging.getLogger(), logging.getLogger("ldp_aggregator"))
PAGE: Final = b"\r\nContent-Type: text/html; charset=utf-8\r\n"
"""The public listener's page says in a page what it does not take."""
_LENGTH: Final = re.compile(rb"\r\nContent-Length: (\d+)\r\n", re.IGNORECASE)


class _Errors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(f"{record.name}: {record.getMessage()} {getattr(record, 'reason', '')}")


class _Server:
    """A server in this process, on a loop that runs while somebody asks it."""

    def __init__(self) -> None:
        self.errors = _Errors()
        for logger in LOGGERS:
            logger.addHandler(self.errors)
        self._folder = Path(tempfile.mkdtemp(prefix="ldp-fuzz-"))
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda _, told: self.errors.told.append(f"loop: {told}"))
        self._stack = AsyncExitStack()
        self._loop.run_until_complete(self._start())
        ours = [one for one in gc.get_objects() if type(one) is Connections and one.loop is self._loop]
        (self.connections,) = (one for one in ours if one._is_public)

    async def _start(self) -> None:
        limits = Limits(body_bytes=1 << 16, header_bytes=1 << 10, header_seconds=120)
        settings = Settings(data=self._folder, listen="127.0.0.1:0", listen_admin="0", listen_operations="0")
        self.store = SqliteStore(self._folder / "store.sqlite3")
        self._stack.push_async_callback(self.store.close)
        await self.store.create_campaign(CAMPAIGN)
        listeners = Listeners.bind(settings)
        address = urlsplit(listeners.addresses(settings).public)
        self._address = (address.hostname, address.port)
        await self._stack.enter_async_context(running(settings, listeners, store=self.store, limits=limits))

    def stop(self) -> None:
        """End it, and delete what it stored; where nobody calls this it all ends with the process."""
        findings = self._loop.run_until_complete(self.store.check())
        self._loop.run_until_complete(self._stack.aclose())
        self._loop.close()
        for logger in LOGGERS:
            logger.removeHandler(self.errors)
        shutil.rmtree(self._folder)
        assert findings == []

    def answers(self, pieces: list[bytes]) -> bytes:
        return self._loop.run_until_complete(asyncio.wait_for(self._ask(pieces), WAIT_SECONDS))

    async def _ask(self, pieces: list[bytes]) -> bytes:
        reader, writer = await asyncio.open_connection(*self._address)
        heard = bytearray()
        try:
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            writer.write_eof()
            while some := await reader.read(1 << 16):
                heard += some
        except OSError:
            pass  # The server has heard enough; what it said may be lost with the connection.
        finally:
            writer.close()
        while self.connections._open or self.connections.memory.used:  # noqa: ASYNC110 - nobody tells when it is free
            await asyncio.sleep(0)
        return bytes(heard)


@functools.cache
def the_server() -> _Server:
    return _Server()


def ask_the_door(data: bytes) -> bool:
    """The first byte says in how many pieces the others come. Taken is what has an answer other than a refusal."""
    server = the_server()
    pieces, rest = 1 + (data[0] if data else 0) % MOST_PIECES, data[1:]
    size = max(1, -(-len(rest) // pieces))
    heard = server.answers([rest[start : start + size] for start in range(0, len(rest), size)])
    told, server.errors.told = server.errors.told, []
    assert told == [], told
    return any(status < 400 for status in statuses_of(heard))


def statuses_of(heard: bytes) -> list[int]:
    """The statuses of answers, each of which is HTTP and, where it refuses, a problem of the table."""
    statuses = []
    while heard:
        head, end, rest = heard.partition(b"\r\n\r\n")
        assert end, heard[:100]
        assert head.startswith(b"HTTP/"), heard[:100]
        status = int(head[9:12])
        assert status in BELOW_500, head
        length = _LENGTH.search(head + b"\r\n")
        # What answers a HEAD names a length and has no body.
        body = rest[: int(length[1])] if length is not None and not rest.startswith(b"HTTP/") else b""
        heard = rest[len(body) :]
        statuses.append(status)
        if status == 405 and PAGE in head:
            assert b"</html>" in body, body
        elif status >= 400 and body:
            assert f"content-type: {PROBLEM}".encode() in head.lower(), head
            problem = json.loads(body)
            assert PROBLEMS[problem["code"]].status == status == problem["status"], problem
    return statuses


def door_seeds() -> list[bytes]:
    body = encode_upload([cell_report(CAMPAIGN, 3)], CAMPAIGN)
    upload = _request("POST", "/reports", f"Content-Type: {MEDIA_TYPE}", body=body)
    plain = _request("POST", "/reports", f"Content-Type: {MEDIA_TYPE}", "Origin: https://x.example", body=body)
    chunks = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    chunked = _request("POST", "/reports", f"Content-Type: {MEDIA_TYPE}", "Transfer-Encoding: chunked") + chunks
    asked = _request("GET", "")
    known = _request("GET", "", f'If-None-Match: "{CAMPAIGN.id}"', "Connection: close")
    seeds = [upload, plain, chunked, asked, known, _request("HEAD", ""), _request("GET", "/model"), upload + asked]
    seeds += [asked + upload + upload, _request("OPTIONS", "/reports", "Origin: https://x.example"), upload[:-5]]
    seeds += [upload.replace(b"1.1", b"1.0"), upload.replace(b"POST", b"PUT"), _request("POST", "/shares", body=b"x")]
    return [bytes([pieces]) + seed for seed in seeds for pieces in (0, 5)]


def _request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"{method} {PATH}{path} HTTP/1.1", "Host: x", *headers]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body
