"""Trials over the cores of this machine; what comes out does not depend on how many cores there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, Final

from tqdm import tqdm

from simulations.studies.journal import Journal

_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Trial = Callable[[int], list[dict[str, Any]]]

_trial: Trial | None = None


def run_trials(
    trial: Trial,
    seeds: Sequence[int],
    journal: Journal,
    *,
    workers: int | None = None,
    description: str = "trials",
) -> list[dict[str, Any]]:
    """The rows of ``trial(seed)`` for every seed, in the order of the seeds; those in the journal are not run again.

    ``trial`` must be picklable: a function of a module, or a partial of one.
    """
    done = {seed: rows for seed, rows in journal.finished().items() if seed in set(seeds)}
    missing = [seed for seed in seeds if seed not in done]
    with tqdm(
        total=len(seeds),
        initial=len(done),
        desc=description,
        unit=" trials",
        disable=None,  # Where standard error is no terminal.
        file=sys.stderr,
    ) as bar:
        for seed, rows in _finish(trial, missing, workers):
            journal.add(seed, rows)
            done[seed] = rows
            bar.update()
    return [row for seed in seeds for row in done[seed]]


def _finish(trial: Trial, seeds: Sequence[int], workers: int | None) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    workers = min(workers or os.cpu_count() or 1, len(seeds))
    if workers <= 1:
        yield from ((seed, trial(seed)) for seed in seeds)
        return
    for name in _THREADS:  # One process a core: its libraries need no threads of their own.
        os.environ.setdefault(name, "1")
    with ProcessPoolExecutor(max_workers=workers, initializer=_start, initargs=(trial,)) as pool:
        running = {pool.submit(_run, seed): seed for seed in seeds}
        for future in as_completed(running):
            yield running[future], future.result()


def _start(trial: Trial) -> None:
    """The trial carries a table: it travels once to each process, not once with each seed."""
    global _trial
    _trial = trial


def _run(seed: int) -> list[dict[str, Any]]:
    if _trial is None:
        raise AssertionError("a worker is started with its trial")
    return _trial(seed)
