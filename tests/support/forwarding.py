"""Somebody else's relay of Oblivious HTTP."""

import http.server
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from ldp_protocols.oblivious import REQUEST_TYPE

SECONDS = 60


@contextmanager
def forwarding(url: str, times: int = 1) -> Iterator[tuple[str, list[tuple[dict[str, str], bytes]]]]:
    """Somebody else's relay (RFC 9458, section 6.2): forwards each request at once, and so often; and what it saw."""
    seen: list[tuple[dict[str, str], bytes]] = []

    class Relay(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((dict(self.headers), body))
            for _ in range(times):
                asked = urllib.request.Request(url, body, {"Content-Type": REQUEST_TYPE})
                try:
                    answer = urllib.request.urlopen(asked, timeout=SECONDS)
                except urllib.error.HTTPError as error:
                    answer = error
                with answer:
                    given = answer.read()
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Content-Length", str(len(given)))
            self.end_headers()
            self.wfile.write(given)

        def log_message(self, *_: object) -> None:
            """Silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/relay", seen
        finally:
            server.shutdown()
            thread.join()
