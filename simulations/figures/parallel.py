"""Many seeded runs over the cores, with a progress bar; the result does not depend on how many cores there are."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pandas as pd
from tqdm import tqdm

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_all(
    run_once: Callable[..., list[dict[str, Any]]],
    arguments: Iterable[tuple[Any, ...]],
    *,
    description: str,
    workers: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """The rows of ``run_once(*a)`` for every ``a``, in the order of the arguments."""
    tasks = list(arguments)
    for name in THREAD_VARIABLES:  # One process a core: its libraries need no threads of their own.
        os.environ.setdefault(name, "1")
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(max_workers=workers) as pool:
        found = pool.map(run_once, *zip(*tasks, strict=True))
        bar = tqdm(found, total=len(tasks), desc=description, unit="run", disable=not progress, file=sys.stderr)
        for part in bar:
            rows += part
    return pd.DataFrame(rows)
