"""A population answers a campaign: from a table to the tally that its devices would leave, at a chosen fidelity."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import pandas as pd

from ldp_aggregator.tally import Tally
from protocols import Campaign
from simulations.device import simulate_device
from simulations.items import Columns
from simulations.vector import simulate_vector

FIDELITIES: Final = ("device", "vector")


def simulate(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: Iterable[object],
    rng: np.random.Generator | int | None = None,
    *,
    fidelity: str = "vector",
) -> Tally:
    """The tally after every row of ``frame`` has answered ``campaign`` as a device of its own.

    Parameters
    ----------
    campaign
        A compiled campaign.
    frame
        One row per device, a column per feature; a column that is absent is missing on every device.
    labels
        One class per row. Raises RecordError, naming the row, for one that the campaign does not declare.
    rng
        A numpy Generator or a seed; the same seed gives the same tally.
    fidelity
        ``device`` runs the client's own code row by row; ``vector`` draws from the same distribution with numpy.
    """
    if fidelity not in FIDELITIES:
        raise ValueError(f"fidelity must be one of {', '.join(FIDELITIES)}, not {fidelity!r}")
    generator = np.random.default_rng(rng)
    if fidelity == "device":
        return simulate_device(campaign, frame, labels, generator)
    return simulate_vector(Columns.of(campaign, frame, labels), generator)
