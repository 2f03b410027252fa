"""Where a store comes from: made new, copied, or made of a copy. Two stores never publish under one version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ldp_aggregator.store.contract import StoreError


@dataclass(frozen=True, slots=True)
class Origin:
    """What a store knows of itself.

    ``generation`` is a name drawn for it, ``version_floor`` a number that versions of models are above, ``is_copy``
    whether it is a backup, from which a store has to be made before it takes anything.
    """

    generation: str
    version_floor: int
    is_copy: bool


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restored store does not have any more: tokens in use, and shares of nodes."""

    tokens: int
    shares: int


def check_in_use(origin: Origin) -> None:
    """Refuse to write to a backup. Raises StoreError."""
    if origin.is_copy:
        raise StoreError(
            "this is a backup, in which tokens and shares may stand that were revoked or withdrawn since; "
            "'ldp-aggregator restore' makes a store of it"
        )


def floor_of_versions(now: datetime, *floors: int) -> int:
    """The floor of a store that is made of others at ``now``: above every version that they ever published.

    What was published after a copy is not in it. Seconds since 1970 are more than any store has published that counts
    from 1, or from the seconds of an earlier restore.
    """
    return max(int(now.timestamp()), *floors)


def wrong_version(what: str, version: int, wanted: int) -> StoreError:
    remedy = "; stop the servers, make a backup and run 'ldp-aggregator migrate'" if version < wanted else ""
    return StoreError(f"the {what} has schema version {version}; this program reads version {wanted}{remedy}")
