"""``auto``: the mechanism of least predicted variance for a question's domain and epsilon."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from protocols.document.questions import SIGN
from protocols.mechanisms import (
    DISCRETE,
    MOMENTS,
    PURE,
    AnyMechanism,
    Mechanism,
    PureMechanism,
    ThresholdingHistogramEncoding,
)

AUTO: Final = "auto"

_SQUARED_MEAN: Final = 1 / 3
"""E[t^2] of values, and of class means, that lie anywhere in [-1, 1] alike."""


def make_discrete(name: str, domain_size: int, epsilon: Fraction, theta: Fraction | None = None) -> Mechanism[int]:
    """The mechanism ``name`` (or, for ``auto``, the one of least variance at frequency 1/d) for an index below d.

    ``theta`` is the threshold of ``the``; None takes the best.
    """
    if name == AUTO:
        candidates = [make_discrete(known, domain_size, epsilon, theta) for known in DISCRETE]
        return min(candidates, key=lambda mechanism: mechanism.noise_variance(1 / domain_size))
    if name == ThresholdingHistogramEncoding.name:
        return ThresholdingHistogramEncoding.make(domain_size, epsilon, theta)
    return DISCRETE[name].make(domain_size, epsilon)


def make_sign(classes: int, epsilon: Fraction, *, missing: bool = False) -> PureMechanism:
    """The pure mechanism whose bit contrasts have the least variance on the 2 k cells of (class, bit), or on 3 k where
    the value may be ``missing``, which it is taken to be rarely.
    """
    made = (mechanism.make((2 + missing) * classes, epsilon) for mechanism in PURE.values())
    return min(made, key=lambda mechanism: contrast_variance(mechanism, classes))


def make_continuous(
    name: str, classes: int, epsilon: Fraction, *, classes_told: float = math.inf, alike: float = 1.0
) -> AnyMechanism:
    """The mechanism for a value with its class: ``laplace``, ``onebit``, ``sign``, or ``auto`` by predicted variance.

    What is predicted is n Var of a class's mean, P(class)^2 times, by the delta method: that of the class's sum and,
    times the squared mean, that of its share, which the sum is divided by. Equal classes; values, and class means,
    spread evenly over their bounds. In the sum the stochastic bit of ``sign`` adds P(class) (1 - E[value^2]) =
    2 / (3 k), which decides at large epsilon. In the share it helps: its reports tell the class, which those of
    ``laplace`` and ``onebit`` do not.

    ``classes_told`` is what the campaign's other questions tell about a class's share, 1 / (n Var), n being the reports
    to one question like this: infinite where the share needs no estimate, 0 where nothing else tells it. ``alike`` are
    the reports to all questions that get this mechanism, over those to one of them.
    """
    if name == SIGN:
        return make_sign(classes, epsilon)
    if name != AUTO:
        return MOMENTS[name].make(classes, epsilon)

    sign = make_sign(classes, epsilon)
    told_by_sign = classes_told + (alike / share_variance(sign, classes) if classes > 1 else math.inf)
    of_sign = contrast_variance(sign, classes) + (1 - _SQUARED_MEAN) / classes
    candidates: list[tuple[float, AnyMechanism]] = [(_of_mean(of_sign, told_by_sign), sign)]
    moments = [mechanism.make(classes, epsilon) for mechanism in MOMENTS.values()]
    candidates += [(_of_mean(made.noise_variance(1 / classes), classes_told), made) for made in moments]
    return min(candidates, key=lambda candidate: candidate[0])[1]


def share_variance(mechanism: Mechanism[int], classes: int) -> float:
    """N times the variance of one class's share, told by cells that come in equally many for each class."""
    share = 1 / classes
    return mechanism.sum_variance(mechanism.domain_size // classes, share) + share * (1 - share)


def contrast_variance(mechanism: Mechanism[int], classes: int) -> float:
    """N times the noise variance of a class's sum of signs, half of its cells having a minus, at equal classes."""
    cells = mechanism.domain_size // classes
    # The last of an odd number of cells of a class, where there is no value, has no sign.
    return mechanism.signs_variance(cells - cells % 2, 1 / classes)


def _of_mean(of_sum: float, told: float) -> float:
    """Return what :func:`make_continuous` compares."""
    return of_sum + (_SQUARED_MEAN / told if told else math.inf)
