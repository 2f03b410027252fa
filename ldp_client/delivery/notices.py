"""What an app may want to count."""

from __future__ import annotations

from collections.abc import Callable

from protocols.light import TYPE_CHECKING, frozen

if TYPE_CHECKING:
    from ldp_client.delivery.machine import Delivery


@frozen
class Event:
    """``kind`` is ``queued``, ``sent``, ``retry``, ``dropped``, ``quarantined`` or ``problem``; ``code`` is the reason,
    ``count`` the number of reports.
    """

    kind: str
    code: str | None
    count: int
    campaign_id: str = ""


OnEvent = Callable[[Event], None]


def events(before: Delivery, after: Delivery, problem: str | None, campaign_id: str) -> list[Event]:
    """What happened between two states of a queue."""
    told = []
    if after.sent > before.sent:
        told.append(Event("sent", None, after.sent - before.sent, campaign_id))
    for kind, old, new in (
        ("dropped", before.dropped, after.dropped),
        ("quarantined", before.quarantined, after.quarantined),
    ):
        for code, count in new.items():
            if count > old.get(code, 0):
                told.append(Event(kind, code, count - old.get(code, 0), campaign_id))
    if after.retries > before.retries:
        told.append(Event("retry", problem, after.queued, campaign_id))
    return told
