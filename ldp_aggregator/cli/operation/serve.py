"""``ldp-aggregator serve``, the HTTP server, in the foreground; and ``quickstart``: from "what is to be learned?" to a
server that waits for devices, in one command.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.cli.common import (
    CommandError,
    UsageError,
    add_command,
    add_store_options,
    read_draft,
    settings_of,
    with_recorded,
    write_file,
)
from ldp_aggregator.dashboard.drawing.column_lists import ColumnsError, draft_from, read_column
from ldp_aggregator.dashboard.drawing.precision import expected_widths
from ldp_aggregator.server.process import EndedError, run_server
from ldp_aggregator.server.sockets.listener import Addresses
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import to_text, utc_now
from protocols import Campaign
from protocols.shell import Groups, at_least, between, say

Columns = dict[str, dict[str, Any]]

DRAFT: Final = Path("draft.json")
DEVICES: Final = 10_000
MOST_VALUES: Final = 50
"""A text column of a table with more different values is left out: names, identifiers, free text."""
FEWEST_NUMBERS: Final = 12
"""A column of numbers with fewer different values is taken as a list of values."""


def add_commands(groups: Groups) -> None:
    quickstart = add_command(
        groups,
        "quickstart",
        _quickstart,
        "",
        "--table public.csv --label missed_payment",
        "--draft draft.json --devices 50000",
    )
    quickstart.add_argument("--draft", type=Path, metavar="FILE", help="a draft in TOML or JSON; nothing is asked then")
    quickstart.add_argument(
        "--table", type=Path, metavar="FILE", help="a CSV file of PUBLIC data to take the columns from"
    )
    quickstart.add_argument("--label", metavar="COLUMN", help="the column of the table to learn")
    quickstart.add_argument("--epsilon", type=between(0, 64), default=1.0, metavar="E", help="default: %(default)g")
    quickstart.add_argument("--devices", type=at_least(1), default=DEVICES, metavar="N", help="default: %(default)s")
    serve = add_command(
        groups, "serve", _serve, "--data /var/lib/ldp-aggregator --listen 8080", "--config aggregator.toml", note=""
    )
    add_store_options(serve)
    for name in _LISTENERS:
        field = Settings.model_fields[name]
        text = f"{field.description} (default: {field.default})"
        serve.add_argument(f"--{name.replace('_', '-')}", metavar="[HOST:]PORT", help=text)
    serve.add_argument(
        "--allow-origin",
        dest="allowed_origins",
        action="append",
        metavar="ORIGIN",
        help="a page's origin (https://app.example.org) whose scripts may upload and read models; may be repeated",
    )


def _quickstart(options: argparse.Namespace) -> None:
    if (options.table is None) != (options.label is None):
        raise UsageError("--table and --label go together: the file, and its column to learn")
    if options.draft is not None and options.table is not None:
        raise UsageError("--draft says what is asked; leave --table and --label out")
    campaign = Campaign.compile(read_draft(options.draft) if options.draft else _drafted(options))
    (width,) = expected_widths(campaign, [options.devices])
    told = f"to ± {100 * width:.1f} points" if width < 1 else "hardly at all: more devices, or a larger epsilon"
    say(f"{options.devices:,} devices would tell the average share of the least precise question {told}.")
    text, token = make_token(f"quickstart {to_text(utc_now())}", "admin", utc_now())

    async def work(store: Store) -> None:
        await store.create_campaign(campaign)
        await store.add_token(token)

    def ready(addresses: Addresses) -> None:
        public = addresses.public.replace("//0.0.0.0:", "//127.0.0.1:")
        say(f"Devices send to {public}; people read {public}/c/{campaign.id}")
        say(f"The dashboard, {addresses.admin}/, opens with this token, shown this once: {text}")
        say("Ctrl-C stops the server; 'ldp-aggregator serve' goes on with what was counted.")

    settings = settings_of(options)
    with_recorded(options, work, "quickstart", detail=campaign.title, create=True)
    serve_until_stopped(settings, ready)


def _drafted(options: argparse.Namespace) -> str:
    """Return the draft of what is asked for or read, after writing it to a file to go on with."""
    if DRAFT.exists():
        raise CommandError(f"{DRAFT} is there already: 'quickstart --draft {DRAFT}' goes on with it, or move it away")
    label, columns, title = _asked() if options.table is None else (options.label, columns_of(options.table), "")
    try:
        draft = draft_from(columns, label, title, options.epsilon)
    except ColumnsError as error:
        raise CommandError(f"that is no campaign yet: {error}") from None
    write_file(DRAFT, draft + "\n")
    say(f"{DRAFT} is the draft. Values and bounds in it are public: they must come from what everybody knows.")
    return draft


def _asked() -> tuple[str, Columns, str]:
    """Ask for the label, the columns and the title."""
    say("What is to be learned, and what can it be? Such as   missed_payment: yes | no")
    label, classes = _column() or ("", {})
    say("What else does a record hold? A column a line, then an empty line. Such as")
    say("  age: young < medium < old      (in this order)")
    say("  income: 0 to 200000 in 8       (a number, in 8 steps)")
    columns = {label: classes}
    while column := _column(may_end=len(columns) > 1):
        columns |= [column]
    return label, columns, _line(f"A title, as people read it [What tells {label}?]: ")


def _column(*, may_end: bool = False) -> tuple[str, dict[str, Any]] | None:
    """Ask until a line is a column; None for an empty line where there are enough."""
    while True:
        line = _line("> ")
        if not line and may_end:
            return None
        try:
            return read_column(line)
        except ColumnsError as error:
            if not sys.stdin.isatty():
                raise CommandError(f"{error}") from None
            say(f"{error}. Again:")


def _line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        raise UsageError(
            "quickstart asks on a terminal; --draft, or --table and --label, say it on the command line"
        ) from None


def columns_of(path: Path) -> Columns:
    """Return what was read off a public table, column by column. Raises CommandError."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            header, *rows = csv.reader(file)
    except (OSError, ValueError, csv.Error) as error:
        raise CommandError(f"{path} is no CSV table with a header row ({error})") from None
    columns: Columns = {}
    for place, name in enumerate(header):
        told = _told_of({row[place].strip() for row in rows if place < len(row)} - {""})
        if told is None:
            say(f"{name} is left out: it has one value, or more than {MOST_VALUES} different texts")
        else:
            columns[name.strip()] = told
    return columns


def _told_of(values: set[str]) -> dict[str, Any] | None:
    try:
        numbers = sorted(map(float, values))
    except ValueError:
        numbers = []
    if len(numbers) >= FEWEST_NUMBERS and math.isfinite(numbers[-1] - numbers[0]):
        step = 10.0 ** math.floor(math.log10((numbers[-1] - numbers[0]) / 2))
        low, high = math.floor(numbers[0] / step) * step, math.ceil(numbers[-1] / step) * step
        return {"kind": "continuous", "low": float(f"{low:.12g}"), "high": float(f"{high:.12g}"), "bins": 8}
    return {"kind": "categorical", "values": sorted(values)} if 1 < len(values) <= MOST_VALUES else None


_LISTENERS: Final = ("listen", "listen_admin", "listen_operations")


def _serve(options: argparse.Namespace) -> None:
    serve_until_stopped(settings_of(options), _say_ready)


def serve_until_stopped(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Run the server, and tell ``ready`` where it listens. Raises CommandError where it cannot, or ended of itself."""
    try:
        run_server(settings, ready)
    except EndedError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(
            f"cannot listen: {error.strerror or error}; --listen, --listen-admin and --listen-operations take others"
        ) from None


def _say_ready(addresses: Addresses) -> None:
    say(f"ldp-aggregator is ready: public {addresses.public} admin {addresses.admin} operations {addresses.operations}")
