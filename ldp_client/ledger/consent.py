"""What a person agreed to, when, and with whom."""

from __future__ import annotations

from protocols.light import frozen


@frozen
class Consent:
    """One decision about one campaign, with a copy of what it was about.

    The campaign's id is the digest of its whole document; title, purpose and loss are kept in words as they were shown.
    ``granted_at`` and ``withdrawn_at`` are the device's clock; a person who said no at once has granted nothing.
    """

    url: str
    title: str
    purpose: str
    epsilon: float
    granted_at: float | None
    withdrawn_at: float | None

    @property
    def given(self) -> bool:
        """Whether it holds."""
        return self.granted_at is not None and self.withdrawn_at is None
