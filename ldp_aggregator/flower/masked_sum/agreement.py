"""What the nodes of a masked sum agree on before it begins, and what the masks do not do.

SecAgg+ (Bell et al. 2020, after Bonawitz et al. 2017) has the server choose its parameters. Here they are constants,
and the two numbers that are left, nodes and honest ones, stand in each node's own configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ldp_aggregator.flower.settings import SettingsError

WORDS: Final = (
    "EXPERIMENTAL, and no secure aggregation: the masks of Flower's SecAgg+ have 32 bits of entropy (flwrlabs/flower "
    "issue 7522), nobody but the server vouches for the nodes' keys, and the server says who takes part. A server that "
    "tries all masks, hands out keys of its own or runs nodes of its own can see single shares, which protect next to "
    "nothing. epsilon holds only against who sees no more than the sum."
)
"""Printed by both sides of every masked sum."""

CLIPPING_RANGE: Final = 2.0**15
TARGET_RANGE: Final = 1 << 16
MODULUS: Final = 1 << 32
MAX_WEIGHT: Final = 1.0
"""With these, Flower's quantisation is the identity on integers in [-2^15, 2^15), and sums of 2^15 are exact."""

LEAST_NODES: Final = 3
MOST_NODES: Final = 1 << 10
"""Each node sends a share of its keys to every other; the workflow itself needs three."""


@dataclass(frozen=True)
class Agreement:
    """``nodes`` that draw the noise, of which ``honest`` suffice. Raises SettingsError."""

    nodes: int
    honest: int

    def __post_init__(self) -> None:
        if not LEAST_NODES <= self.nodes <= MOST_NODES:
            raise SettingsError(f"nodes must be from {LEAST_NODES} to {MOST_NODES}, not {self.nodes}")
        if not 1 <= self.honest <= self.nodes:
            raise SettingsError(f"honest must be from 1 to nodes ({self.nodes}), not {self.honest}")

    @property
    def threshold(self) -> int:
        """Shares that give away a node's secret: not fewer than the honest nodes, more than a divided view yields.

        A server that tells some honest nodes that one of them is there and others that it is not, and has the N - M
        that are not honest on its side, gets 2 (N - M) + M shares of that node's two secrets; it needs a threshold of
        each. So twice the threshold is above 2 N - M.
        """
        return max(self.honest, self.nodes - (self.honest + 1) // 2 + 1, 2)

    @property
    def least_active(self) -> int:
        """Nodes that must be in the sum."""
        return max(self.honest, self.threshold)


def agreement_of(config: Mapping[str, object]) -> Agreement:
    """The agreement in a node's or a run's configuration. Raises SettingsError."""
    numbers = []
    for key in ("nodes", "honest"):
        value = config.get(key)
        if type(value) is not int:
            raise SettingsError(f"configuration of a masked sum: {key} must be a whole number, not {value!r}")
        numbers.append(value)
    return Agreement(*numbers)
