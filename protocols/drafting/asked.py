"""A question whose mechanism is still to be found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Asked:
    """``cells`` of an index, 0 for a value."""

    kind: str
    group: int
    weight: int
    feature: str | None = None
    other: str | None = None
    cells: int = 0
