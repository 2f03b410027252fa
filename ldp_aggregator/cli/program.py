"""The program: all groups of commands under one parser, and one way to fail."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ldp_aggregator.cli.common import CommandError, UsageError
from ldp_aggregator.service.publishing import NotInstalledError
from ldp_aggregator.service.settings import SettingsError
from ldp_aggregator.service.signing import KeyFileError
from ldp_aggregator.store import StoreError, UnknownCampaignError
from protocols import ProtocolError
from protocols.shell import DONE, FAILED, INTERRUPTED, WRONG_USAGE, Parser, add_completion

NAME: Final = "ldp-aggregator"

COMMANDS: Final = {
    "serve": "operation.serve",
    "campaign": "campaigns.campaign",
    "estimates": "campaigns.estimates",
    "train": "campaigns.train",
    "evaluate": "campaigns.evaluate",
    "fit": "tables.fit",
    "node": "tables.node",
    "project": "campaigns.project",
    "token": "operation.rights",
    "log": "operation.rights",
    "key": "operation.rights",
    "status": "operation.status",
    "fsck": "operation.keeping",
    "merge": "operation.keeping",
    "backup": "operation.keeping",
    "restore": "operation.keeping",
    "recount": "operation.keeping",
    "audit": "audit",
}
"""Each command's module in this package. Only the module of the one that is asked for is imported: some bring libraries
that take seconds and memory, and serving needs neither."""

_REPORTED: Final = (CommandError, KeyFileError, ProtocolError, StoreError)
_WRONG: Final = (NotInstalledError, SettingsError, UsageError)


def make_parser(command: str | None = None) -> Parser:
    """The parser of one command, or of all where it is not one of :data:`COMMANDS`."""
    parser = Parser(
        prog=NAME,
        description="Collects locally private reports, learns Naive Bayes models from them, publishes them.",
        examples=("serve --data /var/lib/ldp-aggregator", "campaign create draft.toml", "train ID --output model.json"),
    )
    add_completion(parser, make_parser)
    groups = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    if command in COMMANDS:
        import_module(f"ldp_aggregator.cli.{COMMANDS[command]}").add_commands(groups)
        return parser
    for module in dict.fromkeys(COMMANDS.values()):
        try:
            import_module(f"ldp_aggregator.cli.{module}").add_commands(groups)
        except ModuleNotFoundError as error:  # noqa: PERF203 - a dozen commands, once
            if (error.name or "").partition(".")[0] in ("ldp_aggregator", "protocols"):
                raise
            for name in (name for name, where in COMMANDS.items() if where == module):
                groups.add_parser(name, help=f"needs {error.name}: pip install 'ldp-bayes[aggregator]'")
    return parser


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; what is wrong is one line on standard error. Returns a code of :mod:`protocols.shell`."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    chosen = make_parser(given[0] if given else None).parse_args(given)
    try:
        code: int = chosen.command(chosen) or DONE
    except UnknownCampaignError as error:
        sys.stderr.write(f"{NAME}: {error}; '{NAME} campaign list' shows the ids of this store\n")
        return FAILED
    except _WRONG as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return WRONG_USAGE
    except _REPORTED as error:
        sys.stderr.write(f"{NAME}: {error}\n")
        return FAILED
    except BrokenPipeError:
        # Whoever read our output has seen enough; the interpreter must not complain about it when it flushes.
        sys.stdout = None
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    return code
