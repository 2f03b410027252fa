"""One experiment over real HTTP: publish, let devices answer, train, and compare on people who were held out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from tqdm import tqdm

from ldp_aggregator import NaiveBayes
from protocols import Campaign
from simulations.fidelities.items import Columns
from simulations.fidelities.simulation import relayed_upload
from simulations.fleet.aggregator import Aggregator
from simulations.fleet.devices import HONEST, Behaviour, Delivery, Network, run_devices
from simulations.studies.trials import Accuracies, accuracies, accuracy
from simulations.tables.frames import Table, TableError
from simulations.tables.sources import Source

TRAIN_FRACTION: Final = 0.8
"""Share of a table's people who answer; the others are held out."""

MARKS: Final = (100, 300, 1_000, 3_000, 10_000, 30_000)
"""Devices after which a watched experiment trains and looks how good the model is."""


@dataclass(frozen=True)
class Plan:
    """The number of devices, and how they are drawn. ``devices`` None takes one for each person to learn from.

    ``clients`` of them run the real client, each on its own; the answers of the others are drawn at once, by the same
    laws, and come in as a relay's uploads. None: all run the client.
    """

    devices: int | None = None
    seed: int | None = None
    behaviour: Behaviour = HONEST
    clients: int | None = None


@dataclass(frozen=True)
class Result:
    """The result; ``people`` is how many different people the devices were drawn from."""

    campaign: Campaign
    model: NaiveBayes | None
    delivery: Delivery
    accuracies: Accuracies
    people: int
    clients: int
    held_out: Table
    majority_class: str

    @property
    def resampled(self) -> bool:
        """Tell whether there are more devices than people, so that the same person answers on several devices."""
        return self.delivery.devices > self.people

    def predicted_shares(self) -> dict[str, float]:
        """Class to the share of the people held out whom the model puts there; none without a model."""
        if self.model is None:
            return {}
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
            "clients": self.clients,
            **asdict(self.delivery),
            "held_out": len(self.held_out),
            "accuracy": asdict(self.accuracies),
            "expected": None if self.model is None else self.model.model_.training["expected"],
            "predicted_shares": self.predicted_shares(),
        }


class Watcher:
    """Hears how an experiment goes on; this one does not listen."""

    marks: Sequence[int] = ()
    """Devices after which it wants to know how good the model is."""

    def published(self, aggregator: Aggregator, campaign: Campaign) -> None:
        """The campaign is open."""

    def learned(self, devices: int, right: float) -> None:
        """So many devices have answered, and the model is right for this share of the people held out."""


def run(aggregator: Aggregator, source: Source, plan: Plan, network: Network, watcher: Watcher | None = None) -> Result:
    """Run the whole experiment. Raises FleetError and TableError."""
    if len(source.people) < 2:
        raise TableError(f"{source.name}: one row is not enough; some people answer and others are held out")
    watcher = watcher or Watcher()
    rng = np.random.default_rng(plan.seed)
    training, held_out = source.people.split(TRAIN_FRACTION, rng)
    owners = training.draw(plan.devices or len(training), rng)
    clients = len(owners) if plan.clients is None else min(plan.clients, len(owners))
    campaign = aggregator.publish(source.draft)
    watcher.published(aggregator, campaign)
    columns = Columns.of(campaign, owners.frame, owners.labels)
    delivery, start = Delivery(), 0
    with tqdm(total=clients, desc="devices", unit=" devices", disable=None, file=sys.stderr, leave=False) as bar:
        for end in sorted({clients, len(owners), *(mark for mark in watcher.marks if mark < len(owners))}):
            rows = np.arange(start, end)
            if start < clients:
                delivery += run_devices(
                    aggregator.url,
                    campaign,
                    owners.take(rows),
                    network,
                    seed=plan.seed,
                    first=start,
                    behaviour=plan.behaviour,
                    on_device=bar.update,
                )
            else:
                upload = relayed_upload(columns, rows, rng)
                refused = aggregator.relay(campaign, upload)
                accepted = len(rows) * len(campaign.pools) - refused
                delivery += Delivery(len(rows), accepted=accepted, bytes_per_report=len(upload) / max(1, accepted))
            start = end
            if end in watcher.marks and end < len(owners):
                watcher.learned(end, accuracy(aggregator.train(campaign), held_out))
    model = aggregator.learned(campaign)
    scores = accuracies(campaign, model, owners, held_out)
    if scores.private is not None:
        watcher.learned(len(owners), scores.private)
    return Result(
        campaign=campaign,
        model=model,
        delivery=delivery,
        accuracies=scores,
        people=len(training),
        clients=clients,
        held_out=held_out,
        majority_class=str(owners.labels.mode().iloc[0]),
    )
