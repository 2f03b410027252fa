"""The audit's search, pointed at other libraries: how much do their mechanisms tell, each against its own claim?

    python -m venv F; F/bin/pip install -r benchmarks/peers/requirements.txt
    python benchmarks/audit_peers.py --peers F/bin/python [--trials 20000] [--page docs/audit-of-others.md]

The peers run in an environment of their own (``benchmarks/peers/sampling.py``) and hand over the bytes of what they
give out. Half of the trials choose events, the other half tests them; a bound is Clopper-Pearson and holds for all rows
of the table together with the stated confidence. A row is about one pair of inputs of one setting of one version.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from ldp_aggregator.audit.bounds import CONFIDENCE
from ldp_aggregator.audit.observations import Observations, observe
from ldp_aggregator.audit.search import CHOSEN, find_events

SAMPLING = Path(__file__).with_name("peers") / "sampling.py"
ID_BYTES = 16


@dataclass(frozen=True)
class Row:
    """One mechanism: what it claims, and the most that the search could prove."""

    case: str
    claim: dict[str, Any]
    trials: int
    bound: float
    event: str

    @property
    def verdict(self) -> str:
        return "above the claim" if self.bound > self.claim["epsilon"] else "within the claim"


def bound_with_delta(ones: int, others: int, trials: int, delta: float, alpha: float) -> float:
    """A lower bound of epsilon in P(event | one) <= exp(epsilon) P(event | other) + delta, wrong with at most alpha."""
    low = float(beta.ppf(alpha / 2, ones, trials - ones + 1)) if ones else 0.0
    high = float(beta.ppf(1 - alpha / 2, others + 1, trials - others)) if others < trials else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def seen(rows: NDArray[np.uint8]) -> Observations:
    """Outputs as the audit sees them: each the payload of an upload, under an id that tells nothing."""
    return observe([msgpack.packb([1, [[0, os.urandom(ID_BYTES), row.tobytes()]]], use_bin_type=True) for row in rows])


def audit_case(peers: Path, case: str, trials: int, alpha: float) -> Row:
    """Sample a peer's mechanism on its two inputs and search both ways."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "samples.npz"
        command = [str(peers), str(SAMPLING), case, str(trials), str(output)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{case}: {done.stderr.strip().splitlines()[-1]}")
        claim = json.loads(done.stdout.strip().splitlines()[-1])
        with np.load(output) as arrays:
            sides = [seen(arrays[name]) for name in ("one", "other")]
    best, told = -math.inf, "none"
    for one, other in (sides, sides[::-1]):
        for event in find_events(one, other):
            tested = one.half_trials(1)
            counts = event.count(one, 1), event.count(other, 1)
            bound = bound_with_delta(*counts, tested, claim["delta"], alpha / (2 * CHOSEN))
            if bound > best:
                best, told = bound, f"{event.name}: {counts[0]} against {counts[1]} of {tested}"
    return Row(case, claim, trials, best, told)


def page(rows: Sequence[Row], command: str) -> str:
    """The table, in Markdown."""
    lines = [
        "# The audit's search on other libraries",
        "",
        "The search of `ldp-aggregator audit` looks at bytes only, so it can be pointed at any mechanism. Each row is "
        "one mechanism of one version on one pair of inputs, and says what that run shows and nothing more: a bound "
        "below the claim proves nothing, a bound above it says that the claim does not cover this pair as it was "
        "sampled here. For tables there is a row for each usual relation, whichever a library means.",
        "",
        f"All bounds hold together with {CONFIDENCE:.0%} confidence (Clopper-Pearson, Bonferroni over rows, directions "
        "and events; half of the trials chose the events, the other half tested them). *Claim* is the epsilon that the "
        "library was asked for or computes itself, with its delta.",
        "",
        "| library | mechanism | inputs | claim | epsilon is at least | | what told them apart |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        claim = row.claim
        epsilon = f"{claim['epsilon']:.3g}" + (f", delta {claim['delta']:g}" if claim["delta"] else "")
        bound = f"{row.bound:.2f}" if math.isfinite(row.bound) else "no bound"
        lines.append(
            f"| {claim['library']} {claim['version']} | {claim['mechanism']} | {claim['inputs']} | {epsilon} "
            f"| {bound} | {row.verdict} | {row.event} |"
        )
    first = rows[0].claim
    lines += [
        "",
        f"{rows[0].trials:,} outputs for each input, unseeded. "
        f"Peers: Python {first['python']}, numpy {first['numpy']}. "
        f"Search: Python {platform.python_version()}, numpy {np.__version__}. Command: `{command}`.",
        "",
        "Not in the table: local hashing (its outputs need the hash function to be read), and mechanisms that do not "
        "run with these versions of their requirements.",
        "",
    ]
    return "\n".join(lines)


def cases(peers: Path) -> list[str]:
    """The names of all cases."""
    listed: list[str] = json.loads(subprocess.check_output([str(peers), str(SAMPLING), "cases"], text=True))
    return listed


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="an interpreter that has the peers")
    parser.add_argument("--trials", type=int, default=20_000, help="outputs for each of the two inputs")
    parser.add_argument("--case", action="append", help="only this case; may be given several times")
    parser.add_argument("--page", type=Path, help="write the page here")
    options = parser.parse_args(None if arguments is None else list(arguments))
    chosen = options.case or cases(options.peers)
    rows = []
    for case in chosen:
        row = audit_case(options.peers, case, options.trials, (1 - CONFIDENCE) / len(chosen))
        rows.append(row)
        print(f"{case:24} claim {row.claim['epsilon']:.3g}  at least {row.bound:6.2f}  {row.verdict}  ({row.event})")
    if options.page:
        command = f"python benchmarks/audit_peers.py --peers F/bin/python --trials {options.trials}"
        options.page.write_text(page(rows, command), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
