"""Keeps a storage of a device as this state of the code writes it, so that every later one has to read it.

python tests/support/keep_storage.py tests/storages/NAME

A device that has agreed and answered, and has not sent; beside the file stands the cache, with the campaign's document.
"""

import json
import sys
from pathlib import Path

from ldp_client import Device

VECTORS = Path(__file__).resolve().parents[2] / "protocols" / "vectors" / "documents.json"
URL = "https://collect.example.org"
AT = 1_800_000_000.0
RECORD = {"colour": "green", "größe": 0.25, "hours": 41.5}


class Clock:
    """Stands still."""

    def time(self):
        return AT

    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        raise AssertionError(seconds)


def document():
    """The campaign's bytes and its id."""
    cases = json.loads(VECTORS.read_text(encoding="utf-8"))["accepted"]
    (case,) = (case for case in cases if case["name"] == "de-onebit")
    return case["document"].encode(), case["id"]


def keep(folder):
    """Write it into ``folder``."""
    folder.mkdir(parents=True)
    text, campaign_id = document()
    device = Device(folder / "device.db", max_total_epsilon=4, clock=Clock())
    part = device.campaign(URL, campaign_id, max_epsilon=2)
    part.load(text)
    part.grant()
    part.contribute(RECORD, "yes")


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
