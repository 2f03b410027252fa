"""A client for tests: it sends every upload until it is acknowledged, to whichever server is up."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlsplit

from protocols import Campaign
from protocols.wire import MEDIA_TYPE

RETRY_SECONDS = 0.02


def post(url: str, campaign: Campaign, body: bytes, timeout: float = 20, token: str | None = None) -> tuple[int, dict]:
    """One upload on a connection of its own: status and answer. Raises OSError or HTTPException."""
    headers = {"Content-Type": MEDIA_TYPE, "Connection": "close"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        connection.request("POST", f"/v1/campaigns/{campaign.id}/reports", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


class Uploaders:
    """Threads that send ``uploads`` until each is answered 200, or until :meth:`stop`."""

    def __init__(
        self,
        url: Callable[[], str],
        campaign: Campaign,
        uploads: Iterable[bytes],
        threads: int = 8,
        token: str | None = None,
    ) -> None:
        self.acknowledged: set[bytes] = set()
        self.refusals: list[tuple[int, dict]] = []
        self._url, self._campaign, self._token = url, campaign, token
        self._waiting = list(uploads)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _next(self) -> bytes | None:
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def _send(self) -> None:
        while not self._stopping.is_set() and (body := self._next()) is not None:
            while not self._stopping.is_set():
                try:
                    status, answer = post(self._url(), self._campaign, body, token=self._token)
                except (OSError, http.client.HTTPException, ValueError):
                    time.sleep(RETRY_SECONDS)
                    continue
                if status == 200 and not answer["rejected"]:
                    self.acknowledged.add(body)
                    break
                if status not in (429, 503):
                    self.refusals.append((status, answer))
                    break
                time.sleep(RETRY_SECONDS)

    @property
    def sending(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def in_groups(items: Sequence, size: int) -> list[Sequence]:
    return [items[start : start + size] for start in range(0, len(items), size)]
