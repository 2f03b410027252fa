"""All that the aggregator knows of mechanisms, one file each: payloads on arrays, laws, bounds, lies, simulation."""

from ldp_aggregator.mechanisms.registry import analysis_of as analysis_of
