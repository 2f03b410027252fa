"""Apache Beam: the runner that the pipeline options name (its own by default; Dataflow, Flink, Spark)."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from ldp_aggregator.archive.places import open_place
from ldp_aggregator.archive.reading import SlotWork
from ldp_aggregator.archive.slots import add_results


class RecountSlots(beam.CombineFn):
    """Combines parts (:class:`SlotWork`) into the result of :func:`ldp_aggregator.archive.slots.add_results`."""

    def __init__(self, document: bytes) -> None:
        super().__init__()
        self._document = document

    def create_accumulator(self) -> bytes:
        return add_results(self._document, ())

    def add_input(self, accumulator: bytes, part: SlotWork) -> bytes:
        return add_results(self._document, (accumulator, part.run()))

    def merge_accumulators(self, accumulators: Iterable[bytes]) -> bytes:
        return add_results(self._document, accumulators)

    def extract_output(self, accumulator: bytes) -> bytes:
        return accumulator


class _Put(beam.DoFn):
    """Leaves the result where the caller reads it: a runner hands nothing back."""

    def __init__(self, url: str, name: str) -> None:
        super().__init__()
        self._url, self._name = url, name

    def process(self, result: bytes) -> None:
        open_place(self._url).put(self._name, result)


def run(document: bytes, work: Sequence[SlotWork], options: Sequence[str] = ()) -> bytes:
    """Run the parts on a Beam runner; ``options`` are its command line (``--runner=FlinkRunner`` and so on).

    The workers read the archive, and write one result into its folder ``results``, from where it is taken.
    """
    if not work:
        return add_results(document, ())
    url, name = work[0].url, f"results/{secrets.token_hex(8)}"
    with beam.Pipeline(options=PipelineOptions(list(options))) as pipeline:
        (
            pipeline
            | beam.Create(list(work))
            | beam.Reshuffle()
            | beam.CombineGlobally(RecountSlots(document))
            | beam.ParDo(_Put(url, name))
        )
    place = open_place(url)
    result = place.read(name)
    place.remove(name)
    return result
