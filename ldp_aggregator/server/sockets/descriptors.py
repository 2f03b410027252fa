"""Open files: as many as the limits let clients take, and some that no client can take."""

from __future__ import annotations

import logging
from typing import Final

from ldp_aggregator.server.sockets.connections import MOST_REFUSALS
from ldp_aggregator.server.sockets.tls_door import MOST_HANDSHAKES
from ldp_aggregator.service.settings import Limits

LOG: Final = logging.getLogger("ldp_aggregator")

OWN: Final = 128
"""For the store, its database, logs, and what accepts on the other listeners."""


def most_descriptors(limits: Limits) -> int:
    """How many open files the three listeners and the process itself can come to."""
    return 3 * (limits.connections + MOST_REFUSALS) + MOST_HANDSHAKES + OWN


def raise_limit(limits: Limits) -> None:
    """Let this process have so many; where the system does not, say so: a full public listener could then stop the
    admin listener.
    """
    try:
        import resource
    except ModuleNotFoundError:  # Windows counts them differently.
        return
    wanted = most_descriptors(limits)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        LOG.warning(
            "too few open files", extra={"reason": f"the limit is {allowed}, limits.connections takes {wanted}"}
        )
