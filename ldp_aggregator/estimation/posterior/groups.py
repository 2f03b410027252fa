"""Features of one shape are computed at once: their numbers stand in arrays whose first axis is that of the features.

A stack is a dataclass of such arrays, and of other stacks; nothing but its shapes tells it from that of one feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Stack = TypeVar("Stack", bound="DataclassInstance")
Member = TypeVar("Member")

MOST_NUMBERS: Final = 1 << 16
"""In an array of matrices that is computed at once: what is large gains nothing by it, and takes its memory."""


def alike(shapes: Mapping[str, Hashable]) -> list[tuple[str, ...]]:
    """The names of features of one shape together, by the shapes of all."""
    groups: dict[Hashable, list[str]] = {}
    for name, shape in shapes.items():
        groups.setdefault(shape, []).append(name)
    return [tuple(names) for names in groups.values()]


def parts(members: Sequence[Member], cells: int) -> Iterator[Sequence[Member]]:
    """So many members at a time that one matrix, (cells, cells), for each of them is within :data:`MOST_NUMBERS`."""
    count = max(1, MOST_NUMBERS // cells**2)
    return (members[start : start + count] for start in range(0, len(members), count))


def rows(stack: Stack, places: int | Sequence[int]) -> Stack:
    """The features at some places; the one at a place, without the axis."""

    def taken(part: Any) -> Any:
        if part is None:
            return None
        return part[places] if isinstance(part, np.ndarray) else rows(part, places)

    return type(stack)(*(taken(getattr(stack, one.name)) for one in fields(stack)))
