"""Looks for inputs that break a target's promise, with Atheris, which keeps what reaches new code.

    python tests/fuzz/fuzz.py [TARGET ...] [--seconds 60] [--inputs N] [--seed N]

Begins with the target's seeds and the kept corpus. An input that breaks a promise is written to build/fuzz/TARGET-...,
and what reached new code to build/fuzz/TARGET. Ends with 1 where a promise was broken.
"""

import argparse
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
FOUND = HERE.parents[1] / "build" / "fuzz"
BYTES_ALONE = 0.25
"""The share of inputs that Atheris changes without regard to their form."""
sys.path += [str(HERE), str(HERE.parent / "support")]

with atheris.instrument_imports(include=["ldp_protocols", "ldp_client", "ldp_aggregator"]):
    from fuzz_targets import TARGETS, Target, bounded
    from mutations import changed


def fuzz(target: Target, arguments: list[str]) -> None:
    """Fuzz one target in this process, which ends with it."""

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        return atheris.Mutate(data, most) if rng.random() < BYTES_ALONE else changed(data, rng)[:most]

    def check(data: bytes) -> None:
        bounded(target, data)

    target.check(target.seeds()[0])  # What it takes to begin is done before anything is counted.
    atheris.Setup([sys.argv[0], *arguments], check, custom_mutator=mutated)
    atheris.Fuzz()


def run(name: str, options: argparse.Namespace) -> bool:
    """Fuzz one target in a process of its own; False where it broke its promise."""
    reached, kept = FOUND / name, CORPUS / name
    shutil.rmtree(reached, ignore_errors=True)
    reached.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        seeds = Path(folder) / "seeds"
        seeds.mkdir()
        for number, seed in enumerate(TARGETS[name].seeds()):
            (seeds / str(number)).write_bytes(seed)
        bounds = [f"-runs={options.inputs}", f"-max_total_time={options.seconds}", f"-seed={options.seed}"]
        bounds += [f"-max_len={TARGETS[name].longest}", "-timeout=60", "-rss_limit_mb=1024", "-print_final_stats=1"]
        begun = time.monotonic()
        done = subprocess.run(
            [sys.executable, __file__, name, "--alone", f"-artifact_prefix={reached}-", *bounds, reached, seeds, kept],
            env=os.environ | {"TMPDIR": folder},
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            check=False,
        )
    inputs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    print(
        f"{name:9} {inputs[1] if inputs else 'no':>8} inputs in {time.monotonic() - begun:3.0f} seconds, "
        f"{len(list(reached.iterdir()))} reached new code: {'BROKEN' if done.returncode else 'kept its promise'}",
        flush=True,
    )
    if done.returncode:
        print("\n".join(line for line in done.stderr.splitlines() if not line.startswith("INFO")), flush=True)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", default=list(TARGETS), metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: %(default)s)")
    parser.add_argument("--inputs", type=int, default=-1, help="the most for each target")
    parser.add_argument("--seed", type=int, default=1 + secrets.randbelow(2**31 - 1), help="that of the run to repeat")
    parser.add_argument("--alone", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        fuzz(TARGETS[options.targets[0]], options.alone)
    print(f"seed {options.seed}", flush=True)
    broken = [name for name in options.targets if not run(name, options)]
    if broken:
        print(f"BROKEN: {', '.join(broken)}; the inputs are in build/fuzz")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
