"""Many seeded trials of a campaign on one table: how good would the model be, how sure is that, at which total loss?

A trial splits the people, lets the training people's devices answer under every setting, and scores each model on the
people held out. Settings within a trial share the split, so that their differences are not those of the splits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.learning.training import POOLED
from protocols import Campaign
from simulations.fidelities.items import Columns
from simulations.fidelities.simulation import simulate_counts, simulate_vector
from simulations.studies.journal import experiment_id
from simulations.studies.scores import accuracy, learned, majority, non_private
from simulations.tables.sources import Source

ACCURACY: Final = "accuracy"


@dataclass(frozen=True)
class Setting:
    """A setting to try. ``epsilon`` is a device's total loss, or with ``per_question`` that of each of its answers."""

    mechanism: str
    epsilon: float
    per_question: bool = False
    continuous: str = "auto"

    def campaign(self, draft: Mapping[str, Any]) -> Campaign:
        """The draft's campaign under this setting, under its true total loss.

        ``per_question`` is the accounting of papers that spend epsilon on every question: the device answers them all,
        and the total is (groups of questions) x epsilon.
        """
        privacy = {**draft["privacy"], "discrete": self.mechanism, "continuous": self.continuous}
        answers = "all" if self.per_question else privacy.get("answers") or "one"
        groups = len(draft["features"]) + (draft["label"].get("weight") != 0)
        total = self.epsilon * groups if self.per_question else self.epsilon
        return Campaign.compile({**draft, "privacy": {**privacy, "epsilon": total, "answers": answers}})


@dataclass(frozen=True)
class Design:
    """The design of all trials. ``devices`` None makes every training person a device."""

    devices: int | None = None
    train_fraction: float = 0.8
    post: str = POSTERIOR
    fidelity: str = "vector"
    prior: str = POOLED


def run_trial(source: Source, settings: Sequence[Setting], design: Design, seed: int) -> list[dict[str, Any]]:
    """One row for every setting; the same seed gives the same rows."""
    rng = np.random.default_rng(seed)
    training, held_out = source.people.split(design.train_fraction, rng)
    campaigns = [setting.campaign(source.draft) for setting in settings]
    baseline = {
        "majority": majority(training, held_out),
        "non_private": accuracy(non_private(campaigns[0], training), held_out),
    }
    columns = Columns.of(campaigns[0], training.frame, training.labels)
    simulate = simulate_counts if design.fidelity == "counts" else simulate_vector
    rows = []
    for setting, campaign in zip(settings, campaigns, strict=True):
        tally = simulate(replace(columns, campaign=campaign), rng, design.devices)
        model = learned(campaign, tally, post=design.post, prior=design.prior)
        rows.append(
            {
                "seed": seed,
                **asdict(setting),
                "answers": campaign.privacy.answers,
                "total_epsilon": campaign.privacy.epsilon,
                "devices": design.devices or len(training),
                ACCURACY: accuracy(model, held_out),
                **baseline,
            }
        )
    return rows


def summarise(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Means and standard errors over the trials, one row for every setting, in the order they were given."""
    frame = pd.DataFrame(list(rows))
    keys = ["mechanism", "continuous", "epsilon", "per_question", "answers", "total_epsilon", "devices"]
    groups = frame.groupby(keys, sort=False)
    summary = groups[[ACCURACY, "majority", "non_private"]].mean()
    summary.insert(1, "standard_error", groups[ACCURACY].std(ddof=1) / np.sqrt(groups.size()))
    summary.insert(0, "trials", groups.size())
    return summary.reset_index()


def fingerprint(source: Source, settings: Sequence[Setting], design: Design) -> str:
    """Name the experiment that a trial belongs to: the same people, draft, settings and design."""
    return experiment_id(source.people, *describe(source, settings, design))


def describe(source: Source, settings: Sequence[Setting], design: Design) -> tuple[Any, ...]:
    """Describe what makes an experiment another than the next one on the same people, as JSON."""
    return source.draft, [asdict(setting) for setting in settings], asdict(design)
