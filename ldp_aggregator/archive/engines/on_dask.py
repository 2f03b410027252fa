"""Dask: its scheduler of this machine, or the cluster of whatever ``dask.distributed.Client`` is connected."""

from __future__ import annotations

from collections.abc import Sequence

import dask

from ldp_aggregator.archive.reading import SlotWork
from ldp_aggregator.archive.slots import add_results


def run(document: bytes, work: Sequence[SlotWork]) -> bytes:
    """Run the parts where Dask runs things now; its configuration and client say where."""
    results = dask.compute(*[dask.delayed(SlotWork.run)(part) for part in work])
    return add_results(document, results)
