"""Open files: enough for every connection that the limits allow, or a warning."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

_RAISE = """
import logging, resource, sys
from ldp_aggregator.server.sockets.listener import most_descriptors, raise_limit
logging.basicConfig(stream=sys.stdout, format="%(message)s: %(reason)s")
soft, hard = (int(text) + most_descriptors(100) for text in sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
raise_limit(100)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - most_descriptors(100))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "lines"),
    [
        (-200, 0, ["0"]),
        (-200, 50, ["0"]),
        (20, 50, ["20"]),
        (-200, -100, ["too few open files: the limit is 1224, connections takes 1324", "-100"]),
    ],
)
def test_the_limit_is_raised_as_far_as_it_is_needed_and_allowed(soft, hard, lines):
    ran = subprocess.run(
        [sys.executable, "-c", _RAISE, str(soft), str(hard)], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.splitlines() == lines
