"""``ldp-aggregator status``: one screen of a running server: whether it is well, campaigns, rates, disk, backups."""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from ldp_aggregator.cli.common import ABOUT, UsageError, add_command, settings_of, with_store
from ldp_aggregator.store.contract import CampaignState, StoreError, utc_now
from protocols.shell import Groups, say

SECONDS: Final = 5.0
"""To wait for an answer."""
BETWEEN: Final = 2.0
"""Seconds between the two looks that make a rate."""
DAY: Final = 86400
LEAST_FREE: Final = 1e9
MOST_CAMPAIGNS: Final = 15
"""On one screen; those with most reports."""


class Scrape:
    """Metrics at a moment; none before anything has answered."""

    def __init__(self, exposition: str = "") -> None:
        self.moment = time.monotonic()
        families = text_string_to_metric_families(exposition)
        self.samples = [sample for family in families for sample in family.samples]

    def values(self, name: str, **labels: str) -> list[float]:
        """Return the values of a metric, where its labels begin like this."""
        return [
            sample.value
            for sample in self.samples
            if sample.name == name and all(sample.labels[label].startswith(text) for label, text in labels.items())
        ]


def add_commands(groups: Groups) -> None:
    parser = add_command(groups, "status", ABOUT["status"], _status, "--data /var/lib/ldp-aggregator")
    parser.add_argument("--operations", metavar="URL", help="its operations listener, where it is elsewhere")


def _status(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    url = options.operations or "http://" + settings.listen_operations.replace("0.0.0.0:", "127.0.0.1:")
    if urlsplit(url).scheme not in ("http", "https"):
        raise UsageError(f"--operations: {url!r} is no http:// address")
    wrong: list[str] = []
    first, last = Scrape(), Scrape()
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


def _look(url: str) -> Scrape:
    with urlopen(url + "/metrics", timeout=SECONDS) as answer:  # noqa: S310 - http(s) alone, see above
        return Scrape(answer.read().decode())


def _warnings(seen: Scrape) -> Iterator[str]:
    now = time.time()
    for sample in seen.samples:
        if sample.name == "ldp_campaign_failing":
            yield f"campaign {sample.labels['campaign']} cannot be counted: docs/runbook.md#campaignfailing"
    for free in seen.values("ldp_free_bytes"):
        if free < LEAST_FREE:
            yield f"{_size(free)} are left on the store's disk: docs/runbook.md#diskfull"
    for name, what in (("certificate", "the certificate ends"), ("directory", "a publisher's directory ends")):
        end = min(seen.values(f"ldp_{name}_expires_timestamp_seconds"), default=math.inf)
        if end - now < 14 * DAY:
            yield f"{what} in {max(0, int((end - now) / DAY))} days: docs/runbook.md#{name}ends"


def _lines(first: Scrape, last: Scrape) -> Iterator[str]:
    if not last.samples:
        return
    seconds = max(last.moment - first.moment, 0.001)

    def total(name: str, **labels: str) -> float:
        return sum(last.values(name, **labels))

    def rate(name: str, **labels: str) -> str:
        return f"{(total(name, **labels) - sum(first.values(name, **labels))) / seconds:,.1f}"

    counted = total("ldp_reports_total", outcome="counted")
    others = total("ldp_reports_total") - counted
    counted_now = rate("ldp_reports_total", outcome="counted")
    yield f"reports   {counted:,.0f} counted since the start, {others:,.0f} not; {counted_now} a second now"
    failed = total("ldp_requests_total", status="5")
    yield f"requests  {rate('ldp_requests_total')} a second now; {failed:,.0f} answered with 5xx since the start"
    waiting = f"{total('ldp_queue_age_seconds'):.1f} s, {_size(total('ldp_queue_bytes'))}"
    yield f"queue     {waiting}; connections {total('ldp_connections'):,.0f}"
    for free in last.values("ldp_free_bytes"):
        yield f"disk      {_size(total('ldp_store_bytes'))} of the store, {_size(free)} free"
    backups = last.values("ldp_last_backup_timestamp_seconds")
    yield f"backup    {_ago(max(backups)) if backups else 'none is in the log'}"


def _campaign_lines(campaigns: list[CampaignState]) -> Iterator[str]:
    now = utc_now()
    open_ones = sum(state.status(now) == "open" for state in campaigns)
    yield f"campaigns {open_ones} open of {len(campaigns)}"
    for state in sorted(campaigns, key=lambda one: -one.reports)[:MOST_CAMPAIGNS]:
        yield f"  {state.id}  {state.status(now):8s} {state.reports:>13,d}  {state.title[:40]}"


def _ago(moment: float) -> str:
    hours = (time.time() - moment) / 3600
    return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d %H:%M} UTC, {hours:.0f} hours ago"


def _size(number: float) -> str:
    return f"{number / 1e6:,.1f} MB" if number < 1e9 else f"{number / 1e9:,.1f} GB"
