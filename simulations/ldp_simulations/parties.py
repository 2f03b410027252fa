"""A campaign with a crowd, run by its parties: an issuer, a relay, and an aggregator that is the gateway, each of them
a process of its own; and the answers of many people, brought through all of them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import MGF1, PSS
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA384

from ldp_aggregator import NaiveBayes
from ldp_aggregator.issuer.issuing import make_issuer_key
from ldp_client import TransportError
from ldp_client.network.sealed import Sealed
from ldp_protocols import Campaign, Report, decode_upload, encode_upload
from ldp_protocols.oblivious import BESIDE_BODY, REQUEST_TYPE, BinaryRequest, encode_request
from ldp_protocols.tokens import RELAY_HEADER, SALT_BYTES, credentials, relay_input, token_input
from ldp_protocols.tokens import REQUEST_TYPE as TOKEN_REQUEST
from ldp_protocols.wire import MEDIA_TYPE
from ldp_simulations.experiment import Aggregator, answer_to, make_token, serving, stop

DELTA: Final = 1e-9
HONEST: Final = 0.5
MOST_LOCAL: Final = 4
_PROGRAM: Final = (sys.executable, "-m")
_NAME: Final = "issuer.example"
_PERSON: Final = "X-Remote-User"
_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_AT_ONCE: Final = 16


@dataclass(frozen=True)
class Parties(Aggregator):
    """An aggregator that is reached by a relay alone. ``crowd`` is what a campaign promises beside its local epsilon;
    ``keys`` are the issuer's, for answers and for relays: those whose answers are drawn at once get their tokens by
    them, since a blind signature is as any other once it is finished.
    """

    issuer_url: str = ""
    gateway: Mapping[str, Any] = field(default_factory=dict)
    keys: Sequence[RSAPrivateKey] = ()
    issuer: Mapping[str, Any] = field(default_factory=dict)
    crowd: Mapping[str, Any] = field(default_factory=dict)
    running: ExitStack = field(default_factory=ExitStack)
    relays: list[str] = field(default_factory=list)
    first_upload: list[bytes] = field(default_factory=list)

    @property
    def relay_url(self) -> str | None:
        """The address for sealed uploads."""
        return f"{self.relays[-1]}/ohttp"

    def publish(self, draft: Mapping[str, Any]) -> Campaign:
        """Publish a draft as one with a crowd, and start its relay."""
        privacy = {"crowd": self.crowd, "most_local": MOST_LOCAL}
        campaign = super().publish({**draft, "privacy": privacy, "gateway": self.gateway, "issuer": self.issuer})
        storage = self.running.enter_context(tempfile.TemporaryDirectory(prefix="ldp-bayes-relay-"))
        token = Path(storage) / "token"
        token.write_text(self.relay_token or "", encoding="ascii")
        named = (self.url, campaign.id, "--storage", f"{storage}/relay.db", "--token-file", str(token))
        line = self.running.enter_context(_started("ldp_aggregator.relay", *named, "--port", "0", "--gather", "0"))
        self.relays.append("http://" + _found(r"relaying on (\S+)", line))
        return campaign

    def sign(self, person: str, request: bytes) -> bytes:
        """Ask the issuer for a token, as the proxy before it does for somebody who has logged in."""
        headers = {"Content-Type": TOKEN_REQUEST, _PERSON: person}
        return _post(f"{self.issuer_url}/token-request", request, headers)

    def relay(self, campaign: Campaign, upload: bytes) -> int:
        """Send each of these answers by the relay, as a device of its own would; returns how many it refused."""
        reports = [
            Report(block.question, block.ids[16 * place : 16 * place + 16], block.payloads[w * place : w * (place + 1)])
            for block in decode_upload(upload, campaign)
            for w in (campaign.questions[block.question].mechanism.width,)
            for place in range(block.count)
        ]
        self.first_upload.append(encode_upload(reports[:1], campaign))
        with ThreadPoolExecutor(_AT_ONCE) as senders:
            list(senders.map(lambda report: self._send(campaign, report), reports))
        return 0

    def train(self, campaign: Campaign) -> NaiveBayes:
        """Once the whole batch has come, which the relay forwards when it is complete."""
        self._wait(campaign)
        return super().train(campaign)

    def estimated(self, campaign: Campaign) -> dict[str, Any] | None:
        """Once the whole batch has come, too."""
        self._wait(campaign)
        return super().estimated(campaign)

    def _wait(self, campaign: Campaign) -> None:
        wanted, until = campaign.privacy.crowd, time.monotonic() + _SECONDS
        while True:
            states = json.loads(self._request("GET", f"{self.admin_url}/admin/v1/campaigns"))["campaigns"]
            (state,) = (one for one in states if one["id"] == campaign.id)
            if wanted is None or state["reports"] >= wanted.devices:
                return
            if time.monotonic() > until:
                raise TransportError(
                    "timeout", f"{state['reports']} of {wanted.devices} answers came through the relay"
                )
            time.sleep(_LOOK_SECONDS)

    def _send(self, campaign: Campaign, report: Report) -> None:
        gateway = campaign.gateway
        if gateway is None:
            raise AssertionError("a campaign with a crowd has a gateway")
        answer, pass_ = (
            credentials(message + key.sign(message, PSS(MGF1(SHA384()), SALT_BYTES), SHA384()))
            for key, message in zip(
                self.keys, (token_input(campaign, [report.id]), relay_input(campaign, 2 * report.id)), strict=True
            )
        )
        headers = (("content-type", MEDIA_TYPE), ("authorization", answer))
        place = urlsplit(f"{self.url}/v1/campaigns/{campaign.id}/reports")
        body = encode_upload([report], campaign)
        inside = BinaryRequest("POST", "https", place.netloc, place.path, headers, body)
        sealed = Sealed(gateway, encode_request(inside, beside=BESIDE_BODY)).body
        _post(self.relay_url or "", sealed, {"Content-Type": REQUEST_TYPE, RELAY_HEADER: pass_})


@contextmanager
def running_parties(devices: int, epsilon: float, origins: Sequence[str] = ()) -> Iterator[Parties]:
    """The parties of a crowd of so many devices, which promises ``epsilon``, in temporary folders, for the block."""
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="ldp-bayes-")))
        key, data = folder / "gateway.key", folder / "data"
        make = [*_PROGRAM, "ldp_aggregator", "key", "create", str(key), "--gateway"]
        line = subprocess.run(make, capture_output=True, text=True, check=True).stdout  # noqa: S603 - as above
        keys = [make_issuer_key(folder / "issuer.pem")]
        keys.append(make_issuer_key(folder / "relay.pem", *keys))
        named = (str(folder / "issuer.pem"), "--relay-key", str(folder / "relay.pem"), "--port", "0")
        issuing = _started("ldp_aggregator.issuer", *named, "--people", str(folder / "people.sqlite"), lines=2)
        said, place = running.enter_context(issuing).splitlines()
        url, admin_url = running.enter_context(serving(data, origins, gateway_key=key))
        yield Parties(
            url.replace("127.0.0.1", "localhost"),  # Another host than the relay's, as devices ask for.
            admin_url,
            make_token(data, "admin"),
            make_token(data, "relay"),
            data,
            issuer_url="http://" + _found(r"(127\.0\.0\.1:\d+)", place),
            gateway=tomllib.loads(line)["gateway"],
            keys=keys,
            issuer={**tomllib.loads(said)["issuer"], "name": _NAME},
            crowd={"epsilon": epsilon, "delta": DELTA, "devices": devices, "honest": HONEST},
            running=running,
        )


@contextmanager
def _started(module: str, *arguments: str, lines: int = 1) -> Iterator[str]:
    """A program in a process of its own, for the block: its first lines, or why it has none."""
    command = [*_PROGRAM, module, *arguments]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,  # noqa: S603 - as above
    ):
        try:
            said = "".join(process.stdout.readline() for _ in range(lines)) if process.stdout else ""
            log.seek(0)
            yield said or log.read()
        finally:
            stop(process)


def _found(pattern: str, line: str) -> str:
    match = re.search(pattern, line)
    if match is None:
        raise TransportError("not-started", f"a party did not start: it said {line.strip() or 'nothing'}")
    return match[1]


def _post(url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    return answer_to(urllib.request.Request(url, body, dict(headers)))  # noqa: S310 - http, on this machine
