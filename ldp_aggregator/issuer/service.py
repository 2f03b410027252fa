"""The issuer over HTTP (RFC 9578, sections 4 and 6): on loopback, behind a proxy that names people."""

from __future__ import annotations

import argparse
import asyncio
import signal
from typing import Final

from aiohttp import web

from ldp_aggregator.issuer.issuing import TokenIssuer
from ldp_aggregator.store.contract import LOG, kind_of
from ldp_protocols import LdpError
from ldp_protocols.command_line import say
from ldp_protocols.tokens import REQUEST_BYTES, REQUEST_TYPE, RESPONSE_TYPE

REQUEST_PATH: Final = "/token-request"
DIRECTORY_PATH: Final = "/.well-known/private-token-issuer-directory"
STATUSES: Final = {"malformed-request": 422, "other-key": 422, "tokens-spent": 403, "people-unavailable": 503}
_MOST_BYTES: Final = 1 << 12


def make_app(issuer: TokenIssuer, key: str, person_header: str) -> web.Application:
    """``person_header`` is believed: nobody but the proxy may reach this."""
    directory = {
        "issuer-request-uri": REQUEST_PATH,
        "token-keys": [{"token-type": 2, "token-key": key + "=" * (-len(key) % 4)}],
    }

    async def sign(request: web.Request) -> web.Response:
        person = request.headers.get(person_header, "").strip()
        if not person:
            return _problem(401, "no-person", f"the proxy in front names nobody in {person_header}")
        if request.content_type != REQUEST_TYPE:
            return _problem(415, "wrong-media-type", f"send {REQUEST_TYPE}")
        body = await request.content.read(REQUEST_BYTES + 1)
        try:
            signed = await asyncio.to_thread(issuer.sign, person, body)
        except LdpError as error:
            status = STATUSES.get(error.code, 500)
            if status >= 500:
                LOG.error("nothing was signed", extra={"reason": kind_of(error)})
            return _problem(status, error.code, str(error))
        return web.Response(body=signed, content_type=RESPONSE_TYPE, headers={"Cache-Control": "no-store"})

    async def show(_request: web.Request) -> web.Response:
        return web.json_response(directory, content_type="application/private-token-issuer-directory")

    app = web.Application(client_max_size=_MOST_BYTES)
    app.add_routes([web.post(REQUEST_PATH, sign), web.get(DIRECTORY_PATH, show)])
    return app


def _problem(status: int, code: str, detail: str) -> web.Response:
    told = {"type": "about:blank", "status": status, "code": code, "detail": detail}
    return web.json_response(told, status=status, content_type="application/problem+json")


async def serve(issuer: TokenIssuer, key: str, options: argparse.Namespace) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises LdpError where the port is taken."""
    runner = web.AppRunner(make_app(issuer, key, options.person_header), access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, "127.0.0.1", options.port).start()
        except OSError as error:
            raise LdpError("port-taken", f"cannot listen on 127.0.0.1:{options.port}: {error.strerror}") from None
        address: tuple[str, int] = runner.addresses[0]
        say(f"signs at http://{address[0]}:{address[1]}{REQUEST_PATH}")
        ended = asyncio.Event()
        for one in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(one, ended.set)
        await ended.wait()
    finally:
        await runner.cleanup()
