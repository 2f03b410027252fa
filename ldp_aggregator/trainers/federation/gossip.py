"""Push-sum: nodes learn the sum of all their vectors from talking to each other, without a server.

Kempe, Dobra, Gehrke 2003. A node holds a vector and a weight; in every round it keeps half of both and pushes the other
half to a node drawn at random. Sum and weight are conserved, so that vector / weight tends to the mean. The vectors
must have their noise before the first round: what is pushed is seen by whoever receives it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Push:
    """A message of one node to another."""

    vector: Array
    weight: float


class PushSumNode:
    """One node's side, for any transport: :meth:`push` gives away a half, :meth:`receive` takes one in.

    A push that was given away must arrive: one that is lost takes its share of the sum with it.
    """

    def __init__(self, vector: Array) -> None:
        self.vector = np.asarray(vector, dtype=np.float64)
        self.weight = 1.0

    def push(self) -> Push:
        """Half of what this node holds, to be delivered once."""
        self.vector, self.weight = self.vector / 2, self.weight / 2
        return Push(self.vector, self.weight)

    def receive(self, push: Push) -> None:
        self.vector, self.weight = self.vector + push.vector, self.weight + push.weight

    @property
    def mean(self) -> Array:
        """The node's estimate of the mean of all vectors; times the number of nodes, of their sum."""
        return self.vector / self.weight


def push_sum(vectors: Array, rounds: int, rng: np.random.Generator) -> Array:
    """Every node's estimate of the mean after so many rounds; ``vectors`` and result have shape (nodes, length)."""
    nodes = len(vectors)
    values = np.hstack([np.asarray(vectors, dtype=np.float64), np.ones((nodes, 1))])
    for _ in range(rounds):
        values /= 2
        targets = rng.integers(0, nodes, size=nodes)
        pushed = values.copy()
        np.add.at(values, targets, pushed)
    return values[:, :-1] / values[:, -1:]
