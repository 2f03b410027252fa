"""Two of everything, of unequal sizes: rounds of a study, a survey, a series, nodes; and those who answer."""

import random
from datetime import datetime, timezone

import drafts
import numpy as np
import pandas as pd
import pytest
from exact_coins import SeededCoins

from ldp_aggregator.store import StoredToken, Submission
from ldp_aggregator.trainers import PrivacyWarning
from ldp_aggregator.trainers.federation import node_statistics
from ldp_client.answering import perturb
from ldp_client.draw import draw_window
from ldp_protocols import decode_upload, encode_upload

AT = datetime(2020, 1, 14, tzinfo=timezone.utc)
"""In the second window of the series."""
LABEL = {"name": "rain", "classes": ["heavy", "light", "none"]}
SKY = drafts.text("sky", "clouds", "blue", missing=True)
WIND, HOURS = drafts.number("wind", high=120, bins=3), drafts.number("hours", high=24, missing=True)
STUDY = {"label": LABEL, "study": "weather", "privacy": {"epsilon": 4.0}}
DRAFTS = {
    "first": drafts.draft(SKY, WIND, HOURS, **STUDY, title="First"),
    "second": drafts.draft(SKY, WIND, HOURS, **STUDY, title="Second"),
    "survey": drafts.draft(
        SKY, WIND, HOURS, label=None, pairs=[["sky", "wind"]], privacy={"epsilon": 6, "answers": "all"}, title="Survey"
    ),
    "series": drafts.draft(
        SKY,
        title="Series",
        privacy={"epsilon": 4.0},
        windows={"from": "2020-01-01T00:00:00Z", "length": "P7D", "count": 3},
    ),
    "nodes": drafts.draft(WIND, HOURS, title="Nodes", label={"name": "ill", "classes": ["yes", "no"]}),
}
ANSWERS = (("first", 700, None), ("second", 400, 300), ("survey", 500, None), ("series", 900, None))
"""Devices, and the batch that a relay vouches for."""


def people(count, seed):
    """Records and labels, of unequal shares."""
    draws = random.Random(seed)
    for _ in range(count):
        label = draws.choices(LABEL["classes"], (5, 3, 2))[0]
        wet = label != "none"
        record = {"wind": draws.uniform(0, 40 if wet else 120), "hours": draws.gauss(6 if wet else 15, 3)}
        if draws.random() < 0.9:
            record["sky"] = draws.choices(("clouds", "blue"), (4 if wet else 1, 2))[0]
        yield record, label


async def shared(store, campaign):
    """Three nodes of unlike sizes: one replaced its share, one sent further rows, too, and withdrew all."""
    for place, (node, rows, more) in enumerate(
        (("north", 900, []), ("south", 80, [False]), ("west", 300, [True, False]))
    ):
        await store.add_token(StoredToken(node, "node", node.encode() * 8, datetime.now(timezone.utc)))
        for number, other_rows in enumerate([False, *more]):
            rng = np.random.default_rng(10 * place + number)
            frame = pd.DataFrame({"wind": rng.uniform(0, 60, rows), "hours": rng.normal(9, 2, rows)})
            labels = pd.Series(rng.choice(["yes", "no"], rows, p=[0.2, 0.8]))
            with pytest.warns(PrivacyWarning):
                share = node_statistics(campaign, frame, labels, other_rows=other_rows, random_state=number)
            assert await store.put_share(campaign.id, node, share) is None
    assert await store.withdraw_share(campaign.id, "west") is None


async def answered(store, campaign, count, batch=None):
    """So many devices; in a series those of two windows, half of them in the first."""
    uploads = []
    for number, (record, label) in enumerate(people(count, count)):
        secret, classes = random.Random(count * number).randbytes(32), campaign.label.names
        window = draw_window(campaign, secret) if campaign.windows else 1
        if window == 1 or (window == 0 and number % 2):
            known = classes[label == "none"] if len(classes) == 2 else label if campaign.label else None
            reports = perturb(campaign, record, known, secret=secret, coins=SeededCoins(number))
            uploads.append(decode_upload(encode_upload(reports, campaign), campaign))
    await store.count([Submission(campaign, upload, batch=batch) for upload in uploads])
