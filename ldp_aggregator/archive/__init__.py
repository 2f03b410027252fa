"""Accepted reports kept as Parquet files, and recounted from them: on this machine or on an engine that exists.

:mod:`~ldp_aggregator.archive.locations` is the format and where files lie, :mod:`~ldp_aggregator.archive.writer` what a
server writes, :mod:`~ldp_aggregator.archive.recount` counts it again.
"""
