"""``ldp-aggregator serve``: the HTTP server, in the foreground; and ``quickstart``: from "what is to be learned?" to a
server that waits for devices, in one command.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.cli.common import (
    CommandError,
    add_command,
    add_reading,
    add_store_options,
    check_receivable,
    read_draft,
    reading_of,
    settings_of,
    with_store,
    write_file,
)
from ldp_aggregator.dashboard.drawing.precision import expected_widths
from ldp_aggregator.server.process import run_server
from ldp_aggregator.server.sockets.listener import Addresses
from ldp_aggregator.service.drafts import draft_from, read_column
from ldp_aggregator.service.rights import local_actor, make_token, recorded
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import to_text, utc_now
from ldp_protocols import Campaign
from ldp_protocols.command_line import Groups, at_least, between, say

_LISTENERS: Final = ("listen", "listen_admin", "listen_operations")

DRAFT: Final = Path("draft.json")
DEVICES: Final = 10_000
HERE: Final = "127.0.0.1:8080"


def add_commands(groups: Groups) -> None:
    quickstart = add_command(
        groups,
        "quickstart",
        _quickstart,
        "",
        "--table public.csv --label split_suits",
        "--draft draft.json --devices 50000",
    )
    quickstart.add_argument("--draft", type=Path, metavar="FILE", help="a draft in TOML or JSON; nothing is asked then")
    quickstart.add_argument(
        "--table", type=Path, metavar="FILE", help="a CSV file of PUBLIC data to take the columns from"
    )
    quickstart.add_argument("--label", metavar="COLUMN", help="its column to learn (default: statistics of all)")
    add_reading(quickstart)
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


def _serve(options: argparse.Namespace) -> None:
    serve_until_stopped(settings_of(options), _say_ready)


def serve_until_stopped(settings: Settings, ready: Callable[[Addresses], None]) -> None:
    """Run the server, and tell ``ready`` where it listens. Raises CommandError where it cannot, or ended of itself."""
    try:
        ended = run_server(settings, ready)
    except OSError as error:
        raise CommandError(
            f"cannot listen: {error.strerror or error}; --listen, --listen-admin and --listen-operations take others"
        ) from None
    if ended is not None:
        raise CommandError(f"the {ended} ended by itself; the log says why")


def _say_ready(addresses: Addresses) -> None:
    say(f"ldp-aggregator is ready: public {addresses.public} admin {addresses.admin} operations {addresses.operations}")


def _quickstart(options: argparse.Namespace) -> None:
    if options.table is None and options.label is not None:
        raise argparse.ArgumentTypeError("--label goes with --table: the file, and its column to learn")
    if options.draft is not None and options.table is not None:
        raise argparse.ArgumentTypeError("--draft says what is asked; leave --table and --label out")
    settings = settings_of(options)
    if "listen" not in settings.model_fields_set:  # Somebody tries it out; on a shared network nobody else is asked in.
        settings = settings.model_copy(update={"listen": HERE})
    campaign = Campaign.compile(read_draft(options.draft) if options.draft else _drafted(options))
    check_receivable(campaign, settings)
    (width,) = expected_widths(campaign, [options.devices])
    precision = f"to ± {100 * width:.1f} points" if width < 1 else "hardly at all: more devices, or a larger epsilon"
    say(f"{options.devices:,} devices would tell the average share of the least precise question {precision}.")
    text, token = make_token(f"quickstart {to_text(utc_now())}", "admin", utc_now())

    async def work(store: Store) -> None:
        async with recorded(store, local_actor(), "create campaign", campaign.id, campaign.title):
            await store.create_campaign(campaign)
        async with recorded(store, local_actor(), "create token", detail=f"{token.name}, scope {token.scope}"):
            await store.add_token(token)

    def ready(addresses: Addresses) -> None:
        public = addresses.public.replace("//0.0.0.0:", "//127.0.0.1:")
        say(f"Devices send to {public}; people read {public}/c/{campaign.id}")
        say(f"The dashboard, {addresses.admin}/, opens with this token, shown this once: {text}")
        say(
            f"Ctrl-C stops the server; 'ldp-aggregator serve --listen {settings.listen}' goes on with what was counted."
        )

    with_store(options, work, create=True)
    serve_until_stopped(settings, ready)


def _drafted(options: argparse.Namespace) -> str:
    """The draft of what is asked for or read, after writing it to a file to go on with."""
    if DRAFT.exists():
        raise CommandError(f"{DRAFT} is there already: 'quickstart --draft {DRAFT}' goes on with it, or move it away")
    try:
        draft = _asked(options.epsilon) if options.table is None else _read(options)
    except ValueError as error:
        raise CommandError(f"that is no campaign yet: {error}") from None
    write_file(DRAFT, draft + "\n")
    say(f"{DRAFT} is the draft. Values and bounds in it are public: they must come from what everybody knows.")
    return draft


def _read(options: argparse.Namespace) -> str:
    """The draft of a public table, after saying what in it was read off the rows."""
    from ldp_aggregator.trainers.reading import TableError, read_csv
    from ldp_aggregator.trainers.table_drafts import draft_from_table

    try:
        found = draft_from_table(
            read_csv(options.table, options.label or "", reading_of(options)),
            options.label,
            source=str(options.table),
            epsilon=options.epsilon,
        )
    except TableError as error:
        raise CommandError(str(error)) from None
    for note in found.notes:
        say(note)
    return json.dumps(found.draft, indent=2, ensure_ascii=False)


def _asked(epsilon: float) -> str:
    """Ask for the label, the columns and the title, and return their draft. Raises ValueError."""
    say("What is to be learned, and what can it be? Such as   split_suits: yes | no")
    label, classes = _column() or ("", {})
    say("What else does a record hold? A column a line, then an empty line. Such as")
    say("  age: young < medium < old      (in this order)")
    say("  words: 0 to 200000 in 8        (a number, in 8 steps)")
    columns = {label: classes}
    while column := _column(may_end=len(columns) > 1):
        columns |= [column]
    return draft_from(columns, label, _line(f"A title, as people read it [What tells {label}?]: "), epsilon)


def _column(*, may_end: bool = False) -> tuple[str, dict[str, Any]] | None:
    """Ask until a line is a column; None for an empty line where there are enough."""
    while True:
        line = _line("> ")
        if not line and may_end:
            return None
        try:
            return read_column(line)
        except ValueError as error:
            if not sys.stdin.isatty():
                raise CommandError(f"{error}") from None
            say(f"{error}. Again:")


def _line(prompt: str) -> str:
    try:
        return input(prompt).strip()
    except EOFError:
        raise argparse.ArgumentTypeError(
            "quickstart asks on a terminal; --draft, or --table and --label, say it on the command line"
        ) from None
