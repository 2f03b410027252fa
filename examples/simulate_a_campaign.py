"""Before anyone is asked: what would 50,000 devices teach the aggregator, at which epsilon? No server, no waiting.

python examples/simulate_a_campaign.py
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd

from ldp_aggregator import NaiveBayes, train
from ldp_protocols import Campaign
from ldp_simulations import simulate
from ldp_simulations.tables import read_draft

DEVICES = 50_000


def writers(count: int, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.Series]:
    """Invented people: the split layout suits the young, and those who type little, more often."""
    age = rng.choice(["young", "medium", "old"], size=count, p=[0.3, 0.5, 0.2])
    words = rng.gamma(4.0, 15_000.0, size=count)
    chance = 0.1 + 0.3 * (age == "young") + 0.5 * (words < 40_000)
    suits = np.where(rng.random(count) < chance, "yes", "no")
    return pd.DataFrame({"age": age, "words": words}), pd.Series(suits)


def main() -> None:
    rng = np.random.default_rng(1)
    people, labels = writers(DEVICES, rng)
    others, truth = writers(10_000, rng)
    draft = read_draft(Path(__file__).parent / "campaign.toml")
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        campaign = Campaign.compile({**draft, "privacy": {"epsilon": epsilon}})
        model = train(campaign, simulate(campaign, people, labels, rng))
        print(f"epsilon {epsilon:3}: accuracy {(model.predict(others) == truth.to_numpy()).mean():.3f}")
    baseline = NaiveBayes(schema=json.loads(campaign.document)).fit(people, labels)
    print(f"no privacy : accuracy {(baseline.predict(others) == truth.to_numpy()).mean():.3f}")
    print(f"always no  : accuracy {(truth == 'no').mean():.3f}")


if __name__ == "__main__":
    main()
