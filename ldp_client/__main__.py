"""The command ``ldp-client`` (also ``python -m ldp_client``)."""

import sys

from ldp_client.command import main

if __name__ == "__main__":
    sys.exit(main())
