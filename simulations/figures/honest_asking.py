"""What the devices of a table are asked in the study of honest accuracy, and what their answers say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimators import QuestionEstimate, estimate_question
from ldp_aggregator.estimation.posterior.tables import Posterior, posterior_of
from protocols import Campaign
from simulations.fidelities.counts import simulate_counts
from simulations.fidelities.items import Columns
from simulations.studies.evaluating import VOTING
from simulations.tables.uci import draft_of, people_of

_BINS: Final = 8
_MOST_PEOPLE: Final = 60_000  # Of Skin, whose rows repeat each other.


class Asking(Enum):
    """What devices are asked of a table."""

    CELLS = "one pair of value and class, and nobody the class alone"
    DRAFTED = "what a draft asks where it says nothing of it: bits where they apply, and the class alone"
    EVERYTHING = "every pair, with the full epsilon each"


@dataclass(frozen=True)
class Asked:
    """Devices of ``people`` and what they told; everything derived once, on first use."""

    people: Columns
    devices: int
    rng: np.random.Generator

    def count(self, campaign: Campaign, devices: int) -> Tally:
        """So many devices answer ``campaign``."""
        return simulate_counts(replace(self.people, campaign=campaign), self.rng, devices)

    def ask(self, campaign: Campaign, devices: int) -> list[QuestionEstimate]:
        """What so many devices answer to ``campaign``."""
        return self.told_by(self.count(campaign, devices))

    def told_by(self, tally: Tally) -> list[QuestionEstimate]:
        """What these answers say."""
        counted = zip(tally.campaign.questions, tally.n.tolist(), tally.counts, strict=True)
        return [estimate_question(one, n, counts, self.people.class_count, "none") for one, n, counts in counted]

    def as_of(self, asking: Asking) -> Campaign:
        """The same table asked otherwise, see :func:`draft_for`."""
        asked = self.people.campaign
        return campaign_of(asked.title, asked.privacy.epsilon, asking)

    @cached_property
    def told(self) -> list[QuestionEstimate]:
        """The answers to the campaign as it is."""
        return self.ask(self.people.campaign, self.devices)

    @cached_property
    def drafted(self) -> tuple[Tally, Tally]:
        """The answers to what a draft asks: of those who do not vote, and of those who do, did they answer instead."""
        campaign, voting = self.as_of(Asking.DRAFTED), round(VOTING * self.devices)
        return self.count(campaign, self.devices - voting), self.count(campaign, voting)

    def believe(self, told: Sequence[QuestionEstimate]) -> Posterior:
        """What is believed given these answers."""
        features = self.people.campaign.asked
        sizes = {one.name: one.size for one in features}
        ordered = {one.name for one in features if one.ordered}
        return posterior_of(told, told, self.people.class_count, sizes, ordered=ordered)

    @cached_property
    def posterior(self) -> Posterior:
        """What is believed given those answers."""
        return self.believe(self.told)


@cache
def people(name: str) -> tuple[Columns, NDArray[np.int64]]:
    """A table as its campaign sees it, and the value indices of its features, shape (people, features)."""
    campaign = campaign_of(name, 1.0)
    table = people_of(name, draft_for(name, 1.0))
    if len(table) > _MOST_PEOPLE:
        table = table.take(np.random.default_rng(0).permutation(len(table))[:_MOST_PEOPLE])
    columns = Columns.of(campaign, table.frame, table.labels)
    return columns, np.column_stack([columns.value_indices(feature.name) for feature in campaign.asked])


def draft_for(name: str, epsilon: float, asking: Asking = Asking.CELLS) -> dict[str, Any]:
    """A table's campaign."""
    draft = {**draft_of(name, bins=_BINS, observed=True), "title": name}
    if asking is Asking.DRAFTED:
        return {**draft, "privacy": {"epsilon": epsilon}}
    groups = len(draft["features"]) if asking is Asking.EVERYTHING else 1
    answers = "all" if asking is Asking.EVERYTHING else "one"
    privacy = {"epsilon": epsilon * groups, "answers": answers, "xor": False, "joint": False}
    return {**draft, "label": {**draft["label"], "weight": 0}, "privacy": privacy}


@cache
def campaign_of(name: str, epsilon: float, asking: Asking = Asking.CELLS) -> Campaign:
    return Campaign.compile(draft_for(name, epsilon, asking))
