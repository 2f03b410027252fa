"""Accepted reports kept as Parquet files, and recounted from them: on this machine or on an engine that exists.

:mod:`~ldp_aggregator.archive.files` is the format, :mod:`~ldp_aggregator.archive.places` where files lie,
:mod:`~ldp_aggregator.archive.keeping` what a server writes, :mod:`~ldp_aggregator.archive.recount` counts it again.
"""
