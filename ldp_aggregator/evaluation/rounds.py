"""A round of evaluation: its draft, by the answers of devices that took no part in training, and the model after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.cells import Array
from ldp_aggregator.evaluation.figures import evaluate, evaluation_of
from ldp_aggregator.guarantees import (
    LOCAL_PUBLIC,
    Guarantee,
    PublishedGuarantee,
    counted_twice,
    local_guarantee,
    published_by,
    relayed,
    studies_of,
    sum_up,
)
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_protocols import Campaign
from ldp_protocols.document.authored import FOR_PEOPLE, MOST_BINS
from ldp_protocols.document.authored import SCORE as SCORES
from ldp_protocols.document.model import DiscreteLikelihood, GaussianLikelihood, Likelihood, Model
from ldp_protocols.drafting import score_edges

_LONGEST_TITLE: Final = 200

_ALIKE: Final = 1e-12
"""Log odds below which two classes have the same table."""


def evaluation_draft(campaigns: Sequence[Campaign], model: Model, *, bins: int = MOST_BINS) -> dict[str, Any]:
    """Draft of a round about a model of these campaigns, of their study and epsilon; with crowd, gateway and
    issuer of the first, whose people it asks. ValueError without a study.
    """
    first, studies = campaigns[0], {campaign.study for campaign in campaigns}
    if None in studies or len(studies) > 1:
        raise ValueError(
            "the campaigns must be of one study, so that no device answers training and evaluation; these are of "
            + ", ".join(sorted(str(study) for study in studies))
        )
    edges = list(score_edges(model, bins)) if len(model.classes) == 2 else None
    epsilon, crowd = max(campaign.privacy.epsilon for campaign in campaigns), first.privacy.crowd
    # With a crowd the largest local epsilon is found anew: other questions, another bound.
    privacy = {"epsilon": epsilon} if crowd is None else {"crowd": crowd.to_json(), "most_local": epsilon}
    parties = {"gateway": first.gateway, "issuer": first.issuer}
    return {
        "version": 1,
        "title": f"How good is the model? {first.title[: _LONGEST_TITLE - 24]}",
        "purpose": first.purpose,
        **{name: getattr(first, name) for name in FOR_PEOPLE},
        "label": first.label.to_json(),
        "features": [feature.to_json() for feature in first.features],
        "privacy": privacy,
        "asks": SCORES,
        "evaluation": {"model": json.loads(model.to_json()), "edges": edges},
        "study": first.study,
        **{name: one.to_json() for name, one in parties.items() if one is not None},
    }


def evaluated_model(campaign: Campaign, tally: Tally, arrivals: Arrivals | None = None) -> NaiveBayes:
    """The model of an evaluation round, with what it tells and what training and evaluation cost a device.

    Its threshold is moved where that is clearly better: in the model format that is another prior. A device answers one
    campaign of a study, so that where both rounds are of one study the worse of their losses holds; where they are not,
    a device may have answered both, and the losses add up. Of a model that does not say how it was trained, nothing but
    the evaluation's loss is known. ``arrivals`` are those of the round, where that is known: then its relays' words and
    what is in the sums twice stand beside those of training.
    """
    evaluated, model = evaluate(campaign, tally), evaluation_of(campaign).model
    training = dict(model.training)
    studies, own = dict(training.get("studies", {})), studies_of([campaign])
    apart = not own.keys() <= studies.keys()
    spent = {key: max(epsilon, studies.get(key, 0.0)) for key, epsilon in own.items()}
    public: tuple[str, ...] = LOCAL_PUBLIC
    stated = training.get("guarantee")
    if stated is None:
        public = (*public, "the model, which does not say what it was learned from")
    guarantee = local_guarantee(studies | spent, public)
    if stated is not None and stated["epsilon"] is None:
        guarantee = Guarantee.from_json(stated)
    published = published_by([(campaign, tally)], () if arrivals is None else (arrivals,))
    if "published" in training:
        published = _both(PublishedGuarantee(**training["published"]), published, apart=apart or len(studies) > 1)
    if arrivals is not None:
        twice, before = counted_twice([arrivals]), training.get("counted_twice", {})
        training["relayed"] = [*training.get("relayed", ()), relayed(campaign, arrivals).to_json()]
        training["counted_twice"] = {key: number + before.get(key, 0) for key, number in twice.items()}
    training |= {
        "evaluated": evaluated.to_json(),
        "studies": studies | spent,
        "guarantee": guarantee.to_json(),
        "published": published.to_json(),
    }
    return NaiveBayes.from_model(
        replace(with_threshold(model, evaluated.threshold, evaluated.slope), training=training), guarantee
    )


def _both(first: PublishedGuarantee, second: PublishedGuarantee, *, apart: bool) -> PublishedGuarantee:
    """The guarantee of both publications: where they are of one study a device is in one of them."""
    conditions = tuple(dict.fromkeys((*first.conditions, *second.conditions)))
    if first.epsilon is None or second.epsilon is None:
        raise ValueError("the model says that nothing bounds what is published of its devices")
    join = sum_up if apart else max
    epsilon, delta = join((first.epsilon, second.epsilon)), join((first.delta, second.delta))
    return replace(first, epsilon=epsilon, delta=delta, conditions=conditions)


def with_threshold(model: Model, threshold: float, slope: float = 1.0) -> Model:
    """The model whose log odds between any two classes are those of ``model`` times the slope; of two classes
    those of the second less the threshold.

    In the model's own format: of each feature the log odds of a value are multiplied, and a variance is divided. What
    keeps tables from adding up to 1 is taken off the prior, and is nothing with two classes, so that records without a
    value are classified as before.
    """
    if threshold == 0 and slope == 1:
        return model
    prior = slope * np.log(model.prior)
    prior[-1] -= slope * threshold
    likelihoods: list[Likelihood] = []
    for one in model.likelihoods:
        if slope != 1 and isinstance(one, DiscreteLikelihood):
            table, left = _sloped(np.array(one.table), slope)
            prior += left
            one = replace(one, table=tuple(map(tuple, table.tolist())))
        elif slope != 1 and isinstance(one, GaussianLikelihood):
            # A normal law has its deviation in its factor, too: what that adds to the log odds is taken off the prior.
            prior += (1 - slope) * np.log(one.variance) / 2
            one = replace(one, variance=tuple(variance / slope for variance in one.variance))
        likelihoods.append(one)
    return replace(model, prior=tuple(softmax(prior).tolist()), likelihoods=tuple(likelihoods))


def _sloped(table: Array, slope: float) -> tuple[Array, Array]:
    """P(value | class), shape (values, k), whose log odds are those of ``table`` times the slope; and by class the
    logarithm that this leaves.

    Of p_c come x p_c^slope with one x for a value. With two classes, p and r p, x is proportional to r^theta
    p^(1 - slope), with the theta by which both add up to 1. With more no x need do that: it is the mean of p to the
    power 1 - slope, by which they do where classes are alike.
    """
    logs = np.log(table)
    if table.shape[1] > 2:
        found = np.exp(slope * logs + (1 - slope) * np.log(table.mean(axis=1))[:, None])
        return found / found.sum(axis=0), np.log(found.sum(axis=0))
    first, odds = logs[:, 0], logs[:, 1] - logs[:, 0]

    def apart(theta: float) -> float:
        return float(logsumexp(first + (theta + slope) * odds) - logsumexp(first + theta * odds))

    theta = brentq(apart, -slope, 1.0, xtol=1e-14) if np.abs(odds).max() > _ALIKE else 0.0
    weights = softmax(first + theta * odds)
    found = np.stack([weights, weights * np.exp(slope * odds)], axis=1)
    return found / found.sum(axis=0), np.zeros(2)
