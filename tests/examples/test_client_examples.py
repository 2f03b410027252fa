"""The examples that embed the client run as they are written."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
import tomllib

from ldp_client.testing import FakeServer
from protocols import Campaign

pytestmark = pytest.mark.usefixtures("forked_programs")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def campaign(server: FakeServer) -> Campaign:
    return server.publish(tomllib.loads((EXAMPLES / "campaign.toml").read_text()))


def run(folder: Path, example: str, *arguments: str) -> str:
    command = ["python", str(EXAMPLES / example), *arguments]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def model_of(campaign: Campaign) -> str:
    classes = list(campaign.label.classes)
    feature = campaign.features[0].to_json()
    del feature["weight"], feature["missing"]
    share = 1 / len(feature["values"])
    likelihood = [[share] * len(classes) for _ in feature["values"]]
    document = {"version": 1, "kind": "naive-bayes", "label": campaign.label.name, "classes": classes}
    document |= {"prior": [1 / len(classes)] * len(classes), "features": [{**feature, "likelihood": likelihood}]}
    return json.dumps(document)


def test_the_command_line_app_asks_contributes_once_and_shows_its_ledger(
    server: FakeServer, campaign: Campaign, tmp_path: Path
) -> None:
    first = run(tmp_path, "command_line_app.py", server.url, campaign.id, "--yes")
    assert first.startswith(campaign.title)
    assert "contributed to 1 campaign" in first
    assert "there is no model yet" in first
    server.publish_model(campaign.id, model_of(campaign))
    second = run(tmp_path, "command_line_app.py", server.url, campaign.id)
    assert "the model's guess about you" in second
    assert server.counted(campaign.id) == 1


def test_the_asyncio_service_delivers(server: FakeServer, campaign: Campaign, tmp_path: Path) -> None:
    assert run(tmp_path, "asyncio_service.py", server.url, campaign.id) == "delivered: True, sent: 1\n"
    assert server.counted(campaign.id) == 1


def test_the_sensor_goes_on_measuring_and_contributes_once(
    server: FakeServer, campaign: Campaign, tmp_path: Path
) -> None:
    told = run(tmp_path, "sensor_loop.py", server.url, campaign.id, "2")
    assert told == "sent 1, all delivered: True, guess: no model yet\n" * 2
    assert server.counted(campaign.id) == 1


@pytest.fixture
def backend(server: FakeServer, campaign: Campaign, tmp_path: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = ["python", str(EXAMPLES / "aiohttp_backend.py"), server.url, campaign.id, str(port)]
    unbuffered = os.environ | {"PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=unbuffered)
    assert process.stdout is not None
    assert "Running on" in process.stdout.readline()
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.communicate(timeout=20)


async def test_the_backend_contributes_once_for_every_user_who_agreed(
    server: FakeServer, campaign: Campaign, backend: str
) -> None:
    told = {"record": {"age": "young"}, "label": campaign.label.classes[0]}
    async with aiohttp.ClientSession(backend) as session:
        async with session.post("/users/1/answer", json=told) as answer:
            assert (answer.status, await answer.json()) == (409, {"error": "consent-missing"})
        for user in (1, 2, 2):
            await (await session.post(f"/users/{user}/consent")).read()
            async with session.post(f"/users/{user}/answer", json=told) as answer:
                assert answer.status == 200
        for _ in range(200):
            if server.counted(campaign.id) == 2:
                break
            await asyncio.sleep(0.02)
        async with session.get("/users/1/privacy") as answer:
            assert "contributed to 1 campaign" in await answer.text()
        async with session.get("/users/1/copy") as answer:
            assert [one["campaign_id"] for one in (await answer.json())["sent"]] == [campaign.id]
        async with session.delete("/users/1/consent") as answer:
            assert await answer.json() == {"consent": False, "refunded": 0.0}
    assert server.counted(campaign.id) == 2
