"""The worth of models that are learned from a pilot table's people: over devices, and over the bins of numbers.

A split of the pilot has people who are resampled to devices, four fifths, and people held out, on whom models are
judged. Everything is a mean over seeded splits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator import NaiveBayes
from ldp_aggregator.learning.expected_accuracy import predict_accuracy
from ldp_aggregator.learning.training import Decoding, learn
from ldp_protocols import Campaign
from ldp_protocols.document.authored import MODEL
from ldp_protocols.errors import DraftError
from ldp_simulations.columns import Columns
from ldp_simulations.fidelities import simulate_counts
from ldp_simulations.studies.trials import accuracy, area_of, learned, majority, non_private
from ldp_simulations.tables import Table

Array = NDArray[np.float64]

FEWEST_DEVICES: Final = 500
MOST_DEVICES: Final = 1 << 34
"""Beyond that the loss is not for want of devices."""

RANKED: Final = 0.8
"""Area under the ROC curve from which on a class is well ranked."""

_RANKABLE: Final = 0.02
"""Above :data:`RANKED` without privacy, where it makes sense to wait for it."""


@dataclass(frozen=True)
class Reached:
    """Measures of a model on people held out: ``accuracy``; ``balanced``, the mean over the classes of the
    share of theirs that is classified rightly; ``area`` under the ROC curve of the rarest class. ``called`` is 1
    where training says that its features tell something of the class, else 0; of several models, their share.
    """

    accuracy: float
    balanced: float
    area: float
    called: float = math.nan

    @classmethod
    def of(cls, model: NaiveBayes, people: Table, rarest: str, called: float = math.nan) -> Reached:
        truth = people.labels.to_numpy(dtype=object)
        right = pd.Series(model.predict(people.frame) == truth)
        balanced = float(right.groupby(truth).mean().mean())
        return cls(float(right.mean()), balanced, area_of(model, people, rarest), called)

    @classmethod
    def mean(cls, found: Sequence[Reached]) -> Reached:
        """The means; the area's over the splits that held some of the class out, and 0.5, as by chance, without any."""
        areas = [one.area for one in found if not math.isnan(one.area)]
        means = [float(np.mean([getattr(one, name) for one in found])) for name in MEASURES]
        return replace(cls(*means), area=float(np.mean(areas)) if areas else 0.5)


MEASURES: Final[Mapping[str, str]] = {
    "accuracy": "an accuracy of {:g}",
    "balanced": "a balanced accuracy of {:g}",
    "area": "an area of {:g} under the ROC curve of the rarest class",
    "called": "a model whose features are said to tell something in {:.0%} of campaigns",
}
"""Measures that may be wished for of a model, in words."""


@dataclass(frozen=True)
class Curve:
    """Measures of a model on held-out people of the pilot, on average, for more and more devices that are drawn from
    its other people; without privacy; and the share of ``frequent``, the most frequent class (``majority``).
    """

    devices: tuple[int, ...]
    reached: tuple[Reached, ...]
    standard_error: tuple[float, ...]
    non_private: Reached
    rarest: str
    frequent: str
    majority: float

    def devices_reaching(self, measure: str, target: float) -> int | None:
        """The fewest devices with so much of a measure, interpolated; None where no number was seen to have it."""
        found = place_of(target, self.devices, [getattr(one, measure) for one in self.reached])
        return None if found is None else math.ceil(found)

    def devices_for(self, loss: float) -> int | None:
        """The fewest devices with an accuracy at most ``loss`` below that without privacy, and not below what always
        saying the most frequent class has.
        """
        return self.devices_reaching("accuracy", max(self.non_private.accuracy - loss, self.majority))

    @property
    def is_above_majority(self) -> bool:
        """Tell whether Naive Bayes without noise is right more often than always saying the most frequent class."""
        return self.non_private.accuracy > self.majority

    def to_json(self) -> dict[str, Any]:
        """A list of each measure, a number for each number of devices."""
        lists = {name: [getattr(one, name) for one in self.reached] for name in MEASURES}
        without = self.non_private
        return {
            "non_private": without.accuracy,
            "balanced_non_private": without.balanced,
            "area_non_private": without.area,
            "majority": self.majority,
            "most_frequent": self.frequent,
            "rarest": self.rarest,
            "devices": list(self.devices),
            "standard_error": list(self.standard_error),
            **lists,
        }


def place_of(target: float, places: Sequence[float], reached: Sequence[float]) -> float | None:
    """The place from which on the target is reached, interpolated in its logarithm; None where it is not at the end."""
    below = [at for at, found in enumerate(reached) if found < target]
    if not below:
        return places[0]
    last = below[-1]
    if last + 1 == len(places):
        return None
    share = (target - reached[last]) / (reached[last + 1] - reached[last])
    return math.exp(math.log(places[last]) + share * math.log(places[last + 1] / places[last]))


def accuracy_curve(
    campaign: Campaign, pilot: Table, loss: float, *, wanted: tuple[str, float] | None = None, repeats: int
) -> Curve:
    """Double the devices until the loss is well reached, and the rarest class well ranked where it can be, or to
    :data:`MOST_DEVICES`; until so much of a measure is ``wanted``, and no more, where that is given.
    """
    splits = [Split(campaign, pilot, seed) for seed in range(repeats)]
    without = Reached.mean([split.non_private for split in splits])
    frequent, most = splits[0].frequent, float(np.mean([split.majority for split in splits]))
    wishes = dict([wanted]) if wanted else {"accuracy": without.accuracy - loss}
    if wanted is None and without.accuracy > most:
        wishes["accuracy"] = max(wishes["accuracy"], most)
    if wanted is None and without.area > RANKED + _RANKABLE:
        wishes["area"] = RANKED
    devices, tried, reached, errors = FEWEST_DEVICES, list[int](), list[Reached](), list[float]()
    while devices <= MOST_DEVICES and not (len(reached) > 1 and all(_meets(one, wishes) for one in reached[-2:])):
        found = [split.reached(devices) for split in splits]
        tried.append(devices)
        reached.append(Reached.mean(found))
        errors.append(float(np.std([one.accuracy for one in found], ddof=1) / math.sqrt(repeats)))
        devices *= 2
    return Curve(tuple(tried), tuple(reached), tuple(errors), without, splits[0].rarest, frequent, most)


def _meets(reached: Reached, wishes: Mapping[str, float]) -> bool:
    return all(getattr(reached, name) >= least for name, least in wishes.items())


class Split:
    """One split of the pilot into people who are resampled to devices, four fifths, and people held out."""

    def __init__(self, campaign: Campaign, pilot: Table, seed: int) -> None:
        self._campaign = campaign
        sizes = pilot.labels.value_counts()
        self.rarest, self.frequent = str(sizes.idxmin()), str(sizes.idxmax())
        self._rng = np.random.default_rng(seed)
        self._training, self.held_out = pilot.split(0.8, self._rng)
        self._columns = Columns.of(campaign, self._training.frame, self._training.labels)
        self.majority = majority(self._training, self.held_out)

    @property
    def non_private(self) -> Reached:
        """The measures of Naive Bayes without noise."""
        return Reached.of(non_private(self._campaign, self._training), self.held_out, self.rarest)

    def reached(self, devices: int) -> Reached:
        """The measures of a model that so many devices were asked for."""
        found = learn([(self._campaign, simulate_counts(self._columns, self._rng, devices))], Decoding())
        called = predict_accuracy(found).tells_something
        return Reached.of(NaiveBayes.from_model(found.model), self.held_out, self.rarest, float(called))

    def accuracy(self, devices: int) -> float:
        """The accuracy alone, which takes half as long."""
        return accuracy(learned(self._campaign, simulate_counts(self._columns, self._rng, devices)), self.held_out)


BINS: Final = (2, 4, 8, 16)
MANY_BINS: Final = 32
LOST_BY_MANY_BINS: Final = 0.034, 0.019
"""Accuracy that 32 bins lost against 8 on 16 tables with numbers (20,000 devices, epsilon 1, six splits), and the
standard error over the tables; the most on one table was .27.
"""

_SURE: Final = 3.0
"""Standard errors from which on the best of several is called better."""


@dataclass(frozen=True)
class Binned:
    """Accuracy where every number has so many ``bins``, or none, or is ``drafted`` so; and how much the draft is below
    that on the same splits. With standard errors.
    """

    bins: int | None
    drafted: bool
    accuracy: float
    standard_error: float
    gain: float
    gain_error: float

    @property
    def is_better(self) -> bool:
        """Tell whether it is above the draft by more than chance."""
        return self.gain > _SURE * self.gain_error

    @property
    def words(self) -> str:
        """The way in which numbers are asked."""
        return "no bins" if self.bins is None else f"{self.bins} bins" if self.bins else "as drafted"


def compare_bins(draft: Mapping[str, Any], devices: int, pilot: Table, repeats: int) -> list[Binned]:
    """Try numbers of bins for all numbers alike, beside those of the draft; nothing where a draft has no numbers of its
    own, or where it does not ask for a model.
    """
    numbers = [feature for feature in draft["features"] if "low" in feature]
    if not numbers or draft.get("projection") or Campaign.compile(draft).asks != MODEL:
        return []
    own = {feature.get("bins") for feature in numbers}
    choices: list[int | None] = [*BINS, None]
    drafted = own.pop() if len(own) == 1 else 0
    found: dict[int | None, Array] = {}
    for bins in dict.fromkeys([drafted, *choices]):
        changes = {} if bins == 0 else {"bins": bins}
        features = [{**feature, **(changes if "low" in feature else {})} for feature in draft["features"]]
        try:
            campaign = Campaign.compile({**draft, "features": features})
        except DraftError:  # Not every mechanism asks for numbers, and none for too many cells.
            continue
        splits = (Split(campaign, pilot, seed) for seed in range(repeats))
        found[bins] = np.array([split.accuracy(devices) for split in splits])
    return [
        Binned(bins, bins == drafted, *_with_error(found[bins]), *_with_error(found[bins] - found[drafted]))
        for bins in sorted(found, key=lambda bins: (bins is None, bins or 0))
    ]


def _with_error(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
