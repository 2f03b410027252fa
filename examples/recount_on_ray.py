"""Recount an archive on Ray: the parts are picklable and share no id, so any engine that maps and adds will do.

pip install ./deploy/client-wheel '.[archive]' ray
python recount_on_ray.py ARCHIVE CAMPAIGN_ID
"""

from __future__ import annotations

import sys

import ray

from ldp_aggregator.archive.recount import SlotWork, add_results, recount


def on_ray(document: bytes, work: list[SlotWork]) -> bytes:
    """The parts on Ray's workers, their results added up here."""
    run = ray.remote(SlotWork.run)
    return add_results(document, ray.get([run.remote(part) for part in work]))


if __name__ == "__main__":
    found = recount(sys.argv[1], sys.argv[2], on_ray)
    print(f"{found.reports} reports count, {found.duplicates} repeat one, {len(found.conflicts)} ids are in conflict")
