"""What a device tells about itself: numbers and codes, nothing of a record."""

from __future__ import annotations

from collections.abc import Mapping

from protocols.light import field, frozen


@frozen
class Status:
    """What happened so far in one campaign.

    ``consent`` is None until somebody decided. ``sent`` counts the reports that the server says it has; ``dropped`` and
    ``quarantined`` count others by reason. ``next_try`` is in seconds from now. ``problem`` is the code of the last
    failure; ``delivery-not-started`` where something waits and nobody has called ``start()`` or ``run_once()``.
    """

    campaign_id: str
    consent: bool | None = None
    contributed: bool = False
    fate: str | None = None
    queued: int = 0
    queued_bytes: int = 0
    sent: int = 0
    retries: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    next_try: float | None = None
    epsilon: float = 0.0
    total_epsilon: float = 0.0
    running: bool = False
    problem: str | None = None


@frozen
class DeviceStatus:
    """The same of a whole install; ``campaigns`` are those that somebody decided about."""

    enabled: bool = True
    queued: int = 0
    sent: int = 0
    total_epsilon: float = 0.0
    running: bool = False
    problem: str | None = None
    campaigns: Mapping[str, Status] = field(default_factory=dict)


@frozen
class Withdrawal:
    """What a withdrawal could do.

    deleted
        Reports deleted from this device before they were known to have arrived.
    on_its_way
        Those of them that had begun to leave and may arrive: an upload of this process that could not be awaited to its
        end, or an earlier try, here or in another process, whose answer never came.
    refunded
        Privacy loss that is given back, because nothing had begun to leave: the person may agree again.
    """

    deleted: int = 0
    on_its_way: int = 0
    refunded: float = 0.0
