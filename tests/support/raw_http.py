"""HTTP by hand, for clients that a library would not be."""

import asyncio
import json
from urllib.parse import urlsplit

from protocols.wire import MEDIA_TYPE


async def connect(server):
    """Reader and writer of a connection to the public listener."""
    address = urlsplit(server.public)
    return await asyncio.open_connection(address.hostname, address.port)


async def exchange(server, data, *, seconds=10):
    """Send bytes, read until the server closes; what came back."""
    reader, writer = await connect(server)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), seconds)
    finally:
        writer.close()


def request_head(campaign, length, **headers):
    lines = [f"POST /v1/campaigns/{campaign.id}/reports HTTP/1.1", "Host: x", f"Content-Type: {MEDIA_TYPE}"]
    lines += [f"Content-Length: {length}"] + [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def problem_of(answer):
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head
    return int(head[9:12]), json.loads(body)["code"]
