"""The command ``ldp-aggregator`` (also ``python -m ldp_aggregator``)."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; where its libraries are missing, name the extra that brings them."""
    try:
        from ldp_aggregator.cli.program import run

        return run(arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("ldp_aggregator", "ldp_protocols"):
            raise
        sys.stderr.write(
            f"ldp-aggregator: {error.name} is not installed; this needs pip install 'ldp-bayes[aggregator]'\n"
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
