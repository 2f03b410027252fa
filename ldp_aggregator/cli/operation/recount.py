"""``ldp-aggregator recount``: count an archive again, and compare it with the store."""

from __future__ import annotations

import argparse
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ldp_aggregator.cli.common import (
    Groups,
    UsageError,
    add_command,
    add_store_options,
    say,
    say_json,
    with_store,
)

if TYPE_CHECKING:
    from ldp_aggregator.archive.reading import Engine
    from ldp_aggregator.archive.slots import Recount


def add_commands(groups: Groups) -> None:
    text = "count the archived reports of a campaign again; exit code 1 where the store says otherwise"
    parser = add_command(
        groups, "recount", text, _recount, "s3://archive/reports ID --compare", "/archive ID --engine dask --json"
    )
    parser.add_argument("archive", metavar="ARCHIVE", help="folder or address (s3://...) that the server archives to")
    parser.add_argument("campaign", metavar="ID", help="the campaign")
    parser.add_argument(
        "--engine", choices=("processes", "dask"), default="processes", help="what runs it (default: %(default)s)"
    )
    parser.add_argument("--workers", type=_positive, metavar="N", help="processes (default: one a processor)")
    parser.add_argument("--compare", action="store_true", help="compare with the store's tally, bit for bit")
    add_store_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON: reports, duplicates, conflicts and all counts")


def _recount(options: argparse.Namespace) -> int:
    try:
        from ldp_aggregator.archive.reading import recount
    except ModuleNotFoundError as error:
        raise UsageError(f"{error.name} is not installed; archives need pip install 'ldp-bayes[archive]'") from None
    found = recount(options.archive, options.campaign, _engine(options))
    equal = None
    if options.compare:
        equal = with_store(options, lambda store: store.tally(options.campaign)) == found.tally
    if options.json:
        say_json(_as_json(options.campaign, found, equal))
    else:
        _tell(found, equal)
    return 1 if equal is False else 0


def _engine(options: argparse.Namespace) -> Engine:
    from ldp_aggregator.archive.reading import on_dask, on_processes

    if options.engine == "processes":
        return partial(on_processes, workers=options.workers)
    if options.workers:
        raise UsageError("--workers is for --engine processes; Dask has settings of its own")
    if find_spec("dask") is None:
        raise UsageError("dask is not installed; this engine needs pip install 'ldp-bayes[dask]'")
    return on_dask


def _tell(found: Recount, equal: bool | None) -> None:
    say(f"{found.reports} reports count, {found.duplicates} rows repeat one of them")
    if found.refused:
        say(f"{found.refused} rows no device can have sent; they are left out")
    if found.conflicts:
        say(f"{len(found.conflicts)} ids have more than one answer; none of them counts:")
        for one in found.conflicts:
            say(f"  {one.hex()}")
    if equal is not None:
        say("the store has the same tally, bit for bit" if equal else "the store has another tally")


def _as_json(campaign_id: str, found: Recount, equal: bool | None) -> dict[str, object]:
    questions = [
        {"question": number, "n": int(n), "counts": counts.tolist()}
        for number, (n, counts) in enumerate(zip(found.tally.n, found.tally.counts, strict=True))
    ]
    return {
        "campaign": campaign_id,
        "reports": found.reports,
        "duplicates": found.duplicates,
        "refused": found.refused,
        "conflicts": [one.hex() for one in found.conflicts],
        "equals_store": equal,
        "questions": questions,
    }


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number
