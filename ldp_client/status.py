"""What a client tells about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Status:
    """What happened so far, for the app and its user; holds nothing of a record.

    ``consent`` is None until somebody decided. ``dropped`` and ``quarantined`` count reports by reason. ``next_try`` is
    in seconds from now. ``problem`` is the code of the last failure.
    """

    campaign_id: str
    consent: bool | None = None
    contributed: bool = False
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
