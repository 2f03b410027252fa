"""A series in every fidelity: devices are spread over windows by lot, and each window has the population's shares."""

import credit_draft
import numpy as np
import pandas as pd
import pytest

from ldp_aggregator.learning.series import series_of
from protocols import Campaign
from simulations.fidelities import simulate

SERIES = Campaign.compile(
    {
        **credit_draft.DRAFT,
        "closes": None,
        "features": [{"name": "age", "kind": "categorical", "values": ["young", "old"], "missing": False}],
        "privacy": {"epsilon": 1.0},
        "windows": {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 52},
    }
)
PEOPLE = pd.DataFrame({"age": ["young"] * 3 + ["old"]})
LABELS = [SERIES.label.classes[place] for place in (0, 0, 1, 1)]


@pytest.mark.parametrize(("fidelity", "devices"), [("counts", 5_200_000), ("vector", 52_000), ("device", 2_600)])
def test_devices_are_spread_over_windows_and_each_has_the_shares_of_all(fidelity, devices):
    """A window's number is binomial; 5.5 deviations in any of 52 windows are rarer than two in a million."""
    tally = simulate(SERIES, PEOPLE, LABELS, 3, fidelity=fidelity, devices=devices)
    numbers = np.array([one.n.sum() for one in tally.windows])
    assert numbers.sum() == devices
    assert (np.abs(numbers - devices / 52) < 5.5 * np.sqrt(devices / 52) + 3).all()
    (ages,) = (one for one in series_of(SERIES, tally) if one.question.kind == "pair")
    truth = np.array([0.5, 0.25, 0.0, 0.25])
    smoothed = ages.levels.smoothed
    assert (np.abs(smoothed.value - truth) < 5.5 * np.sqrt(smoothed.variance) + 1e-9).all()
    if fidelity == "counts":  # 52 windows of 100,000 devices each.
        assert np.sqrt(np.mean((smoothed.value - truth) ** 2)) < 0.002


def test_a_series_needs_to_be_told_how_many_devices_there_are():
    with pytest.raises(ValueError, match="number of devices"):
        simulate(SERIES, PEOPLE, LABELS, 3, fidelity="counts")
