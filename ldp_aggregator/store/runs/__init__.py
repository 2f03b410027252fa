"""Report ids in sorted runs: a log-structured set whose cost per report grows as the logarithm of what it holds.

What was inserted lately is in memory, sorted, and in the database that has the counts, where it is durable
(:mod:`~ldp_aggregator.store.runs.recent`). From time to time it is written as a *run*, an immutable sorted file
(:mod:`~ldp_aggregator.store.runs.files`), and runs of about the same size are merged into a larger one
(:mod:`~ldp_aggregator.store.runs.merging`), as in O'Neil et al., "The log-structured merge-tree" (1996). A filter in
front of each run (:mod:`~ldp_aggregator.store.runs.filters`) says of nearly every new id that it is not in there, so
that a commit reads no file.
"""
