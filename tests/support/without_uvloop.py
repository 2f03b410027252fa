"""``ldp-aggregator`` where uvloop is not installed."""

import sys

from ldp_aggregator.__main__ import main

sys.modules["uvloop"] = None
sys.exit(main())
