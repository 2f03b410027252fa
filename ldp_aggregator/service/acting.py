"""Administrative acts, each written down before it is done, and how it ended: over HTTP and on the command line."""

from __future__ import annotations

import getpass
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from ldp_aggregator.store import Store
from ldp_aggregator.store.failures import kind_of
from ldp_aggregator.store.rights import DONE, FAILED, Act, StoredToken

LOG: Final = logging.getLogger("ldp_aggregator")

SERVER: Final = "server"
"""Who acts where a server does by itself what it was configured to."""


def actor_of(token: StoredToken) -> str:
    return f"token {token.name}"


def local_actor() -> str:
    """Name who acts on the command line: a user of this machine, as far as it says."""
    try:
        return f"command line ({getpass.getuser()})"
    except (ImportError, KeyError, OSError):  # A container's user need not have a name.
        return "command line"


def uploads_act(scope: str | None) -> str:
    return f"let uploads need a token of scope {scope}" if scope else "let uploads need no token"


@asynccontextmanager
async def recorded(
    store: Store, actor: str, act: str, campaign_id: str | None = None, detail: str = ""
) -> AsyncIterator[None]:
    """Do in the block what is asked for. Nothing is done where it cannot be written down first."""
    number = await store.begin_act(Act(actor, act, campaign_id, detail))
    try:
        yield
    except BaseException:
        await _end(store, number, FAILED)
        raise
    await _end(store, number, DONE)


async def _end(store: Store, number: int, outcome: str) -> None:
    """Write down the end of what was done, if that can be; else the entry then stays "asked"."""
    try:
        await store.end_act(number, outcome)
    except Exception as error:
        LOG.error("the end of an act was not written down", extra={"reason": kind_of(error)})
