"""The command ``ldp-aggregator`` (also ``python -m ldp_aggregator``)."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns its exit code. A plain installation is the client alone, and is told so."""
    try:
        from ldp_aggregator.cli import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("ldp_aggregator", "protocols"):
            raise
        sys.stderr.write(
            f"ldp-aggregator: {error.name} is not installed; the aggregator needs pip install 'ldp-bayes[aggregator]'\n"
        )
        return 2
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
