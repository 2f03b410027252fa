"""Histogram encoding with summation: a noisy one-hot vector."""

from __future__ import annotations

import numpy as np

from ldp_aggregator.mechanisms.analysis import Blanket, Integers, Rows, bits_blanket, bound_exponent
from ldp_aggregator.mechanisms.noisy_vector import NoisyVectorFacts
from ldp_aggregator.mechanisms.sampling import discrete_laplace
from protocols.exact import exp_bounds
from protocols.mechanisms import SummingHistogramEncoding


class SummingHistogramFacts(NoisyVectorFacts[SummingHistogramEncoding]):
    """Sums of reports are counts with noise."""

    name = "she"
    words = "histogram with Laplace noise: a noisy number for every possible answer"

    def blanket(self) -> Blanket:
        """The noise P(z) ~ a^|z|, a = exp(-1 / t), lives on whole counts, so P(z - 1) / P(z) is 1 / a from z = 1 on and
        a below: all that a cell z tells is whether it is 1 or more. Those bits are symmetric unary encoding with
        q = P(Z >= 1) = a / (1 + a) and p = P(Z >= 0) = 1 / (1 + a). A smaller a gives bits of which those of a are
        noisier copies, so a is rounded down. Clamping looks at the noisy cell alone.
        """
        a, _ = exp_bounds(-bound_exponent(1 / self.mechanism.scale))
        return bits_blanket(1 / (1 + a), a / (1 + a))

    def perturb(self, items: Integers, rng: np.random.Generator) -> Rows:  # type: ignore[override]
        cells = discrete_laplace(self.mechanism.scale, (len(items), self.mechanism.domain_size), rng)
        cells[np.arange(len(items)), items] += 1
        return self.with_noise(cells)

    def tally(self, holders: Integers, rng: np.random.Generator) -> Integers:
        return holders + self.noise_sums(int(holders.sum()), rng)
