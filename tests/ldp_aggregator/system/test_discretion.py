"""Discretion: a server writes nothing down about its clients. And secrets that are exchanged while it runs."""

import asyncio
import http.client
import json
import signal
import socket
import ssl
import time
import urllib.request
from urllib.parse import urlsplit

import pytest
from cells import cell_report
from daemon import Daemon
from drafts import draft, text

from ldp_aggregator.service.signing import make_gateway_key
from ldp_aggregator.store import open_store
from ldp_protocols import Campaign, encode_upload
from ldp_protocols.wire import MEDIA_TYPE

CLIENT = "127.0.0.77"
"""All of 127.0.0.0/8 is this machine, so a client can have an address that would be seen."""


def send(daemon, data):
    address = urlsplit(daemon.public)
    with socket.create_connection((address.hostname, address.port), timeout=10, source_address=(CLIENT, 0)) as client:
        client.sendall(data)
        answer = b""
        while chunk := client.recv(65536):
            answer += chunk
        return answer


def test_no_address_token_or_report_is_logged_or_stored(kept_in_file):
    kept = kept_in_file
    campaign = kept.publish(64)
    report = cell_report(campaign, 3)
    body = encode_upload([report], campaign)
    token = "ldp_this-is-not-a-token-that-anybody-has"
    head = (
        f"POST /v1/campaigns/{campaign.id}/reports?{token} HTTP/1.1\r\nHost: x\r\nContent-Type: {MEDIA_TYPE}\r\n"
        f"Authorization: Bearer {token}\r\nX-Forwarded-For: 192.0.2.55\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    with Daemon(kept.folder, LDP_AGGREGATOR_LOG_LEVEL="debug") as daemon:
        try:
            assert send(daemon, head.encode() + body).startswith(b"HTTP/1.1 200")
        except OSError:
            pytest.skip("this system has no other loopback addresses")
        assert send(daemon, b"\x00garbage " + token.encode() + b"\r\n\r\n").startswith(b"HTTP/1.1 400")
        estimates = head.replace("/reports", "/estimates").replace("POST", "GET")
        assert send(daemon, estimates.encode() + body).startswith(b"HTTP/1.1 401")
        assert daemon.stop() == 0
    lines = (kept.folder / "daemon.log").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines][-2:] == ["stopping", "stopped"]
    for path in kept.folder.iterdir():
        written = path.read_bytes()
        for hidden in (CLIENT, "192.0.2.55", token):
            assert hidden.encode() not in written, path
        if path.name == "daemon.log":
            assert report.id.hex() not in written.decode()


def served_certificate(daemon):
    address = urlsplit(daemon.public)
    return ssl.get_server_certificate((address.hostname, address.port))


def test_tls_is_spoken_and_a_new_certificate_is_read_on_sighup(kept_in_file, certificate, tmp_path):
    campaign = kept_in_file.publish(64)
    path, key = certificate(2), tmp_path / "key.pem"
    first = path.read_text()
    with Daemon(tmp_path, LDP_AGGREGATOR_TLS_CERTIFICATE=str(path), LDP_AGGREGATOR_TLS_KEY=str(key)) as daemon:
        assert daemon.public.startswith("https://")
        assert daemon.admin.startswith("http://127.0.0.1:")
        assert served_certificate(daemon) == first
        context = ssl.create_default_context(cadata=first)
        context.check_hostname = False
        address = urlsplit(daemon.public)
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=context, timeout=10)
        connection.request("GET", f"/v1/campaigns/{campaign.id}")
        assert connection.getresponse().read() == campaign.document
        connection.close()

        key.write_text("no key")
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert served_certificate(daemon) == first, "a pair that does not load leaves the old one in use"

        certificate(2)
        daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while served_certificate(daemon) == first and time.monotonic() < deadline:
            time.sleep(0.05)
        assert served_certificate(daemon) == path.read_text()
    told = [json.loads(line) for line in (tmp_path / "daemon.log").read_text().splitlines()]
    assert [line["event"] for line in told if line.get("kind") == "certificate"] == [
        "secret not read again",
        "secret read again",
    ]


def test_a_gateways_key_that_was_lost_is_named_and_is_read_again_on_sighup(tmp_path):
    path, lost = tmp_path / "gateway.key", tmp_path / "lost.key"
    make_gateway_key(path)
    campaign = Campaign.compile(draft(text("age", "young", "old"), gateway=make_gateway_key(lost).to_json()))

    async def publish():
        store = await open_store(tmp_path)
        await store.create_campaign(campaign)
        await store.close()

    asyncio.run(publish())

    def missing(daemon):
        with urllib.request.urlopen(f"{daemon.operations}/readyz", timeout=10) as answer:
            ready = json.load(answer)
        assert ready["status"] == "ready"
        assert ready.get("gateway_key_missing", [campaign.id]) == [campaign.id]
        return "gateway_key_missing" in ready

    def until(daemon, wanted):
        daemon.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while missing(daemon) != wanted and time.monotonic() < deadline:
            time.sleep(0.05)
        assert missing(daemon) == wanted

    with Daemon(tmp_path, LDP_AGGREGATOR_GATEWAY_KEY=str(path)) as daemon:
        until(daemon, wanted=True)
        first = path.read_bytes()
        path.write_bytes(first + lost.read_bytes())
        until(daemon, wanted=False)
        path.write_bytes(b"nonsense")
        daemon.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert not missing(daemon), "a file that cannot be read leaves the old keys in use"
        path.write_bytes(first)
        until(daemon, wanted=True)
    told = [json.loads(line) for line in (tmp_path / "daemon.log").read_text().splitlines()]
    assert [line["event"] for line in told if line.get("kind") == "gateway keys"] == [
        "secret read again",
        "secret read again",
        "secret not read again",
        "secret read again",
    ]
    named = [line["campaign"] for line in told if line["event"] == "a gateway's key is missing"]
    assert named == [campaign.id, campaign.id], "at the start and after the last reading"
