"""The program: all groups of commands under one parser, and one way to fail."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from ldp_aggregator.cli import backup, campaign, estimates, fit, fsck, merge, node, project, serve, token, train
from ldp_aggregator.cli.common import CommandError
from ldp_aggregator.settings import SettingsError
from ldp_aggregator.store import StoreError, UnknownCampaignError
from protocols import ProtocolError

NAME: Final = "ldp-aggregator"

GROUPS: Final = (serve, campaign, estimates, train, fit, node, project, token, fsck, merge, backup)

_REPORTED: Final = (CommandError, ProtocolError, SettingsError, StoreError, UnknownCampaignError)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=NAME, description="Collects locally private reports, learns Naive Bayes models from them, publishes them."
    )
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for group in GROUPS:
        group.add_commands(groups)
    return parser


def run(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 for success, 1 for a failure that is told in one line, 2 for a wrong command line."""
    chosen = make_parser().parse_args(arguments)
    try:
        code: int = chosen.command(chosen) or 0
    except _REPORTED as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return 1
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain about it when it flushes.
        sys.stdout = None
        return 1
    except KeyboardInterrupt:
        return 130
    return code
