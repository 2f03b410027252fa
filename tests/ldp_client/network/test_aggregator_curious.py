"""A server that wants to know its visitors again: over all of their lives, whatever it hands out to tell them apart."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import threading
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timezone

import pytest
from records import RECORD

from ldp_aggregator.service.signing import public_key, sign_directory
from ldp_client import Device, LdpError, MemoryStorage, TransportError
from ldp_client.network.transport import PROBLEM_TYPE, Request, Response
from ldp_client.storage import location
from ldp_client.testing import FakeClock
from ldp_protocols import Campaign, Report, decode_upload, encode_upload

INSTALLS, VISITS = 20, 30
MINUTE, DAY, LATE = 60.0, 86_400.0, 600.0
AGREES, ANSWERS, ANSWERS_AGAIN = 3, 5, 9
"""The visits at which something happens, in everybody's life alike."""

URL = "https://collect.example.org"
SEED = bytes(32)
KEY = public_key(SEED)
EXPIRES = datetime(2099, 1, 1, tzinfo=timezone.utc)
JSON = {"content-type": "application/json"}


@dataclass
class Heard:
    """A request, with what the server would like to know (``visitor``) beside what it can see."""

    visitor: int
    visit: int
    request: Request
    at: float
    ended: float = 0.0

    @property
    def what(self):
        return f"{self.request.method} {self.request.url}"


class Curious:
    """Knows nothing but requests, and marks whatever it answers with a name of whoever asks."""

    begins_body = True

    def __init__(self, campaigns, model):
        self.clock = FakeClock()
        self.visitor = self.visit = -1
        self.heard = []
        self._documents = {campaign.id: campaign for campaign in campaigns}
        self._directories = [sign_directory(SEED, n + 1, EXPIRES, dict.fromkeys(self._documents)) for n in range(10)]
        self._model = json.loads(model)
        self._uploads = defaultdict(int)

    def model_of(self, visitor):
        return json.dumps(self._model | {"training": {"visitor": f"visitor-{visitor}"}}).encode()

    def send(self, request, timeout, cancellation=None):
        if cancellation is not None:
            cancellation.begin_body()
        heard = Heard(self.visitor, self.visit, request, self.clock.now)
        self.heard.append(heard)
        answer = self._fetched(request.url) if request.body is None else self._uploaded(request.url, request.body)
        heard.ended = self.clock.now
        if answer is None:
            raise TransportError("connection-lost")
        name = f'"visitor-{self.visitor}"'
        marks = dict.fromkeys(("etag", "last-modified", "set-cookie", "content-location", "x-visitor"), name)
        return Response(answer.status, {**answer.headers, **marks}, answer.body)

    def _fetched(self, url):
        if self.visit == 0:
            return self._refusal(503, {"retry-after": str(1 + self.visitor)})
        if self.visit == 1:
            return Response(302, {"location": f"{URL}/visitor-{self.visitor}"})
        if url.endswith("/model"):
            return Response(200, JSON, self.model_of(self.visitor))
        if url.endswith("/state"):
            return Response(200, JSON, json.dumps({"state": "open", "visitor": f"visitor-{self.visitor}"}).encode())
        if "/directories/" in url:
            return Response(200, JSON, self._directories[self.visitor % 5 + (5 if self.visit > 20 else 0)])
        return Response(200, JSON, self._documents[url.rpartition("/")[2]].document)

    def _uploaded(self, url, body):
        self._uploads[self.visitor, url] += 1
        times = self._uploads[self.visitor, url]
        self.clock.advance(5.0 + self.visitor)  # An answer that is held back, as long as nobody else's.
        if times == 1:
            return self._refusal(503, {"retry-after": str(100 + self.visitor)})
        if times == 2:
            return None
        if self.visitor % 3 == 0:
            return self._refusal(410, {})
        (block,) = decode_upload(body, self._documents[url.split("/")[-2]])
        rejected = [[block.ids.hex(), f"visitor-{self.visitor}"]] if self.visitor % 3 == 1 else []
        return Response(200, JSON, json.dumps({"rejected": rejected}).encode())

    def _refusal(self, status, headers):
        body = json.dumps({"code": f"visitor-{self.visitor}"}).encode()
        return Response(status, {"content-type": PROBLEM_TYPE, **headers}, body)


def visit(server, path, campaigns, stays):
    """What an app does when it starts; then nothing but to stay for a while, as the background thread would."""
    device = Device(path, max_total_epsilon=99, transport=server, clock=server.clock)
    publishers = (None, None, KEY)
    parts = [
        device.campaign(URL, campaign.id, max_epsilon=9, publisher=publisher)
        for campaign, publisher in zip(campaigns, publishers, strict=True)
    ]
    for part in parts:
        for ask in (part.fetch, part.refusal, part.classifier):  # Of the pinned campaign no model is signed.
            with contextlib.suppress(LdpError):
                ask(timeout=30)  # Longer than what the server says to wait, which not all do otherwise.
            for renewal in [one for one in threading.enumerate() if isinstance(one, threading.Timer)]:
                renewal.join()  # Its moment is the threads', and tells nothing of an install.
    if server.visit == AGREES:
        for part in parts:
            part.grant()
    if server.visit == ANSWERS:
        for part in parts[:2]:
            part.contribute(RECORD, "yes")
    if server.visit == ANSWERS_AGAIN:
        parts[2].contribute(RECORD, "no")
    device.run_once(stays, first_delay=LATE)


@pytest.fixture
def campaigns(draft):
    return [Campaign.compile({**draft, "title": title}) for title in ("the first", "the second", "the pinned one")]


@pytest.fixture
def server(campaigns, model, tmp_path, monkeypatch):
    """What it has heard in 30 visits of 20 installs, one install after the other. Files are in memory, for speed."""
    files = {}
    monkeypatch.setattr(location, "_sqlite", lambda path: files.setdefault(str(path), MemoryStorage()))
    curious = Curious(campaigns, model)
    for visitor in range(INSTALLS):
        people = random.Random(visitor)
        for number in range(VISITS):
            curious.visitor, curious.visit = visitor, number
            curious.clock.now = 1.8e9 + number * DAY + people.random() * 10 * 3600
            visit(curious, tmp_path / str(visitor), campaigns, people.choice((MINUTE, 30 * MINUTE)))
    return curious


def grouped(heard, key):
    groups = defaultdict(list)
    for one in heard:
        groups[key(one)].append(one)
    return groups


def test_nothing_but_the_drawn_question_and_the_id_tells_one_install_from_another(server, campaigns):
    uploads = [one for one in server.heard if one.request.body is not None]
    fetches = [one for one in server.heard if one.request.body is None]
    assert len(fetches) > INSTALLS * VISITS
    assert len(uploads) > 6 * INSTALLS

    for what, same in grouped(server.heard, lambda one: one.what).items():
        assert len({tuple(one.request.headers.items()) for one in same}) == 1, what

    said = repr([(one.what, dict(one.request.headers), one.request.body) for one in server.heard])
    assert "visitor-" not in said
    for visitor in range(INSTALLS):
        assert hashlib.sha256(server.model_of(visitor)).hexdigest() not in said

    for number, same in grouped(fetches, lambda one: one.visit).items():
        lives = grouped(same, lambda one: one.visitor).values()
        assert len(lives) == INSTALLS
        assert len({tuple(one.what for one in life) for life in lives}) == 1, f"the order at visit {number}"
        if number > 1:  # At the first two a call tries again after a random pause.
            assert all(len({one.at for one in life}) == 1 for life in lives)

    owners, lengths = {}, {}
    documents = {f"POST {URL}/v1/campaigns/{campaign.id}/reports": campaign for campaign in campaigns}
    for one in uploads:
        body, campaign = one.request.body, documents[one.what]
        (block,) = decode_upload(body, campaign)
        assert len(block.ids) == 16
        assert encode_upload([Report(block.question, block.ids, block.payloads)], campaign) == body
        assert owners.setdefault(block.ids, (one.visitor, one.what, body)) == (one.visitor, one.what, body)
        assert lengths.setdefault((one.what, block.question), len(body)) == len(body)
    assert len(owners) == 3 * INSTALLS

    # Of two campaigns of an install no upload begins with, nor at the end of, another's: jitter has 64 bits, and times
    # a quarter of a microsecond, so that chance alone brings a pair that near in less than one run in a million.
    for life in grouped(uploads, lambda one: one.visitor).values():
        for one in life:
            others = [other for other in life if other.what != one.what]
            assert not {one.at} & {time for other in others for time in (other.at, other.ended)}
