"""``ldp-aggregator log``: who did what, when, and to which campaign."""

from __future__ import annotations

import argparse

from ldp_aggregator.cli.common import Groups, add_command, add_store_options, say_json, say_table, with_store


def add_commands(groups: Groups) -> None:
    text = "list administrative acts, oldest first: over HTTP by the token's name, on the command line by the user's"
    parser = add_command(groups, "log", text, _log, "--last 20", "--campaign ID --json")
    add_store_options(parser)
    parser.add_argument("--campaign", metavar="ID", help="only what was done to this campaign")
    parser.add_argument("--last", type=int, metavar="N", help="only the last so many")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _log(options: argparse.Namespace) -> None:
    last = None if options.last is None else max(options.last, 0)
    acts = [
        act.to_json() for act in with_store(options, lambda store: store.acts(campaign_id=options.campaign, last=last))
    ]
    if options.json:
        say_json(acts)
    else:
        names = ("time", "actor", "act", "campaign", "detail", "outcome")
        say_table(names, [[act[name] for name in names] for act in acts])
