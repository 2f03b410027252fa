"""Recount an archive on Spark: the parts are picklable and share no id, so any engine that maps and adds will do.

pip install ./deploy/client-wheel '.[archive]' pyspark
python recount_on_spark.py ARCHIVE CAMPAIGN_ID
"""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

from ldp_aggregator.archive.recount import SlotWork, add_results, recount


def on_spark(document: bytes, work: list[SlotWork]) -> bytes:
    """The parts on Spark's executors, their results added up here."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Else workers are whatever python3 is first on the path.
    spark = SparkSession.builder.appName("recount").getOrCreate()
    parts = spark.sparkContext.parallelize(work, max(1, len(work)))
    return add_results(document, parts.map(SlotWork.run).collect())


if __name__ == "__main__":
    found = recount(sys.argv[1], sys.argv[2], on_spark)
    print(f"{found.reports} reports count, {found.duplicates} repeat one, {len(found.conflicts)} ids are in conflict")
