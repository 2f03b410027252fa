"""A web backend that contributes for its users: everybody has a ledger, a secret and a consent of their own.

    python examples/aiohttp_backend.py URL CAMPAIGN_ID [PORT]

    curl -X POST 127.0.0.1:8070/users/42/consent
    curl -X POST 127.0.0.1:8070/users/42/answer -d '{"record": {"age": "young"}, "label": "no"}'
    curl         127.0.0.1:8070/users/42/privacy
    curl -X DELETE 127.0.0.1:8070/users/42/consent

The backend sees its users' records anyway; what it passes on is perturbed for each of them.
"""

import asyncio
import sys

from aiohttp import web

from ldp_client import Client, ClientError, ScopedStorage
from ldp_client.storage.sqlite import SqliteStorage
from protocols import RecordError

STORAGE = SqliteStorage("users.db")
URL, CAMPAIGN_ID = sys.argv[1:3]

routes = web.RouteTableDef()


def client_of(request: web.Request) -> Client:
    """Cheap: no network, no disk, no thread."""
    storage = ScopedStorage(STORAGE, f"user-{int(request.match_info['user'])}")
    return Client(URL, CAMPAIGN_ID, storage=storage, max_epsilon=2, max_total_epsilon=4)


@routes.post(r"/users/{user:\d+}/consent")
async def grant(request: web.Request) -> web.Response:
    await asyncio.to_thread(client_of(request).grant)
    return web.json_response({"consent": True})


@routes.delete(r"/users/{user:\d+}/consent")
async def withdraw(request: web.Request) -> web.Response:
    await asyncio.to_thread(client_of(request).withdraw)
    return web.json_response({"consent": False})


@routes.post(r"/users/{user:\d+}/answer")
async def answer(request: web.Request) -> web.Response:
    told = await request.json()
    client = client_of(request)
    try:
        receipt = await asyncio.to_thread(client.contribute, told["record"], told["label"])
    except (ClientError, RecordError) as error:
        return web.json_response({"error": error.code}, status=409)
    # The answer is on disk; it is delivered beside the request, and again with the next one if that fails.
    delivery = asyncio.get_running_loop().run_in_executor(None, client.run_once, 20)
    request.app[DELIVERIES].add(delivery)
    delivery.add_done_callback(request.app[DELIVERIES].discard)
    return web.json_response({"epsilon": receipt.epsilon})


@routes.get(r"/users/{user:\d+}/privacy")
async def privacy(request: web.Request) -> web.Response:
    return web.Response(text=str(await asyncio.to_thread(client_of(request).ledger)) + "\n")


DELIVERIES = web.AppKey("deliveries", set)


def make_app() -> web.Application:
    app = web.Application()
    app[DELIVERIES] = set()
    app.add_routes(routes)
    return app


if __name__ == "__main__":
    port = int(sys.argv[3]) if len(sys.argv) > 3 else 8070
    web.run_app(make_app(), host="127.0.0.1", port=port, access_log=None)
