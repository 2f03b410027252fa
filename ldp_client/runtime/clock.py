"""What the client asks of a clock."""

from __future__ import annotations

import time

from protocols.light import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import Final


class Clock(Protocol):
    """The module ``time`` is one."""

    def time(self) -> float:
        """Seconds since 1970, as far as this machine knows."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def sleep(self, seconds: float, /) -> None:
        """Wait."""


SYSTEM_CLOCK: Final[Clock] = time
