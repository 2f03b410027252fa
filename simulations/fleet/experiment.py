"""One experiment over real HTTP: publish, let every device answer, train, and compare on people who were held out."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from tqdm import tqdm

from ldp_aggregator import NaiveBayes
from protocols import Campaign
from simulations.fleet.aggregator import Aggregator
from simulations.fleet.devices import HONEST, Behaviour, Delivery, run_devices
from simulations.fleet.network import Network
from simulations.studies.scores import Accuracies, accuracies
from simulations.tables.frames import Table, TableError
from simulations.tables.sources import Source

TRAIN_FRACTION: Final = 0.8
"""Share of a table's people who answer; the others are held out."""


@dataclass(frozen=True)
class Plan:
    """The number of devices, and how they are drawn. ``devices`` None takes one for each person to learn from."""

    devices: int | None = None
    seed: int | None = None
    behaviour: Behaviour = HONEST


@dataclass(frozen=True)
class Result:
    """The result; ``people`` is how many different people the devices were drawn from."""

    campaign: Campaign
    model: NaiveBayes
    delivery: Delivery
    accuracies: Accuracies
    people: int
    held_out: Table
    majority_class: str

    @property
    def resampled(self) -> bool:
        """Tell whether there are more devices than people, so that the same person answers on several devices."""
        return self.delivery.devices > self.people

    def predicted_shares(self) -> dict[str, float]:
        """Class to the share of the people held out whom the model puts there."""
        predicted = self.model.predict(self.held_out.frame)
        return {name: float(np.mean(predicted == name)) for name in self.campaign.label.classes}

    def to_json(self) -> dict[str, Any]:
        """The figures that ``--json`` prints."""
        return {
            "campaign": self.campaign.id,
            "epsilon": self.campaign.privacy.epsilon,
            "realised_epsilon": self.campaign.realised_epsilon,
            "questions": len(self.campaign.questions),
            "answers_per_device": len(self.campaign.groups) if self.campaign.privacy.answers == "all" else 1,
            "people": self.people,
            "resampled": self.resampled,
            **asdict(self.delivery),
            "held_out": len(self.held_out),
            "accuracy": asdict(self.accuracies),
            "expected": self.model.model_.training["expected"],
            "predicted_shares": self.predicted_shares(),
        }


def run(aggregator: Aggregator, source: Source, plan: Plan, network: Network) -> Result:
    """The whole experiment. Raises FleetError and TableError."""
    if len(source.people) < 2:
        raise TableError(f"{source.name}: one row is not enough; some people answer and others are held out")
    rng = np.random.default_rng(plan.seed)
    training, held_out = source.people.split(TRAIN_FRACTION, rng)
    owners = training.draw(plan.devices or len(training), rng)
    campaign = aggregator.publish(source.draft)
    with tqdm(
        total=len(owners),
        desc="devices",
        unit=" devices",
        disable=None,  # Where standard error is no terminal.
        file=sys.stderr,
        leave=False,
    ) as bar:
        delivery = run_devices(
            aggregator.url,
            campaign,
            owners,
            network,
            seed=plan.seed,
            behaviour=plan.behaviour,
            on_device=bar.update,
        )
    model = aggregator.train(campaign)
    return Result(
        campaign=campaign,
        model=model,
        delivery=delivery,
        accuracies=accuracies(campaign, model, owners, held_out),
        people=len(training),
        held_out=held_out,
        majority_class=str(owners.labels.mode().iloc[0]),
    )
