"""Which models an evaluation round puts to the vote: ways to train on the same reports, and fewer features.

Nobody knows beforehand which of them is the best for a population: how much noise a decoder takes away, whether
features that repeat each other count twice. Devices that took no part in training say so, each by one bit.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import estimate
from ldp_aggregator.estimation.posterior.tables import Posterior
from ldp_aggregator.estimation.simplex import NORM_SUB, POSTERIOR
from ldp_aggregator.learning.prediction import predict_accuracy
from ldp_aggregator.learning.redundancy import mutual_information
from ldp_aggregator.learning.training import believe, train
from protocols import Campaign
from protocols.document.campaign import SCORE
from protocols.document.candidates import MOST_CANDIDATES
from protocols.model import Model

TRAININGS: Final[Mapping[str, Mapping[str, Any]]] = {POSTERIOR: {}, NORM_SUB: {"post": NORM_SUB}}
"""Name of a candidate to the options of ``train``; the first is what is published unless another is better."""

ALIKE: Final = "posterior unweighted"
"""The first without the weights of features that repeat each other."""

SHARES: Final = {"best half": 2, "best quarter": 4}
FEWEST: Final = {"best two": 2, "best one": 1}
"""Where one feature says almost everything, any other only adds noise: Mushroom's odour."""
PRIOR: Final = "prior"
"""The most frequent class, whatever the record: with it among the candidates no model is published unknowingly that is
worse."""

DEFAULT: Final = (POSTERIOR, ALIKE, NORM_SUB, *SHARES, *FEWEST, PRIOR)

_LONGEST_TITLE: Final = 200


class CandidateError(ValueError):
    """Candidates that cannot be put to the vote: says what would be right."""


def make_candidates(
    pairs: Sequence[tuple[Campaign, Tally]],
    names: Sequence[str] = DEFAULT,
    *,
    arrivals: Sequence[Arrivals] | None = None,
) -> tuple[tuple[str, Model], ...]:
    """The candidates of these names, trained on the tallies of campaigns about the same features.

    Those with fewer features are made of the shrinking estimator's tables. Of two that use the same features in the
    same way the second is left out. ``arrivals``: see :func:`ldp_aggregator.learning.training.train`. Raises
    CandidateError.
    """
    unknown = [name for name in names if name not in DEFAULT]
    if unknown:
        raise CandidateError(f"{unknown[0]!r} is no candidate; the known ones are {', '.join(DEFAULT)}")
    trained = {
        name: train(pairs, **options, arrivals=arrivals).model_
        for name, options in TRAININGS.items()
        if name in names or name == POSTERIOR
    }
    first, posterior = trained[POSTERIOR], _believed(pairs)
    size = len(first.likelihoods)
    sizes = sizes_of(size)
    used, found = {size}, list[tuple[str, Model]]()
    for name in dict.fromkeys(names):
        if name in trained:
            found.append((name, trained[name]))
        elif name == ALIKE:
            if POSTERIOR not in names or {one.weight for one in first.likelihoods} - {1.0}:
                found.append((name, _told(_unweighted(first), posterior)))
        elif sizes[name] < size and sizes[name] not in used:
            used.add(sizes[name])
            found.append((name, _told(best_features(first, sizes[name]), posterior)))
    return tuple(found)


def sizes_of(features: int) -> dict[str, int]:
    """How many of so many features each candidate with fewer of them uses, by name."""
    return {**{name: -(-features // part) for name, part in SHARES.items()}, **FEWEST, PRIOR: 0}


def best_features(model: Model, count: int) -> Model:
    """The model with the ``count`` features alone that tell most of the class; each counts once."""
    prior = np.array(model.prior)
    told = [mutual_information(likelihood, prior) for likelihood in model.likelihoods]
    order = sorted(range(len(told)), key=lambda place: -told[place])[:count]
    kept = tuple(replace(model.likelihoods[place], weight=1.0) for place in sorted(order))
    names = {likelihood.feature.name for likelihood in kept}
    projected = model.projection is not None and bool(names & set(model.projection.output_positions))
    training = {
        **model.training,
        "insufficient": _named(model.training.get("insufficient", {}), names),
        "poisoning": [
            {**one, "features": _named(one["features"], names)} for one in model.training.get("poisoning", [])
        ],
    }
    return replace(model, likelihoods=kept, projection=model.projection if projected else None, training=training)


def _unweighted(model: Model) -> Model:
    """The model in which every feature counts once."""
    return replace(model, likelihoods=tuple(replace(one, weight=1.0) for one in model.likelihoods))


def _believed(pairs: Sequence[tuple[Campaign, Tally]]) -> Posterior:
    found = [estimate(campaign, tally) for campaign, tally in pairs]
    return believe(found, [question for one in found for question in one.questions])


def _told(model: Model, posterior: Posterior) -> Model:
    """With what is expected of this model, instead of what was of the one that it is made of."""
    predicted = predict_accuracy(model, posterior).to_json()
    return replace(model, training={**model.training, "predicted_accuracy": predicted})


def _named(of_features: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: of for name, of in of_features.items() if name in names}


def evaluation_draft(
    pairs: Sequence[Campaign], candidates: Sequence[tuple[str, Model]], title: str | None = None
) -> dict[str, Any]:
    """The draft of a round of the same study and epsilon that asks which of ``candidates`` are right.

    Raises CandidateError for campaigns of no study, whose devices could answer both rounds.
    """
    first, studies = pairs[0], {campaign.study for campaign in pairs}
    if None in studies or len(studies) > 1:
        raise CandidateError(
            "the campaigns must be of one study, so that no device answers training and evaluation; these are of "
            + ", ".join(sorted(str(study) for study in studies))
        )
    if not 2 <= len(candidates) <= MOST_CANDIDATES:
        raise CandidateError(f"an evaluation round has 2 to {MOST_CANDIDATES} candidates, not {len(candidates)}")
    return {
        "version": 1,
        "title": title or f"Which model? {first.title[: _LONGEST_TITLE - 20]}",
        "purpose": first.purpose,
        "label": first.label.to_json(),
        "features": [feature.to_json() for feature in first.features],
        "privacy": {"epsilon": max(campaign.privacy.epsilon for campaign in pairs)},
        "asks": SCORE,
        "candidates": [{"name": name, "model": json.loads(model.to_json())} for name, model in candidates],
        "study": first.study,
    }
