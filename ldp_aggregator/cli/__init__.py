"""The command line: one file per group of commands, each with ``add_commands(groups)``."""

from ldp_aggregator.cli.program import run

__all__ = ["run"]
