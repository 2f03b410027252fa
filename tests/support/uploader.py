"""A client for tests: it sends every upload until it is acknowledged, to whichever server is up."""

import http.client
import json
import threading
import time
from urllib.parse import urlsplit

from ldp_protocols.wire import MEDIA_TYPE

RETRY_SECONDS = 0.02


def post(url, campaign, body, timeout=20, token=None, shown=None):
    """One upload on a connection of its own: status and answer. Raises OSError or HTTPException."""
    headers = {"Content-Type": MEDIA_TYPE, "Connection": "close"}
    headers |= {"Authorization": shown or f"Bearer {token}"} if shown or token else {}
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=timeout)
    try:
        connection.request("POST", f"/v1/campaigns/{campaign.id}/reports", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


class Uploaders:
    """Threads that send ``uploads`` until each is answered 200, or until :meth:`stop`; with the answer tokens of those
    that have one in ``shown``.
    """

    def __init__(self, url, campaign, uploads, threads=8, token=None, shown=None):
        self.acknowledged, self.refusals = set(), []
        self._url, self._campaign, self._token, self._shown = url, campaign, token, shown or {}
        self._waiting = list(uploads)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _next(self):
        with self._lock:
            return self._waiting.pop() if self._waiting else None

    def _send(self):
        while not self._stopping.is_set() and (body := self._next()) is not None:
            while not self._stopping.is_set():
                try:
                    status, answer = post(
                        self._url(), self._campaign, body, token=self._token, shown=self._shown.get(body)
                    )
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
    def sending(self):
        return any(thread.is_alive() for thread in self._threads)

    def stop(self):
        self._stopping.set()
        self.join()

    def join(self):
        for thread in self._threads:
            thread.join()


def in_groups(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]
