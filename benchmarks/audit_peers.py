"""The audit's search, pointed at other libraries: how much do their mechanisms tell, each against its own claim?

    python -m venv F; F/bin/pip install -r benchmarks/peers/requirements.txt
    python benchmarks/audit_peers.py --peers F/bin/python [--trials 20000] [--page docs/reference/audit-of-others.md]

The peers run in an environment of their own (``benchmarks/peers/sampling.py``) and hand over the bytes of what they
give out. Half of the trials choose events, the other half tests them; a bound is Clopper-Pearson and holds for all rows
of the table together with the stated confidence. A row is about one pair of inputs of one setting of one version.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
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

from ldp_aggregator.audit.asking.black_box import Person
from ldp_aggregator.audit.asking.observations import Seen, read_tables
from ldp_aggregator.audit.searching.comparisons import Chosen, Claims, search
from ldp_aggregator.audit.searching.events import WHOLE, Event

SAMPLING = Path(__file__).with_name("peers") / "sampling.py"
CONFIDENCE = 0.99
"""That no bound of the page is wrong."""

USUAL_INPUTS = "values 0 and 1 of 8"
UPSTREAM = (
    "The five rows above their claim: not reported yet. No report of others was found on 27 November 2026. "
    "diffprivlib's class counts add up to the number of rows, which one row less changes. A fault of pure-ldp's "
    "UEClient, [issue 11](https://github.com/Samuel-Maddock/pure-LDP/issues/11), was repaired in 1.2.0.",
    "",
    "Not in the table: local hashing, and mechanisms that do not run with these versions of their requirements.",
)
"""What was reported of the rows, by hand: whoever writes the page again looks it up again."""

ID_BYTES = 16
INPUTS = (Person({"input": "the one"}, "the one"), Person({"input": "the other"}, "the other"))


@dataclass(frozen=True)
class Row:
    """One mechanism: what it claims, and the most that the search could prove."""

    case: str
    claim: dict[str, Any]
    trials: int
    bound: float
    event: str

    @property
    def is_above(self) -> bool:
        """True where the claim does not cover these inputs."""
        return bool(self.bound > self.claim["epsilon"])


def bound_with_delta(event: Event, delta: float, alpha: float) -> float:
    """A lower bound of epsilon in P(event | one) <= exp(epsilon) P(event | other) + delta, wrong with at most alpha."""
    low = float(beta.ppf(alpha / 2, event.ones, event.one_trials - event.ones + 1)) if event.ones else 0.0
    unseen = event.other_trials - event.others
    high = float(beta.ppf(1 - alpha / 2, event.others + 1, unseen)) if unseen else 1.0
    return math.log((low - delta) / high) if low > delta else -math.inf


def seen_of(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> Seen:
    """Outputs as the audit sees them: each the payload of an upload, under an id that tells nothing."""
    answers = [
        (msgpack.packb([1, [[0, os.urandom(ID_BYTES), row.tobytes()]]], use_bin_type=True),)
        for rows in (one, other)
        for row in rows
    ]
    trials = len(one)
    person = np.repeat([0, 1], trials)
    process = np.tile(np.arange(trials) * 2 // trials, 2)
    return Seen(2, person, process, read_tables(answers))


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
            seen = seen_of(arrays["one"], arrays["other"])
    chosen = Chosen()
    search(INPUTS, seen, Claims(claim["epsilon"], lambda _: claim["epsilon"]), chosen)
    events = chosen.of(WHOLE)
    best, told = -math.inf, "nothing"
    for event in events:
        bound = bound_with_delta(event, claim["delta"], alpha / len(events))
        if bound > best:
            best = bound
            told = f"{event.name}: {event.ones} of {event.one_trials} against {event.others} of {event.other_trials}"
    return Row(case, claim, trials, best, told)


def page(rows: Sequence[Row], command: str, measured: str) -> str:
    """The page, in Markdown; ``measured`` is its day."""
    tested, first = rows[0].trials // 2, rows[0].claim
    lines = [
        "# Audit of other libraries",
        "",
        "The search of `ldp-aggregator audit` looks at bytes only, so that it fits any mechanism. Each row is one "
        "mechanism of one version on one pair of inputs. A bound below the claim proves nothing; a bound above it says "
        "that the claim does not cover this pair as it was sampled here.",
        "",
        f"Measured on {measured} by `{command}` (`F`: an environment with `benchmarks/peers/requirements.txt`, as "
        f"`make peers` makes it): {rows[0].trials:,} outputs for each input, unseeded. Peers: Python "
        f"{first['python']}, numpy {first['numpy']}; search: Python {platform.python_version()}, numpy "
        f"{np.__version__}.",
        "",
        f"All bounds hold together with {CONFIDENCE:.0%} confidence (Clopper-Pearson, Bonferroni). Half of the outputs "
        "chose the events, the other half tested them. *Claim*: the epsilon that the library was asked for or computes "
        f"itself. Inputs are {USUAL_INPUTS} unless the row names others; the last column counts outputs of either "
        f"input, of {tested:,}.",
        "",
        "| mechanism | claim | epsilon is at least | what told them apart |",
        "|---|---|---|---|",
    ]
    for library, listed in itertools.groupby(rows, lambda row: f"{row.claim['library']} {row.claim['version']}"):
        lines.append(f"| **{library}** | | | |")
        for row in listed:
            claim = row.claim
            epsilon = f"{claim['epsilon']:.3g}" + (f", delta {claim['delta']:g}" if claim["delta"] else "")
            bound = f"{row.bound:.2f}" if math.isfinite(row.bound) else "no bound"
            bound = f"**{bound}, above**" if row.is_above else bound
            inputs = "" if claim["inputs"] == USUAL_INPUTS else f"; {claim['inputs']}"
            told = row.event.replace(f" of {tested}", "")
            lines.append(f"| {claim['mechanism']}{inputs} | {epsilon} | {bound} | {told} |")
    lines += ["", "## Reported upstream", "", *UPSTREAM, ""]
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
        place = "above" if row.is_above else "within"
        told = f"at least {row.bound:6.2f}  {place} the claim  ({row.event})"
        print(f"{case:24} claim {row.claim['epsilon']:.3g}  {told}")
    if options.page:
        command = f"python benchmarks/audit_peers.py --peers F/bin/python --trials {options.trials}"
        today = datetime.datetime.now(datetime.UTC).date()
        options.page.write_text(page(rows, command, f"{today.day} {today:%B %Y}"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
