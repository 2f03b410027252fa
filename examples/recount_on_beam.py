"""Recount an archive on Apache Beam: its own runner, or the one that options name (Dataflow, Flink, Spark).

pip install ./deploy/client-wheel '.[archive]' apache-beam
python recount_on_beam.py ARCHIVE CAMPAIGN_ID [--runner=FlinkRunner ...]
"""

from __future__ import annotations

import secrets
import sys
from functools import partial

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from ldp_aggregator.archive.locations import open_place
from ldp_aggregator.archive.recount import SlotWork, add_results, recount


def on_beam(document: bytes, work: list[SlotWork]) -> bytes:
    """The parts on a runner's workers. It hands nothing back: the result is left in the archive, and taken out."""
    archive, name = open_place(sys.argv[1]), f"results/{secrets.token_hex(8)}"
    with beam.Pipeline(options=PipelineOptions(sys.argv[3:])) as pipeline:
        (
            pipeline
            | beam.Create(work)
            | beam.Reshuffle()
            | beam.Map(SlotWork.run)
            | beam.CombineGlobally(partial(add_results, document))
            | beam.Map(partial(archive.put, name))
        )
    result = archive.read(name)
    archive.remove(name)
    return result


if __name__ == "__main__":
    found = recount(sys.argv[1], sys.argv[2], on_beam)
    print(f"{found.reports} reports count, {found.duplicates} repeat one, {len(found.conflicts)} ids are in conflict")
