"""A population answers a campaign: from a table to the tally that its devices would leave, at a chosen fidelity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from ldp_aggregator.counting.tally import Tally
from protocols import Campaign
from simulations.fidelities.counts import simulate_counts
from simulations.fidelities.device import simulate_device
from simulations.fidelities.items import Columns
from simulations.fidelities.vector import simulate_vector

FIDELITIES: Final = ("device", "vector", "counts")


def simulate(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: Iterable[object],
    rng: np.random.Generator | int | None = None,
    *,
    fidelity: str = "vector",
    devices: int | None = None,
) -> Tally:
    """The tally after a population of devices has answered ``campaign``.

    Parameters
    ----------
    campaign
        A compiled campaign.
    frame
        One row per person, a column per feature; a column that is absent is missing on every device.
    labels
        One class per row. Raises RecordError, naming the row, for one that the campaign does not declare.
    rng
        A numpy Generator or a seed; the same seed gives the same tally.
    fidelity
        All three draw from the same distribution. ``device`` runs the client's own code, one device at a time;
        ``vector`` does the same with numpy; ``counts`` draws the tally itself, so that a billion devices cost no more
        than a thousand.
    devices
        None makes every row a device of its own. A number takes that many devices and draws the owner of each among the
        rows, independently.
    """
    if fidelity not in FIDELITIES:
        raise ValueError(f"fidelity must be one of {', '.join(FIDELITIES)}, not {fidelity!r}")
    generator = np.random.default_rng(rng)
    if fidelity == "device":
        return simulate_device(campaign, frame, labels, generator, devices)
    simulator = simulate_vector if fidelity == "vector" else simulate_counts
    return simulator(Columns.of(campaign, frame, labels), generator, devices)
