"""The operator's side of an experiment: a running aggregator, or one started for as long as the experiment lasts."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator import NaiveBayes
from protocols import Campaign

if TYPE_CHECKING:
    from typing import Self

_PROGRAM: Final = (sys.executable, "-m", "ldp_aggregator")
_READY: Final = re.compile(r"ready: public (\S+) admin (\S+)")
_TIMEOUT: Final = 60.0


class FleetError(RuntimeError):
    """An aggregator that does not start, cannot be reached or refuses, or devices that cannot answer or deliver; the
    message is one line, about the first that failed.
    """


@dataclass(frozen=True)
class Aggregator:
    """A running aggregator as its operator sees it: the public address, the admin address, and an admin token."""

    url: str
    admin_url: str
    token: str

    def publish(self, draft: Mapping[str, Any]) -> Campaign:
        """Publish a draft and read back what devices will read."""
        created = json.loads(self._request("POST", f"{self.admin_url}/admin/v1/campaigns", draft))
        return Campaign.parse(self._request("GET", f"{self.url}/v1/campaigns/{created['id']}"), created["id"])

    def train(self, campaign: Campaign) -> NaiveBayes:
        """Train on what was counted, publish the model however good it is, and read it back as a device does."""
        self._request("POST", f"{self.admin_url}/admin/v1/campaigns/{campaign.id}/train?anyway=true", {})
        return NaiveBayes.from_json(self._request("GET", f"{self.url}/v1/campaigns/{campaign.id}/model"))

    def estimates(self, campaign: Campaign) -> Mapping[str, Any]:
        """Frequencies, variances and intervals, as the collector reads them."""
        answer: Mapping[str, Any] = json.loads(self._request("GET", f"{self.url}/v1/campaigns/{campaign.id}/estimates"))
        return answer

    def _request(self, method: str, url: str, body: Mapping[str, Any] | None = None) -> bytes:
        request = urllib.request.Request(url, method=method)  # noqa: S310 - http and https, from the operator
        request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                content: bytes = answer.read()
        except urllib.error.HTTPError as error:
            raise FleetError(f"{url} answered {error.code}: {_problem(error.read())}") from None
        except (OSError, ValueError) as error:
            raise FleetError(f"{url} cannot be reached: {getattr(error, 'reason', error)}") from None
        return content


def make_admin_token(data: Path) -> str:
    """A fresh admin token for the store in the folder ``data``, as ``ldp-aggregator token create`` makes it."""
    command = [*_PROGRAM, "token", "create", "--scope", "admin", "--data", str(data)]
    done = subprocess.run(  # noqa: S603 - this interpreter, our own program
        command, capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode:
        raise FleetError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no token was made")
    return done.stdout.strip()


@contextmanager
def temporary_aggregator(origins: Sequence[str] = ()) -> Iterator[Aggregator]:
    """An aggregator of its own on the embedded store in a temporary folder; both are gone when the block ends. Pages of
    ``origins`` may answer its campaigns.
    """
    with tempfile.TemporaryDirectory(prefix="ldp-bayes-") as folder:
        data = Path(folder) / "data"
        with Daemon(data, origins) as daemon:
            yield Aggregator(daemon.url, daemon.admin_url, make_admin_token(data))


class Daemon:
    """``ldp-aggregator serve`` on free ports of this machine, in a process of its own, for as long as a block lasts."""

    def __init__(self, data: Path, origins: Sequence[str] = ()) -> None:
        self._data = data
        self._origins = origins
        self.url = ""
        self.admin_url = ""

    def __enter__(self) -> Self:
        listeners = ("--listen", "127.0.0.1:0", "--listen-admin", "0", "--listen-operations", "0")
        allowed = [word for origin in self._origins for word in ("--allow-origin", origin)]
        command = [*_PROGRAM, "serve", "--data", str(self._data), *listeners, *allowed]
        # Its log is for operators; here it is read only where the start fails.
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._process = subprocess.Popen(  # noqa: S603 - as above
            command, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        first = self._process.stdout.readline() if self._process.stdout else ""
        ready = _READY.search(first)
        if ready is None:
            self._process.wait(_TIMEOUT)
            self._log.seek(0)
            said = self._log.read().strip().splitlines()
            self._stop()
            raise FleetError(f"the aggregator did not start: {said[-1] if said else 'it said nothing'}")
        self.url, self.admin_url = ready.groups()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        """SIGTERM lets it commit and leave; one that does not leave is killed."""
        self._process.terminate()
        try:
            self._process.wait(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()


def _problem(body: bytes) -> str:
    """Return what a problem document says, or the start of whatever came instead."""
    try:
        document = json.loads(body)
        return str(document.get("detail") or document.get("title"))
    except (ValueError, AttributeError):
        return body[:200].decode(errors="replace").replace("\n", " ") or "no explanation"
