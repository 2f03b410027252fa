"""The dashboard adds nothing to the way of an upload: none of it runs while one is received, counted and answered."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ldp_aggregator.dashboard
from ldp_client import perturb
from protocols import encode_upload

FOLDER = str(Path(ldp_aggregator.dashboard.__file__).parent)
RECORD = {"age": "young", "income": 3, "hours": 4}


@contextmanager
def traced(ran: set[str]) -> Iterator[None]:
    """Notes which files' functions are called, here and in threads that begin meanwhile."""

    def note(frame, event, _argument):
        if event == "call":
            ran.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


# The second kind is answered by aiohttp; the first takes the short way once the campaign is known to be open.
@pytest.mark.parametrize("headers", [{}, {"Origin": "https://app.example.org"}], ids=["short way", "long way"])
async def test_no_line_of_the_dashboard_runs_while_an_upload_is_answered(dashboards, headers):
    ran: set[str] = set()
    # From the start on, so that the threads that the store writes in are seen, too.
    with traced(ran):
        async with dashboards() as dashboard:
            campaign = await dashboard.publish(people=3)
            assert (await dashboard.get(f"/campaigns/{campaign.id}"))[0] == 200
            assert of_dashboard(ran), "what is looked for below would be found"
            # Its samples are taken twice a minute, whatever devices send, and could fall among the uploads.
            (history,) = (task for task in asyncio.all_tasks() if task.get_name() == "history")
            history.cancel()
            await asyncio.wait([history])
            ran.clear()
            for _ in range(5):
                body = encode_upload(perturb(campaign, RECORD, "no"))
                assert await dashboard.upload(campaign, body, **headers) == 200
            assert await dashboard.upload(campaign, b"no upload", **headers) == 400
            seen = set(ran)
            assert any("/ldp_aggregator/server/" in name for name in seen)
            assert any("/ldp_aggregator/store/sqlite/" in name for name in seen)
            assert of_dashboard(seen) == []


def of_dashboard(files):
    return sorted(name for name in files if name.startswith(FOLDER))
