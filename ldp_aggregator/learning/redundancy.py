"""Weights for features that repeat each other or are mostly noise, from what they claim to know of the class.

Naive Bayes adds up what every feature tells, and nothing in the reports says which features tell the same. But a class
holds only its entropy H: where k features together claim more, they repeat each other. The better ones then count more,
(I_j / max I)^power, and all of them less against the prior. The power has two parts.

* Overlap: max(0, 1 - H / sum I) / 2. The less the best feature alone leaves open, left = 1 - max I / H, the less there
  is for others to tell: below a half it is (1/2 / left)^2 times as large.
* Dominance: max(0, 1 - 2 few / k) / 2, few = (sum I)^2 / sum I^2 being the features that tell nearly all. What many
  others add to these is more often their shadow than news. Who the few are must be known: times 0 where two fifths of
  what features tell is no noise, times 1 from four fifths on.

Against the prior they count share / reach, where ``reach`` is what is claimed beyond the best feature, (sum I - max I)
/ H, as far as it is not noise (noisy copies of one thing are worth adding up). And where one class is far more frequent
than others, few reports about features mislead more often than they help: discrete features count the less against the
prior, the more of what they tell is noise and the less even the classes are, times explained / (1 - H / ln C), at most
1. With classes as frequent as each other there is nothing to lose, and what differs in their shares may be noise:
neither is done.

Chosen on chess, mushroom, car and connect4; share and the least weight against the prior also on spect and adult, how
much a best feature may leave open on breast cancer and wine, whose features are as good as each other and not the same,
and when a few dominate, and what even classes are, on adult and seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from protocols.model import DiscreteLikelihood, Likelihood

Array = NDArray[np.float64]

_SHARE: Final = 1 / 3
"""Of the class's entropy: so much may be claimed beyond the best feature."""

_MUCH_LEFT: Final = 0.5
"""Of the class's entropy, by the best feature: from there on the others are heard as ever."""

_LEAST_LEFT: Final = 0.1

_KNOWN: Final = (0.4, 0.8)
"""Of what features tell, as far as it is no noise: where dominance begins to count, and where it counts in full."""

_LEAST: Final = 1 / 3
"""Against the prior, however much features repeat each other."""

_UNEVEN: Final = 0.1
"""Classes, 1 - H / ln C, from which on it is heeded in full that features repeat each other: .68 to .32 of two."""

_LEAST_BELIEVED: Final = 0.01
"""Against the prior, however much of what they tell is noise."""

_TINY: Final = 1e-12
"""A feature that tells nothing says the same of all classes, whatever its weight; the weight must not be 0."""

_NODES: Final = 32
"""Of the Gauss-Hermite quadrature: exact to four digits for Gaussians that overlap."""


def feature_weights(likelihoods: Sequence[Likelihood], prior: Array, explained: float) -> list[float]:
    """A weight for every feature, above 0 and at most 1.

    ``explained`` says how much of the discrete features' effects is no noise, from 0 to 1.
    """
    told = np.array([mutual_information(one, prior) for one in likelihoods])
    entropy = -float(prior @ np.log(prior))
    if not told.max(initial=0.0) > 0:
        return [1.0] * len(likelihoods)
    power = _overlap(told, entropy) + _dominance(told) * float(np.interp(explained, _KNOWN, (0, 1)))
    relative = np.maximum((told / told.max()) ** power, _TINY)
    reach = explained * float(told.sum() - told.max()) / entropy
    uneven = max(0.0, 1 - entropy / float(np.log(prior.size)))
    against_prior = max(_LEAST, min(1.0, _SHARE / reach)) ** min(1.0, uneven / _UNEVEN) if reach > 0 else 1.0
    believed = max(_LEAST_BELIEVED, min(1.0, explained / uneven)) if uneven > 0 else 1.0
    discrete = np.array([isinstance(one, DiscreteLikelihood) for one in likelihoods])
    weights: list[float] = (against_prior * relative * np.where(discrete, believed, 1.0)).tolist()
    return weights


def _overlap(told: Array, entropy: float) -> float:
    left = max(_LEAST_LEFT, 1 - float(told.max()) / entropy)
    return max(0.0, 1 - entropy / float(told.sum())) / 2 * max(1.0, _MUCH_LEFT / left) ** 2


def _dominance(told: Array) -> float:
    few = float(told.sum()) ** 2 / float(told @ told)
    return max(0.0, 1 - 2 * few / told.size) / 2


def mutual_information(likelihood: Likelihood, prior: Array) -> float:
    """Of a feature and the class under the model, in nats."""
    if isinstance(likelihood, DiscreteLikelihood):
        table = np.array(likelihood.table)
        joint = table * prior
        possible = joint > 0
        values = joint.sum(axis=1, keepdims=True)
        ratios = np.where(possible, table / np.where(values > 0, values, 1.0), 1.0)
        return max(0.0, float((joint * np.log(ratios)).sum()))
    return _gaussian_information(np.array(likelihood.mean), np.array(likelihood.variance), prior)


def _gaussian_information(mean: Array, variance: Array, prior: Array) -> float:
    """E[ln p(x | c) / p(x)], x drawn class by class."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    points = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    deviations = points[..., None] - mean
    logarithm = -0.5 * (deviations**2 / variance + np.log(variance))
    highest = logarithm.max(axis=-1, keepdims=True)
    mixture = np.log((np.exp(logarithm - highest) * prior).sum(axis=-1)) + highest[..., 0]
    classes = np.arange(mean.size)
    gained = (logarithm[classes, :, classes] - mixture) @ (weights / weights.sum())
    return max(0.0, float(prior @ gained))
