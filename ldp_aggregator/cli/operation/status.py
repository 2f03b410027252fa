"""``ldp-aggregator status``: one screen of a running server: whether it is well, campaigns, rates, disk, backups."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from ldp_aggregator.cli.common import Groups, UsageError, add_command, add_store_options, say, settings_of, with_store
from ldp_aggregator.store.clock import utc_now
from ldp_aggregator.store.contract import CampaignState, StoreError

SECONDS: Final = 5.0
"""To wait for an answer."""
BETWEEN: Final = 2.0
"""Seconds between the two looks that make a rate."""
DAY: Final = 86400
LEAST_FREE: Final = 1e9
MOST_CAMPAIGNS: Final = 15
"""On one screen; those with most reports."""


@dataclass
class Seen:
    """Metrics by name and labels, at a moment."""

    moment: float = 0.0
    values: dict[tuple[str, str], float] = field(default_factory=dict)

    def sum(self, name: str, labels: str = "") -> float:
        return sum(value for (found, told), value in self.values.items() if found == name and labels in told)

    def get(self, name: str) -> float | None:
        return next((value for (found, _), value in self.values.items() if found == name), None)

    def labels(self, name: str) -> list[str]:
        return [told for found, told in self.values if found == name]


def add_commands(groups: Groups) -> None:
    text = "one screen of the server that runs on this store; exit code 1 where something is wrong"
    parser = add_command(groups, "status", text, _status, "--data /var/lib/ldp-aggregator")
    add_store_options(parser)
    parser.add_argument("--operations", metavar="URL", help="its operations listener, where it is elsewhere")


def _status(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    host = "127.0.0.1" if settings.operations_host in ("0.0.0.0", "") else settings.operations_host  # noqa: S104
    url = options.operations or f"http://{f'[{host}]' if ':' in host else host}:{settings.operations_port}"
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"--operations: {url!r} is no http:// address")
    wrong: list[str] = []
    first, last = Seen(), Seen()
    try:
        wrong += _not_ready(url)
        first = _look(url)
        time.sleep(BETWEEN)
        last = _look(url)
    except (OSError, ValueError) as error:
        wrong.append(f"nothing answers at {url}: {getattr(error, 'reason', error)}")
    try:
        campaigns = with_store(options, lambda store: store.campaigns(), read_only=True)
    except StoreError as error:
        campaigns = []
        wrong.append(str(error))
    wrong += _warnings(last)
    say(f"{url}: {'not healthy' if wrong else 'healthy'}")
    for reason in wrong:
        say(f"  {reason}")
    for line in (*_lines(first, last), *_campaign_lines(campaigns)):
        say(line)
    return 1 if wrong else 0


def _not_ready(url: str) -> list[str]:
    try:
        with urlopen(url + "/readyz", timeout=SECONDS):  # noqa: S310 - http(s) alone, see above
            return []
    except HTTPError as refused:
        with refused:
            try:
                problem = json.loads(refused.read())
            except ValueError:
                problem = {}
        code = problem.get("code", str(refused.code))
        return [f"not ready: {code} ({problem.get('title', 'no aggregator')}); docs/runbook.md#{code}"]
    except URLError as error:
        raise OSError(str(error.reason)) from None


def _look(url: str) -> Seen:
    with urlopen(url + "/metrics", timeout=SECONDS) as answer:  # noqa: S310 - http(s) alone, see above
        text = answer.read().decode()
    seen = Seen(time.monotonic())
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            bare, _, labels = name.partition("{")
            seen.values[bare, labels.removesuffix("}")] = float(value)
    return seen


def _warnings(seen: Seen) -> Iterator[str]:
    now = time.time()
    for labels in seen.labels("ldp_campaign_failing"):
        yield f"campaign {labels.partition('=')[2].strip(chr(34))} cannot be counted: docs/runbook.md#campaignfailing"
    free = seen.get("ldp_free_bytes")
    if free is not None and free < LEAST_FREE:
        yield f"{_size(free)} are left on the store's disk: docs/runbook.md#diskfull"
    for name, what, anchor in (
        ("ldp_certificate_expires_timestamp_seconds", "the certificate ends", "certificateends"),
        ("ldp_directory_expires_timestamp_seconds", "a publisher's directory ends", "directoryends"),
    ):
        end = seen.get(name)
        if end is not None and end - now < 14 * DAY:
            yield f"{what} in {max(0, int((end - now) / DAY))} days: docs/runbook.md#{anchor}"


def _lines(first: Seen, last: Seen) -> Iterator[str]:
    if not last.values:
        return
    seconds = max(last.moment - first.moment, 0.001)

    def rate(name: str, labels: str = "") -> str:
        return f"{(last.sum(name, labels) - first.sum(name, labels)) / seconds:,.1f}"

    counted, all_reports = last.sum("ldp_reports_total", 'outcome="counted"'), last.sum("ldp_reports_total")
    counted_now = rate("ldp_reports_total", 'outcome="counted"')
    say_all = f"{counted:,.0f} counted since the start, {all_reports - counted:,.0f} not; {counted_now} a second now"
    yield f"reports   {say_all}"
    failed = last.sum("ldp_requests_total", 'status="5')
    yield f"requests  {rate('ldp_requests_total')} a second now; {failed:,.0f} answered with 5xx since the start"
    waiting = f"{last.sum('ldp_queue_age_seconds'):.1f} s, {_size(last.sum('ldp_queue_bytes'))}"
    yield f"queue     {waiting}; connections {last.sum('ldp_connections'):,.0f}"
    free = last.get("ldp_free_bytes")
    if free is not None:
        yield f"disk      {_size(last.sum('ldp_store_bytes'))} of the store, {_size(free)} free"
    backup = last.get("ldp_last_backup_timestamp_seconds")
    yield f"backup    {'none is in the log' if backup is None else _ago(backup)}"


def _campaign_lines(campaigns: list[CampaignState]) -> Iterator[str]:
    now = utc_now()
    open_ones = sum(state.status(now) == "open" for state in campaigns)
    yield f"campaigns {open_ones} open of {len(campaigns)}"
    for state in sorted(campaigns, key=lambda one: -one.reports)[:MOST_CAMPAIGNS]:
        yield f"  {state.id}  {state.status(now):8s} {state.reports:>13,d}  {state.title[:40]}"


def _ago(moment: float) -> str:
    hours = (time.time() - moment) / 3600
    said = f"{hours:.0f} hours ago" if hours < 48 else f"{hours / 24:.0f} days ago"
    return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d %H:%M} UTC, {said}"


def _size(number: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if number < 1000 or unit == "TB":
            return f"{number:,.0f} {unit}" if unit == "bytes" else f"{number:,.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")
