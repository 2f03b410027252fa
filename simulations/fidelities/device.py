"""Fidelity ``device``: the client's own ``perturb``, one device at a time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from ldp_aggregator.counting.tally import Tally
from ldp_client.answering import perturb
from protocols import Campaign
from protocols.wire import encode_upload
from simulations.fidelities.coins import SeededCoins
from simulations.tables.frames import python_values, records


def simulate_device(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: Iterable[object],
    rng: np.random.Generator,
    devices: int | None = None,
) -> Tally:
    """The tally of every device's real upload, decoded and counted as the server does."""
    coins = SeededCoins(int(rng.integers(0, 2**63)))
    classes = pd.Series(labels)
    if devices is not None:
        owners = rng.integers(0, len(frame), size=devices)
        frame, classes = frame.iloc[owners], classes.iloc[owners]
    people = zip(records(frame), python_values(classes), strict=True)
    uploads = (encode_upload(perturb(campaign, record, label, coins=coins)) for record, label in people)
    return Tally.of_uploads(campaign, uploads)
