"""Accuracy on people that no device answered for, beside what it must be compared with."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from ldp_aggregator import NaiveBayes, Tally
from ldp_aggregator.estimation.simplex import POSTERIOR
from ldp_aggregator.learning.training import POOLED, Decoding, learn
from protocols import Campaign
from simulations.tables.frames import Table


@dataclass(frozen=True)
class Accuracies:
    """Shares of the held-out people that are classified rightly."""

    majority: float
    """Always saying the most frequent class of the training people."""
    private: float | None
    """The model learned from the devices' reports; None where nobody could look at it."""
    non_private: float
    """The same kind of model, learned from the same people without any privacy."""


def accuracies(campaign: Campaign, model: NaiveBayes | None, trained_on: Table, held_out: Table) -> Accuracies:
    """All three on ``held_out``; ``trained_on`` are the people whose devices answered."""
    return Accuracies(
        majority=majority(trained_on, held_out),
        private=None if model is None else accuracy(model, held_out),
        non_private=accuracy(non_private(campaign, trained_on), held_out),
    )


def majority(trained_on: Table, held_out: Table) -> float:
    """Share of the people held out that always saying the most frequent class of the others classifies rightly."""
    return float((held_out.labels == trained_on.labels.mode().iloc[0]).mean())


def accuracy(model: NaiveBayes, people: Table) -> float:
    """Share of people that the model classifies rightly."""
    return float(np.mean(model.predict(people.frame) == people.labels.to_numpy(dtype=object)))


def learned(campaign: Campaign, tally: Tally, *, post: str = POSTERIOR, prior: str = POOLED) -> NaiveBayes:
    """Return the classifier of ``train`` without what it tells of itself, which takes longer than the learning."""
    return NaiveBayes.from_model(learn([(campaign, tally)], Decoding(post, prior)).model)


def non_private(campaign: Campaign, people: Table) -> NaiveBayes:
    """Naive Bayes of the campaign's schema, learned from the records themselves."""
    return NaiveBayes(schema=json.loads(campaign.document)).fit(people.frame, people.labels)
