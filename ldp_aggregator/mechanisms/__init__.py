"""All that the aggregator knows of mechanisms, one file each: payloads on arrays, laws, bounds, lies, simulation."""

from ldp_aggregator.mechanisms.registry import facts_of as facts_of
