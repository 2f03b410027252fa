"""``python -m ldp_client``; the commands are in :mod:`ldp_client.command`, which the small wheel for devices lacks."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> int:
    """Run a command; returns its exit code."""
    if find_spec("ldp_client.command") is None:
        sys.stderr.write("ldp_client: the commands are not in ldp-bayes-client; pip install ldp-bayes has them\n")
        return 2
    from ldp_client.command import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
