"""Trials over the cores of this machine, kept on disk so that an interrupted experiment goes on where it was.

What comes out does not depend on how many cores there are.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from tqdm import tqdm

from simulations.tables.frames import Table, TableError

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Rows = list[dict[str, Any]]
Trial = Callable[[int], Rows]

_trial: Trial


@dataclass(frozen=True)
class Journal:
    """The trials of one experiment, a JSON object on a line each, in a file that may hold others, too; ``path`` None
    keeps nothing.
    """

    path: Path | None
    experiment: str

    def finished(self) -> dict[int, Rows]:
        """The rows of this experiment's finished trials, by seed. A last line that was cut short is ignored."""
        if self.path is None or not self.path.exists():
            return {}
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise TableError(f"{self.path}: not a journal of trials ({error})") from None
        found = {}
        for line in lines:
            with suppress(ValueError):
                entry = json.loads(line)
                if isinstance(entry, dict) and entry.get("experiment") == self.experiment:
                    found[entry["seed"]] = entry["rows"]
        return found

    def add(self, seed: int, rows: Rows) -> None:
        """Keep a finished trial."""
        if self.path is None:
            return
        entry = json.dumps({"experiment": self.experiment, "seed": seed, "rows": rows})
        # The line starts with its own line break: a predecessor that was cut short stays the only one lost.
        with self.path.open("a", encoding="utf-8") as file:
            file.write("\n" + entry + "\n")


def experiment_id(people: Table, *described: Any) -> str:
    """Name the experiment that a trial belongs to: the same people, the same of all that is ``described`` (as JSON)."""
    hashes = (pd.util.hash_pandas_object(part, index=False) for part in (people.frame, people.labels))
    content = b"".join(part.to_numpy().tobytes() for part in hashes)
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode() + content).hexdigest()[:16]


def run_trials(
    trial: Trial, seeds: Sequence[int], journal: Journal, *, workers: int | None = None, description: str = "trials"
) -> Rows:
    """The rows of ``trial(seed)`` for every seed, in the order of the seeds; those in the journal are not run again.

    ``trial`` must be picklable: a function of a module, or a partial of one.
    """
    kept = journal.finished()
    done = {seed: kept[seed] for seed in seeds if seed in kept}
    missing = [seed for seed in seeds if seed not in done]
    # ``disable`` None: where standard error is no terminal.
    with tqdm(
        total=len(seeds), initial=len(done), desc=description, unit=" trials", disable=None, file=sys.stderr
    ) as bar:
        for seed, rows in _finish(trial, missing, workers):
            journal.add(seed, rows)
            done[seed] = rows
            bar.update()
    return [row for seed in seeds for row in done[seed]]


def _finish(trial: Trial, seeds: Sequence[int], workers: int | None) -> Iterator[tuple[int, Rows]]:
    workers = min(workers or os.cpu_count() or 1, len(seeds))
    if workers <= 1:
        yield from ((seed, trial(seed)) for seed in seeds)
        return
    for name in _THREADS:  # One process a core: its libraries need no threads of their own.
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(trial,)) as pool:
        running = {pool.submit(_run, seed): seed for seed in seeds}
        for future in as_completed(running):
            yield running[future], future.result()


def _start(trial: Trial) -> None:
    """The trial carries a table: it travels once to each process, not once with each seed."""
    global _trial
    _trial = trial


def _run(seed: int) -> Rows:
    return _trial(seed)
