"""Engines that run the parts of a recount: the processes of this machine, Dask, Apache Beam.

Each takes a campaign's document and the parts and returns their sum; what is counted is decided in
:mod:`ldp_aggregator.archive.slots` alone, so all of them return the same bytes.
"""
