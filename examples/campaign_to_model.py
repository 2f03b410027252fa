"""From campaign to model: devices answer, a model comes out, and the estimates are drawn with intervals and the truth.

python examples/campaign_to_model.py estimates.svg
"""

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from simulate_a_campaign import customers

mpl.use("agg")
from matplotlib import pyplot as plt

from ldp_aggregator import Tally, estimate, train
from ldp_client import perturb
from protocols import Campaign, encode_upload
from simulations.tables.frames import records
from simulations.tables.sources import read_draft

DEVICES = 5_000


def main(path: str) -> None:
    rng = np.random.default_rng(1)
    people, labels = customers(DEVICES, rng)
    others, truth = customers(5_000, rng)
    campaign = Campaign.compile(read_draft(Path(__file__).parent / "campaign.toml"))
    # All that leaves a device: some 26 bytes.
    uploads = [
        encode_upload(perturb(campaign, record, label)) for record, label in zip(records(people), labels, strict=True)
    ]
    tally = Tally.of_uploads(campaign, uploads)
    model = train(campaign, tally)
    print(f"{len(uploads):,} devices, epsilon {campaign.privacy.epsilon:g}, {sum(map(len, uploads)):,} bytes")
    print(f"accuracy on others: {model.score(others, truth):.3f}")
    print(f"always one class  : {truth.value_counts(normalize=True).max():.3f}")
    cells = estimate(campaign, tally).to_frame().query("feature == 'age'")
    asked = list(zip(cells["value"], cells["class"], strict=True))
    names = [f"{value} and {label}" for value, label in asked]
    true = [((people["age"] == value) & (labels == label)).mean() for value, label in asked]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    errors = [(cells["estimate"] - cells["low"]).clip(lower=0), (cells["high"] - cells["estimate"]).clip(lower=0)]
    axes.errorbar(cells["estimate"], names, xerr=errors, fmt="o", capsize=3, label="estimate, 95 % interval")
    axes.plot(true, names, "x", color="black", label="what nobody sees: the truth")
    axes.set(xlabel="share of the devices")
    axes.legend()
    figure.savefig(path)


if __name__ == "__main__":
    main(sys.argv[1])
