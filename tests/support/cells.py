"""Campaigns in which every report has a cell of its own, for the tests of store, server and command line.

A 2 in any cell proves that something was counted twice, and a 0 that something acknowledged was lost.
"""

import hashlib
from datetime import datetime, timedelta, timezone

import pytest
from drafts import draft, text

from ldp_aggregator.store import Submission
from ldp_protocols import Campaign, Report, decode_upload, encode_upload


def cell_campaign(cells=64, **changes):
    """One ``de`` question about a feature with ``cells / 2`` values and two classes; the label is not asked alone."""
    label = {"name": "label", "classes": ["yes", "no"], "weight": 0}
    asked = {"title": "Cells", "label": label, "privacy": {"epsilon": 1.0, "discrete": "de"}, **changes}
    return Campaign.compile(draft(text("cell", *(f"v{value}" for value in range(cells // 2))), **asked))


def cell_report(campaign, number, cell=None):
    """Report ``number``: an id of its own and, unless told otherwise, the cell of that number."""
    width = campaign.questions[0].mechanism.width
    payload = (number if cell is None else cell).to_bytes(width, "little")
    return Report(0, hashlib.sha256(number.to_bytes(8, "big")).digest()[:16], payload)


def reports_of(campaign, members):
    """Return reports, each of which is given itself, by its number, or by its number and its cell."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in members]
    return [one if isinstance(one, Report) else cell_report(campaign, one, cell) for one, cell in pairs]


def submission(campaign, members):
    return Submission(campaign, decode_upload(encode_upload(reports_of(campaign, members), campaign), campaign))


async def publish(store, cells=64, *, max_reports=None, federated=False, uploads_need=None, **changes):
    """A campaign that the store has."""
    campaign = cell_campaign(cells, **changes)
    await store.create_campaign(campaign, max_reports=max_reports, federated=federated, uploads_need=uploads_need)
    return campaign


async def count(store, campaign, members):
    """The outcome of one upload."""
    [outcome] = await store.count([submission(campaign, members)])
    return outcome


async def cells_of(store, campaign, cells=None):
    """The first counts of the tally."""
    counted = (await store.tally(campaign.id)).counts[0].tolist()
    return counted[:cells]


class SteppedClock:
    """A clock that stands until it is stepped."""

    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=timezone.utc)

    def __call__(self):
        return self.now

    def step(self, seconds):
        self.now += timedelta(seconds=seconds)

    def after(self, seconds):
        """The moment so many seconds from now, as a draft has it."""
        return (self.now + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


@pytest.fixture
def clock():
    return SteppedClock()
