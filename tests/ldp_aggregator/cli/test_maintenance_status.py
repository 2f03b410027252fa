"""``ldp-aggregator status``: what its one screen says of a server that answers so."""

import asyncio
import email.message
import io
import time
import urllib.error

import pytest
from cells import count, publish

from ldp_aggregator.cli import maintenance
from ldp_aggregator.store import StoreError, open_store

DAY = 86400
BEFORE = """
ldp_reports_total{outcome="counted"} 100
ldp_reports_total{outcome="duplicate"} 7
ldp_requests_total{status="200"} 40
ldp_requests_total{status="503"} 1
"""


def exposition(store, **changed):
    """A server's metrics that say nothing is wrong, but for what is changed."""
    figures = {
        f'ldp_store_info{{store="{store}"}}': 1,
        'ldp_reports_total{outcome="counted"}': 3_100,
        'ldp_reports_total{outcome="duplicate"}': 8,
        'ldp_reports_total{outcome="conflicting-report"}': 2,
        'ldp_requests_total{status="200"}': 340,
        'ldp_requests_total{status="404"}': 60,
        'ldp_requests_total{status="500"}': 2,
        'ldp_requests_total{status="503"}': 3,
        "ldp_queue_age_seconds": 0.25,
        "ldp_queue_bytes": 4_000_000,
        'ldp_connections{listener="public"}': 5,
        'ldp_connections{listener="admin"}': 2,
        "ldp_free_bytes": 1e9,
        'ldp_store_bytes{part="runs"}': 2e9,
        'ldp_store_bytes{part="rest"}': 5e8,
        "ldp_certificate_expires_timestamp_seconds": time.time() + 15 * DAY,
        'ldp_directory_expires_timestamp_seconds{key="a"}': time.time() + 40 * DAY,
        'ldp_directory_expires_timestamp_seconds{key="b"}': time.time() + 15 * DAY,
        **changed,
    }
    return "".join(f"{name} {value}\n" for name, value in figures.items() if value is not None)


@pytest.fixture
def screen(run, data, monkeypatch):
    """Exit code and lines of ``status``, where the server's metrics change so between the two looks at them."""
    now = [1000.0]
    monkeypatch.setattr(maintenance.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(maintenance.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))

    async def made():
        store = await open_store(data)
        titles = {title: await publish(store, title=title) for title in ("few", "many", "closed")}
        await count(store, titles["few"], range(2))
        await count(store, titles["many"], range(7))
        await store.close_campaign(titles["closed"].id)
        identity = (await store.origin()).generation
        await store.close()
        return identity

    identity = asyncio.run(made())

    def look(*options, ready=None, store=identity, **changed):
        told = [BEFORE, exposition(store, **changed)]
        asked = []

        def answer(url, timeout):
            asked.append(url)
            if url.endswith("/readyz") and ready is not None:
                raise urllib.error.HTTPError(url, 503, "no", email.message.Message(), io.BytesIO(ready))
            return io.BytesIO(b"" if url.endswith("/readyz") else told.pop(0).encode())

        monkeypatch.setattr(maintenance, "urlopen", answer)
        code, out, err = run("status", *options)
        assert err == ""
        return code, out.splitlines(), asked

    look.store = identity
    return look


def test_a_server_that_is_well_says_its_rates_totals_and_campaigns(screen):
    code, lines, asked = screen()
    address = "http://127.0.0.1:8082"
    assert asked == [f"{address}/readyz", f"{address}/metrics", f"{address}/metrics"]
    assert (code, lines[0]) == (0, f"{address}: healthy")
    assert lines[1:6] == [
        "reports   3,100 counted, 8 sent twice (harmless), 2 contradictory (see docs/runbook.md#conflictingreports) "
        "since the start; 1,500.0 a second now",
        "requests  182.0 a second now; 5 answered with 5xx since the start",
        "queue     0.2 s, 4.0 MB; connections 7",
        "disk      2.5 GB of the store, 1.0 GB free",
        "backup    none is in the log",
    ]
    assert lines[6:8] == [f"store     {screen.store}", "campaigns 2 open of 3"]
    assert [line.split()[1:] for line in lines[8:]] == [
        ["open", "7", "many"],
        ["open", "2", "few"],
        ["closed", "0", "closed"],
    ]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"ldp_free_bytes": 999_000_000}, "999.0 MB are left on the store's disk: docs/runbook.md#diskfull"),
        (
            {"ldp_certificate_expires_timestamp_seconds": time.time() + 13.5 * DAY},
            "the certificate ends in 13 days: docs/runbook.md#certificateends",
        ),
        (
            {'ldp_directory_expires_timestamp_seconds{key="b"}': time.time() - 3 * DAY},
            "a publisher's directory has ended: docs/runbook.md#directoryends",
        ),
        (
            {'ldp_campaign_failing{campaign="abc"}': 1},
            "campaign (abc) cannot be counted: docs/runbook.md#campaignfailing",
        ),
        (
            {'ldp_gateway_key_missing{campaign="abc"}': 1},
            "campaign (abc) is sealed to a gateway's key that this server does not have: "
            "docs/runbook.md#gatewaykeymissing",
        ),
        (
            {'ldp_campaign_unsigned{campaign="abc"}': 1},
            "campaign (abc) is named by no directory of a publisher: docs/runbook.md#campaignunsigned",
        ),
        (
            {"ready": b'{"code": "disk-full", "title": "The disk is full"}'},
            "not ready: disk-full (The disk is full); docs/runbook.md#disk-full",
        ),
        ({"ready": b"<html>"}, "not ready: 503 (no aggregator); docs/runbook.md#503"),
    ],
)
def test_what_is_wrong_is_told_with_its_page_and_fails(screen, changed, says):
    code, lines, _ = screen(**changed)
    assert (code, lines[0], lines[1]) == (1, "http://127.0.0.1:8082: not healthy", f"  {says}")
    assert lines[2].startswith("reports "), "nothing else is wrong"


def test_of_another_stores_server_no_number_is_told(screen):
    code, lines, _ = screen(store="another", ldp_free_bytes=1.0)
    assert (code, lines[0].endswith(": not healthy")) == (1, True)
    assert "what answers serves the store another" in lines[1]
    assert [line.split()[0] for line in lines[2:4]] == ["store", "campaigns"]


def test_what_a_server_does_not_tell_is_not_wrong(screen):
    names = ("certificate_expires_timestamp_seconds", 'directory_expires_timestamp_seconds{key="a"}')
    names += ('directory_expires_timestamp_seconds{key="b"}', "free_bytes", f'store_info{{store="{screen.store}"}}')
    code, lines, _ = screen(**{f"ldp_{name}": None for name in names})
    assert (code, [line for line in lines if line.startswith("disk")]) == (0, [])


def test_the_latest_of_all_backups_is_told(screen):
    moments = {f'ldp_last_backup_timestamp_seconds{{store="{n}"}}': time.time() - n * 3600 for n in (50, 3, 70)}
    [line] = [line for line in screen(**moments)[1] if line.startswith("backup")]
    assert line.endswith(" UTC, 3 hours ago")


def test_a_store_that_cannot_be_read_is_told_and_the_rest_of_the_screen_stays(screen, monkeypatch):
    def fails(*given, **more):
        raise StoreError("the store is damaged")

    monkeypatch.setattr(maintenance, "with_store", fails)
    code, lines, _ = screen()
    assert (code, lines[1]) == (1, "  the store is damaged")
    assert lines[-1] == "campaigns 0 open of 0"


def test_the_log_is_of_one_campaign_its_last_entries_and_none_for_none_or_fewer(screen, run):
    assert run("token", "create", "--scope", "admin", "--name", "first")[0] == 0
    assert run("token", "create", "--scope", "admin", "--name", "second")[0] == 0
    told = {last: run("status", "--log", "--last", last)[1].splitlines()[1:] for last in ("1", "0", "-1")}
    assert [("second" in line, "first" in line) for line in told["1"]] == [(True, False)]
    assert (told["0"], told["-1"]) == ([], [])
    assert run("status", "--log", "--campaign", "A" * 43)[1].count("\n") == 1
