"""A web backend that contributes for its users: everybody has a ledger, a secret and a consent of their own.

    python examples/aiohttp_backend.py URL CAMPAIGN_ID [PORT]

    curl -X POST 127.0.0.1:8070/users/42/consent
    curl -X POST 127.0.0.1:8070/users/42/answer -d '{"record": {"age": "young"}, "label": "no"}'
    curl         127.0.0.1:8070/users/42/privacy
    curl         127.0.0.1:8070/users/42/copy
    curl -X DELETE 127.0.0.1:8070/users/42/consent

The backend sees its users' records anyway; what it passes on is perturbed for each of them.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

from aiohttp import web

from ldp_client import Device, DeviceCampaign, LdpError

URL, CAMPAIGN_ID = sys.argv[1:3]
FIRST_DELAY = 1.0  # seconds; minutes, where the time of a report should say little about the time of the event
DEVICE = Device("users.db", max_total_epsilon=4)  # for each user; one thread delivers for all of them

routes = web.RouteTableDef()


def user_of(request: web.Request) -> Device:
    """Cheap: no network, no disk, no thread."""
    return DEVICE.scope(f"user-{int(request.match_info['user'])}")


def part_of(request: web.Request) -> DeviceCampaign:
    return user_of(request).campaign(URL, CAMPAIGN_ID, max_epsilon=2)


@routes.post(r"/users/{user:\d+}/consent")
async def grant(request: web.Request) -> web.Response:
    await asyncio.to_thread(part_of(request).grant)
    return web.json_response({"consent": True})


@routes.delete(r"/users/{user:\d+}/consent")
async def withdraw(request: web.Request) -> web.Response:
    done = await asyncio.to_thread(part_of(request).withdraw)
    return web.json_response({"consent": False, "refunded": done.refunded})


@routes.post(r"/users/{user:\d+}/answer")
async def answer(request: web.Request) -> web.Response:
    told = await request.json()
    try:
        receipt = await asyncio.to_thread(part_of(request).contribute, told["record"], told["label"])
    except LdpError as error:
        return web.json_response({"error": error.code}, status=409)
    # The answer is on disk; the thread delivers it, also for users who never return.
    return web.json_response({"epsilon": receipt.epsilon})


@routes.get(r"/users/{user:\d+}/privacy")
async def privacy(request: web.Request) -> web.Response:
    return web.Response(text=str(await asyncio.to_thread(user_of(request).ledger)) + "\n")


@routes.get(r"/users/{user:\d+}/copy")
async def copy(request: web.Request) -> web.Response:
    return web.json_response(await asyncio.to_thread(user_of(request).export))


async def deliver(_: web.Application) -> AsyncIterator[None]:
    DEVICE.start(first_delay=FIRST_DELAY)
    yield
    await asyncio.to_thread(DEVICE.close)


def make_app() -> web.Application:
    app = web.Application()
    app.cleanup_ctx.append(deliver)
    app.add_routes(routes)
    return app


if __name__ == "__main__":
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 8070
    web.run_app(make_app(), host="127.0.0.1", port=port, access_log=None)
