"""The draw: some mutants of every room, the same for the same seed and sources.

A room is a folder of sources. Each has one mutant at least, and of the others as many as it has lines to plant them in.
"""

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import python_places
import token_places
from planting import Mutant

SOURCES = {
    "ldp_aggregator": ".py",
    "ldp_client": ".py",
    "protocols/ldp_protocols": ".py",
    "simulations/ldp_simulations": ".py",
    "javascript/src": ".ts",
    "kotlin/src/main": ".kt",
    "swift/Sources/LdpBayes": ".swift",
}
"""Where production code is, and how its files end."""


@dataclass(frozen=True)
class Room:
    """The mutants of one folder, by the lines in which they are; each line has one at least."""

    name: str
    lines: Sequence[Sequence[Mutant]]

    def drawn(self, seed: int) -> Iterator[Mutant]:
        """The room's mutants in the order of this seed, one a line at most, whatever other rooms there are."""
        rng = random.Random(f"{seed} {self.name}")
        for line in rng.sample(self.lines, len(self.lines)):
            kind = rng.choice(sorted({mutant.kind for mutant in line}))
            yield rng.choice([mutant for mutant in line if mutant.kind == kind])


def rooms(root: Path, files: Sequence[str]) -> list[Room]:
    """All rooms of a checkout in which something can be planted, by name."""
    lines: dict[str, dict[tuple[str, int], list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for path in files:
        if any(path.startswith(f"{folder}/") and path.endswith(end) for folder, end in SOURCES.items()):
            text = (root / path).read_text(encoding="utf-8")
            found = (python_places if path.endswith(".py") else token_places).mutants(path, text)
            for mutant in found:
                lines[path.rpartition("/")[0]][path, mutant.line].append(mutant)
    return [Room(name, list(lines[name].values())) for name in sorted(lines)]


def shares(sizes: Mapping[str, int], count: int, seed: int) -> dict[str, int]:
    """The number of mutants of each room, ``count`` in all; where that is less than one each, the seed says whose."""
    if count < len(sizes):
        chosen = random.Random(seed).sample(sorted(sizes), count)
        return {name: int(name in chosen) for name in sizes}
    rest, lines = count - len(sizes), sum(sizes.values())
    exact = {name: rest * size / lines for name, size in sizes.items()}
    given = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(sizes, key=lambda name: (given[name] - exact[name], name))
    for name in by_remainder[: rest - sum(given.values())]:
        given[name] += 1
    return {name: 1 + given[name] for name in sizes}
