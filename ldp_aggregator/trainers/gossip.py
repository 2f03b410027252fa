"""Nodes without a server learn the mean of all their vectors from talking to each other (Kempe, Dobra, Gehrke 2003).

A node holds a vector and a weight; in every round it keeps half of both and pushes the other half to a node that is
drawn at random. Sum and weight are conserved, so that vector / weight tends to the mean, while all nodes live: what a
dead one held is gone, and the others tend to the mean of what is left. The vectors must have their noise before the
first round: what is pushed is seen by whoever receives it.

A push has a number, and is booked before it is sent. Sent again under its number it counts once. Where no answer comes
its sender takes the half back and goes on; once the receiver is heard of again, it is asked whether the push had
arrived. If so, the sender gives the half up (all is linear: it does not matter when); if not, the receiver refuses it
from then on. So nothing is lost or counted twice between nodes that live, whatever is lost in between.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

VERSION: Final = 1
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Push:
    """A message of one node to another: half of what it held, and the message's number among the sender's."""

    number: int
    target: str
    vector: list[float]
    weight: float

    def to_json(self) -> dict[str, Any]:
        """The fields of a message, and of a state file."""
        return asdict(self)


class PushSumNode:
    """One node's side, for any transport. A node of :meth:`opened` survives its process.

    Attributes
    ----------
    name
        Drawn with the node: the sender whose numbers a receiver remembers.
    vector, weight
        What the node holds.
    pushes
        Pushes so far, and the number of the next.
    open, doubted
        By number: pushes that were not answered yet, and those that were taken back without an answer.
    """

    def __init__(self, vector: Array) -> None:
        self.name = secrets.token_hex(8)
        self.vector: Array = np.asarray(vector, dtype=np.float64)
        self.weight = 1.0
        self.pushes = 0
        self.open: dict[int, Push] = {}
        self.doubted: dict[int, Push] = {}
        self._heard: dict[str, dict[int, bool]] = defaultdict(dict)
        """By sender and number, whether the push was taken; one that was not never will be."""
        self._file: sqlite3.Connection | None = None

    @classmethod
    def opened(cls, file: Path, draw: Callable[[], Array]) -> PushSumNode:
        """The node that a file keeps, for one process at a time; without a file a new one.

        ``draw`` gives a new node's vector, with its noise, and is not called for one that is kept: a restart spends
        nothing. Every change is on disk before the method that makes it returns. Raises ValueError for another file,
        or where another process has this one open.
        """
        connection = sqlite3.connect(file, timeout=0, isolation_level=None)
        try:
            connection.execute("PRAGMA locking_mode = exclusive")
            connection.execute("PRAGMA synchronous = full")
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("CREATE TABLE IF NOT EXISTS gossip (id INTEGER PRIMARY KEY, state TEXT NOT NULL)")
            found = connection.execute("SELECT state FROM gossip").fetchone()
            node = cls._read(json.loads(found[0])) if found else cls(draw())
            node._file = connection
            node._keep()
            connection.execute("COMMIT")
        except BaseException as error:
            connection.close()
            if isinstance(error, (sqlite3.Error, KeyError, TypeError, json.JSONDecodeError)):
                raise ValueError(f"{file} is not the free state file of a gossip node: {error}") from None
            raise
        return node

    def close(self) -> None:
        """Let another process have the file."""
        if self._file:
            self._file.close()

    @classmethod
    def _read(cls, state: dict[str, Any]) -> PushSumNode:
        if state["version"] != VERSION:
            raise KeyError(f"version {state['version']}")
        node = cls(np.array(state["vector"]))
        node.name, node.weight, node.pushes = state["name"], state["weight"], state["pushes"]
        node.open, node.doubted = ({one["number"]: Push(**one) for one in state[at]} for at in ("open", "doubted"))
        for sender, number, taken in state["heard"]:
            node._heard[sender][number] = taken
        return node

    def _keep(self) -> None:
        if not self._file:
            return
        state = {
            "version": VERSION,
            "name": self.name,
            "vector": self.vector.tolist(),
            "weight": self.weight,
            "pushes": self.pushes,
            "open": [one.to_json() for one in self.open.values()],
            "doubted": [one.to_json() for one in self.doubted.values()],
            "heard": [(sender, *one) for sender, numbers in self._heard.items() for one in numbers.items()],
        }
        self._file.execute("INSERT OR REPLACE INTO gossip VALUES (1, ?)", (json.dumps(state),))

    def _add(self, push: Push, sign: int) -> None:
        self.vector = self.vector + sign * np.array(push.vector)
        self.weight += sign * push.weight
        self._keep()

    def push(self, target: str) -> Push:
        """Half of what this node holds, booked: to be sent until :meth:`arrived`, or :meth:`take_back`."""
        half = Push(self.pushes, target, (self.vector / 2).tolist(), self.weight / 2)
        self.open[half.number] = half
        self.pushes += 1
        self._add(half, -1)
        return half

    def receive(self, sender: str, push: Push) -> None:
        """Take a push in, once, unless :meth:`settle` has said that it had not arrived."""
        if push.number not in self._heard[sender]:
            self._heard[sender][push.number] = True
            self._add(push, 1)

    def arrived(self, number: int) -> None:
        """Book the answer to a push."""
        del self.open[number]
        self._keep()

    def take_back(self, number: int) -> None:
        """Abandon a push that nobody answered: its half belongs to this node again, and is in doubt."""
        self.doubted[number] = self.open.pop(number)
        self._add(self.doubted[number], 1)

    def settle(self, sender: str, numbers: Iterable[int]) -> list[int]:
        """Those of a sender's doubted pushes that had arrived; the others are refused from now on."""
        heard = self._heard[sender]
        taken = [number for number in numbers if heard.setdefault(number, False)]
        self._keep()
        return taken

    def settled(self, number: int, arrived: bool) -> None:
        """Book what the receiver says of a doubted push: the half of one that had arrived is not held here, too."""
        half = self.doubted.pop(number)
        if arrived:
            self._add(half, -1)
        else:
            self._keep()

    @property
    def mean(self) -> Array:
        """The node's estimate of the mean of all vectors; times the number of nodes, of their sum.

        Raises ValueError where it holds nothing: it has just given up pushes that had arrived after all.
        """
        if self.weight <= 0:
            raise ValueError(f"this node holds weight {self.weight:.3g}; more rounds are needed")
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
