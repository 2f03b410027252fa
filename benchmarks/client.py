"""What the client costs: import, one report, bytes on the wire; each beside a peer or a bound from the same run.

    python benchmarks/client.py [--json] [--rounds N]

Import: fresh interpreters, in turn bare, with ``import ldp_client``, with its Device in hand (names are loaded when
they are first used), and with a first contribution made: a file opened, a campaign read and verified, consent given, an
answer drawn, perturbed and on disk, everything but the network. The ratio to the bare interpreter is what compares
between machines. Report: perturbing and
encoding, beside the least that any implementation pays here: as many random bytes as the mechanism draws. Bytes: the
upload of one report, beside the entropy of its payload and the 16-byte id, below which no encoding can go on average.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

from ldp_client import perturb
from ldp_protocols import SYSTEM_COINS, Campaign, Report, encode_upload
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import SECRET_BYTES

DOMAIN = 128
EPSILON = 1.0
_PROBE = """
import resource, sys, time
started = time.perf_counter()
{statement}
elapsed = time.perf_counter() - started
try:
    with open("/proc/self/status") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
except OSError:
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(elapsed, resident)
"""


_CONTRIBUTE = """
import os
from ldp_client import Device
device = Device({folder!r} + "/" + str(os.getpid()), max_total_epsilon=1)
campaign = device.campaign("https://collect.example.org", {id!r}, max_epsilon=1)
campaign.load({document!r})
campaign.grant()
campaign.contribute({{"f": "7"}}, "a")
"""


def import_cost(rounds: int) -> dict[str, float]:
    """Medians over ``rounds`` interpreters of every kind, after one that leaves the bytecode where an installation has
    it.
    """
    campaign = make_campaign("de")
    with tempfile.TemporaryDirectory() as folder:
        statements = {
            "bare": "pass",
            "import": "import ldp_client",
            "first_use": "from ldp_client import Device",
            "first_contribution": _CONTRIBUTE.format(folder=folder, id=campaign.id, document=campaign.document),
        }
        for statement in statements.values():
            _probe(statement)
        runs: dict[str, list[tuple[float, float, float]]] = {name: [] for name in statements}
        for _ in range(rounds):
            for name, statement in statements.items():
                runs[name].append(_probe(statement))
    whole, statement_ms, resident = (
        {name: statistics.median(run[column] for run in kind) for name, kind in runs.items()} for column in range(3)
    )
    costs = {"bare_interpreter_ms": 1e3 * whole["bare"]}
    for name in [name for name in statements if name != "bare"]:
        costs[f"{name}_ms"] = 1e3 * statement_ms[name]
        costs[f"{name}_ratio_to_bare_interpreter"] = whole[name] / whole["bare"]
        costs[f"{name}_added_mib"] = (resident[name] - resident["bare"]) / 1024
    return costs


def _probe(statement: str) -> tuple[float, float, float]:
    """Seconds of the whole interpreter, seconds of the statement, and resident KiB of the interpreter."""
    started = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", _PROBE.format(statement=statement)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    whole = time.perf_counter() - started
    elapsed, resident = map(float, ran.stdout.split())
    return whole, elapsed, resident


def report_cost(mechanism: str, rounds: int) -> dict[str, float]:
    """Medians of perturbing and encoding one report with a domain of :data:`DOMAIN` cells."""
    campaign = make_campaign(mechanism)
    secret = os.urandom(SECRET_BYTES)
    record = {"f": "7"}
    question = campaign.questions[0]
    item = 7 * 2
    identifier = os.urandom(ID_BYTES)

    upload = encode_upload(perturb(campaign, record, "a", secret=secret), campaign)
    words = DOMAIN if mechanism == "oue" else 1
    entropy = payload_entropy(mechanism, campaign)
    return {
        "perturb_us": median_us(lambda: question.perturb(item, SYSTEM_COINS), rounds),
        "perturb_and_encode_us": median_us(
            lambda: encode_upload([Report(0, identifier, question.perturb(item, SYSTEM_COINS))], campaign), rounds
        ),
        "record_to_upload_us": median_us(
            lambda: encode_upload(perturb(campaign, record, "a", secret=secret), campaign), rounds
        ),
        "least_randomness_us": median_us(lambda: os.urandom(8 * words), rounds),
        "upload_bytes": len(upload),
        "payload_bytes": question.mechanism.width,
        "payload_entropy_bytes": entropy / 8,
        "bound_bytes": ID_BYTES + entropy / 8,
    }


def make_campaign(mechanism: str) -> Campaign:
    """One question: 64 values, 2 classes."""
    return Campaign.compile(
        {
            "version": 1,
            "title": "benchmark",
            "label": {"name": "l", "classes": ["a", "b"], "weight": 0},
            "features": [
                {"name": "f", "kind": "categorical", "missing": False, "values": [str(n) for n in range(DOMAIN // 2)]}
            ],
            "privacy": {"epsilon": EPSILON, "discrete": mechanism},
        }
    )


def payload_entropy(mechanism: str, campaign: Campaign) -> float:
    """Bits of one payload, for uniformly distributed records."""
    chosen: Any = campaign.questions[0].mechanism
    if mechanism == "de":
        return math.log2(DOMAIN)
    # Given the record the bits are independent; the record itself adds at most what a report tells about it.
    p, q = float(chosen.p), float(chosen.q)
    return _bit_entropy(p) + (DOMAIN - 1) * _bit_entropy(q)


def _bit_entropy(probability: float) -> float:
    return -sum(share * math.log2(share) for share in (probability, 1 - probability))


def median_us(call: Callable[[], object], rounds: int) -> float:
    """Median of single calls, in microseconds."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter_ns()
        call()
        taken.append(time.perf_counter_ns() - started)
    return statistics.median(taken) / 1e3


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object")
    parser.add_argument("--rounds", type=int, default=31, help="interpreters to start (default: %(default)s)")
    options = parser.parse_args(arguments)
    results = {
        "import": import_cost(options.rounds),
        **{mechanism: report_cost(mechanism, 200 * options.rounds) for mechanism in ("de", "oue")},
    }
    if options.json:
        print(json.dumps(results))
        return 0
    for name, figures in results.items():
        print(name)
        for figure, value in figures.items():
            print(f"  {figure:36} {value:10.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
