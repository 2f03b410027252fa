"""Features of one shape are computed at once: their numbers stand in arrays whose first axis is that of the features.

A stack is a dataclass of such arrays, and of other stacks; nothing but its shapes tells it from that of one feature.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Stack = TypeVar("Stack", bound="DataclassInstance")


def alike(shapes: Mapping[str, Hashable]) -> list[tuple[str, ...]]:
    """The names of features of one shape together, by the shapes of all."""
    groups: dict[Hashable, list[str]] = {}
    for name, shape in shapes.items():
        groups.setdefault(shape, []).append(name)
    return [tuple(names) for names in groups.values()]


def rows(stack: Stack, places: int | Sequence[int]) -> Stack:
    """The features at some places; the one at a place, without the axis."""

    def taken(part: Any) -> Any:
        if part is None:
            return None
        return part[places] if isinstance(part, np.ndarray) else rows(part, places)

    return type(stack)(*(taken(getattr(stack, one.name)) for one in fields(stack)))
