"""Tables for a simulation: nobody's data."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from hospitals.campaign import CAMPAIGN
from ldp_aggregator.flower.round import NodeSettings


def simulated_node(run_id: int, partition: int) -> NodeSettings:
    """A node of its own for each partition and run."""
    home = Path(tempfile.gettempdir(), f"ldp-bayes-simulation-{run_id}", str(partition))
    home.mkdir(parents=True, exist_ok=True)
    made_up_table(partition).to_csv(home / "table.csv", index=False)
    return NodeSettings(home / "table.csv", home / "ledger.db", CAMPAIGN.id, CAMPAIGN.privacy.epsilon)


def made_up_table(seed: int, rows: int = 500) -> pd.DataFrame:
    """The older come back more often, and from the heart ward."""
    rng = np.random.default_rng(seed)
    again = rng.random(rows) < 0.4
    heart, others = rng.random(rows) < 0.6, rng.choice(["lung", "other"], rows)
    return pd.DataFrame(
        {
            "age": np.where(again, 70, 50) + rng.normal(0, 9, rows),
            "ward": np.where(again & heart, "heart", others),
            "readmitted": np.where(again, "yes", "no"),
        }
    )
