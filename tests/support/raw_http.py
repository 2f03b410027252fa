"""HTTP by hand, for clients that a library would not be."""

import asyncio
import json
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from cells import reports_of

from ldp_protocols import encode_upload
from ldp_protocols.wire import MEDIA_TYPE

SECONDS = 10
"""No test waits so long unless it fails."""


class Reply(NamedTuple):
    """An answer."""

    head: bytes
    body: bytes

    @property
    def status(self):
        return int(self.head[9:12])

    @property
    def problem(self):
        return problem_of(self.head + self.body)


class Line:
    """A connection on which bytes are written as they are."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def send(self, *data):
        self.writer.write(b"".join(data))

    async def reply(self):
        """The next answer."""
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), SECONDS)
        length = re.search(rb"(?i)content-length: (\d+)", head)
        return Reply(head, await asyncio.wait_for(self.reader.readexactly(int(length[1]) if length else 0), SECONDS))

    async def ask(self, *data):
        """The answer to one request."""
        self.send(*data)
        return await self.reply()

    async def rest(self):
        """What comes until the server ends the connection; nothing more where it cuts it off."""
        try:
            return await asyncio.wait_for(self.reader.read(), SECONDS)
        except ConnectionError:
            return b""

    @property
    def has_ended(self):
        return self.reader.at_eof() or self.reader.exception() is not None

    def stop_reading(self):
        self.reader._transport.pause_reading()

    def cut(self):
        self.writer.transport.abort()


async def dial(url, **more):
    address = urlsplit(url)
    return Line(*await asyncio.open_connection(address.hostname, address.port, **more))


async def exchange(server, *data):
    """Send bytes, read until the server closes; what came back."""
    line = await dial(server.public)
    line.send(*data)
    try:
        return await asyncio.wait_for(line.reader.read(), SECONDS)
    finally:
        line.writer.close()


async def becomes(ask, wanted=True):
    """Wait until it is so."""
    for _ in range(SECONDS * 100):
        if (seen := ask()) == wanted:
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{seen} and not {wanted}")


def request_head(campaign, length, **headers):
    lines = [f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1", "Host: x", f"Content-Type: {MEDIA_TYPE}"]
    lines += [f"Content-Length: {length}"] + [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def request_of(campaign, *members, **headers):
    """An upload of these reports, given themselves or by number, or of bytes."""
    body = members[0] if isinstance(members[0], bytes) else encode_upload(reports_of(campaign, members), campaign)
    return request_head(campaign, len(body), **headers) + body


def document_of(campaign):
    """A request for a document."""
    return f"GET /v1/campaigns/{campaign.id} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


ELSEWHERE = {"Origin": "https://other.example"}
"""aiohttp answers whoever says so."""
NOWHERE = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"


def problem_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    return int(head[9:12]), json.loads(body)["code"]
