"""Open files: enough for every connection that the limits allow, or a warning."""

import subprocess
import sys

import pytest

pytest.importorskip("resource")

_RAISE = """
import logging, resource, sys
from ldp_aggregator.server.sockets.listener import most_descriptors, raise_limit
logging.basicConfig(stream=sys.stdout, format="%(message)s: %(reason)s")
for soft, hard in ((20, 50), (-200, 50), (-200, 0), (-200, -100)):
    limits = [number + most_descriptors(100) for number in (soft, hard)]
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    raise_limit(100)
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - most_descriptors(100))
"""


def test_the_limit_is_raised_as_far_as_it_is_needed_and_allowed():
    ran = subprocess.run([sys.executable, "-c", _RAISE], capture_output=True, text=True, timeout=60, check=True)
    warning = "too few open files: the limit is 1224, connections takes 1324"
    assert ran.stdout.splitlines() == ["20", "0", "0", warning, "-100"]
