"""Unbiased estimators, one per family of mechanisms: from counts to values, variances and 95 % intervals; and the
variances to expect before anyone is asked.

A variance is that of the whole procedure: the records are a random sample of the population, and the mechanism adds its
noise. Intervals of pure protocols are Wilson's on the support count, which is binomial with success q + (p - q) f,
mapped affinely; sums get a normal interval.

Independent estimates of the same thing are combined by inverse variance. The weights come from the *predicted*
variances (number of reports and mechanism only), not from the estimated ones, so that a weight never depends on the
noise it weighs and the pooled estimate stays unbiased.

A variance is expected at given frequencies or at even ones, before any post-processing: the noise of the mechanism at
the frequency of the cell, the spread of the records, and the chance in how many devices draw a question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Final

import numpy as np

from ldp_aggregator.estimation.cells import Array, Cells, Counts, wilson
from ldp_aggregator.estimation.simplex import post_process
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import Analysis, noise_variance, sum_variance
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, JOINT, MOMENT, PAIR, PRODUCT, RIGHT, SIGN, VALUE

SIGNS: Final = np.array([-1.0, 1.0])
"""The signs that the cells of one class stand for, where a question is asked as ``sign``. A place for what is missing
comes after them, and has no sign.
"""


@dataclass(frozen=True)
class QuestionEstimate:
    """Everything that the reports to one question tell.

    Attributes
    ----------
    cells
        Label: P(class), shape (k,). Pair: P(value, class), shape (values * k,), index ``value * k + class``, where a
        value may be missing with k cells more. Joint: P(value, value of other), what is missing being a value. Right:
        the shares of devices for which the model is wrong, and right, shape (2,). Score: P(place of the score, class),
        shape (places * k,). Value and square of a Gaussian feature: P(class) E[v | class], shape (k,), v the asked
        quantity in [-1, 1]. Product: E[v], shape (1,). A missing v adds nothing: then it is P(class, present) E[v |
        class, present].
    processed
        The cells of a question about an index after post-processing; None for the others.
    classes
        P(class) as this question's reports tell it, shape (k,); None where they do not (right, ``laplace``,
        ``onebit``).
    missing, missing_share
        P(missing, class), shape (k,) (of a product (1,)), and their sum, shape (1,); None where no value is missing.
    n
        Reports. Without any, values are uninformed (uniform, or zero) and variances infinite.
    """

    question: Question
    n: int
    cells: Cells
    processed: Array | None
    classes: Cells | None
    missing: Cells | None = None
    missing_share: Cells | None = None


@dataclass(frozen=True)
class CampaignEstimates:
    """The estimates of all questions of a campaign.

    ``class_prior`` is P(class), unbiased, pooled over every question that carries the class. ``per_liar`` has, for
    every question's cells, the most that one made-up report moves them, ``class_prior_per_liar`` the most that one liar
    moves a class's share; see :mod:`ldp_aggregator.estimation.poisoning`.
    """

    campaign: Campaign
    questions: tuple[QuestionEstimate, ...]
    class_prior: Cells
    post: str
    per_liar: tuple[Array, ...]
    class_prior_per_liar: float

    def __getitem__(self, question: int) -> QuestionEstimate:
        return self.questions[question]

    def asking(self, feature: str, kind: str) -> QuestionEstimate:
        """The estimate of the one question of a kind about a feature."""
        return self._asking[kind, feature]

    @cached_property
    def _asking(self) -> Mapping[tuple[str, str | None], QuestionEstimate]:
        return {(one.question.kind, one.question.feature): one for one in self.questions}


def estimate_question(
    question: Question, n: int, counts: Counts, classes: int, post: str, *, missing: bool = False
) -> QuestionEstimate:
    """The estimate of a question from ``n`` reports; ``post`` as in :mod:`~ldp_aggregator.estimation.simplex`."""
    if question.kind == PRODUCT:
        classes = 1
    of_class = _estimate_classes(question, n, counts, classes) if classes > 1 else None
    cells = _estimate_cells(question, n, counts, classes)
    processed = post_process(cells.value, n, post) if question.encoding == INDEX else None
    found = QuestionEstimate(question, n, cells, processed, of_class)
    if not missing or question.kind == JOINT:
        return found
    absent, share = _estimate_missing(question, n, counts, classes)
    return replace(found, missing=absent, missing_share=share)


def _estimate_cells(question: Question, n: int, counts: Counts, classes: int) -> Cells:
    """The cells of a question (see ``QuestionEstimate.cells``) from ``n`` reports with these counts."""
    if n == 0:
        frequencies = question.encoding == INDEX
        return uninformed(question.domain_size if frequencies else classes, frequencies=frequencies)
    analysis = analysis_of(question.mechanism)
    if question.encoding == INDEX:
        return _frequencies(analysis, n, counts)
    if question.encoding == SIGN:
        return _contrasts(analysis, n, counts.reshape(classes, -1)[:, : SIGNS.size])
    return Cells.normal(*analysis.estimate_moments(n, counts))


def _estimate_classes(question: Question, n: int, counts: Counts, classes: int) -> Cells | None:
    """P(class), shape (k,), from a question that carries it; None for those that do not.

    A pair question's joint table and a sign question's bits both add up to it, over m cells per class. The variance of
    the sum follows from ``Mechanism.sum_variance``; the spread f (1 - f) is the records' own.
    """
    if question.encoding not in (INDEX, SIGN) or question.kind == RIGHT:
        return None
    if n == 0:
        return uninformed(classes, frequencies=True)
    by_class = counts.reshape(classes, -1) if question.encoding == SIGN else counts.reshape(-1, classes).T
    return _together(question, n, by_class.sum(axis=1), question.domain_size // classes)


def _estimate_missing(question: Question, n: int, counts: Counts, classes: int) -> tuple[Cells, Cells]:
    """``missing`` and ``missing_share`` of a question whose last cell (of a sign: the last of each class) says so."""
    if n == 0:
        return _untold(classes), _untold(1)
    absent = counts.reshape(classes, -1)[:, -1] if question.encoding == SIGN else counts[-classes:]
    return _together(question, n, absent, 1), _together(question, n, absent.sum(keepdims=True), classes)


def _untold(size: int) -> Cells:
    """A share that nobody told: taken to be 0, and known to be no more than 1."""
    return Cells(np.zeros(size), np.full(size, np.inf), np.zeros(size), np.ones(size))


def _together(question: Question, n: int, totals: Counts, members: int) -> Cells:
    """The shares of groups of ``members`` cells, from the sums of their counts."""
    analysis = analysis_of(question.mechanism)
    return sums_of_cells(
        question, n, (totals / (n * analysis.unit) - members * analysis.support.q) / analysis.gain, members
    )


def sums_of_cells(question: Question, n: int, value: Array, members: int) -> Cells:
    """``value``, each the sum of the estimates of ``members`` cells of a question, with variance and interval."""
    inside = np.minimum(np.maximum(value, 0.0), 1.0)
    none, every = (sum_variance(question.mechanism, members, frequency) for frequency in (0.0, 1.0))
    noise = none + (every - none) * inside  # sum_variance is affine in the frequency.
    return Cells.normal(value, (noise + inside * (1 - inside) + 0.5 / n) / n)


def uninformed(size: int, *, frequencies: bool) -> Cells:
    """An estimate from no report: uniform frequencies (or zero sums), and the whole range as interval."""
    value = np.full(size, 1 / size if frequencies else 0.0)
    low = np.full(size, 0.0 if frequencies else -1.0)
    return Cells(value, np.full(size, np.inf), low, np.ones(size))


def _frequencies(analysis: Analysis[Any], n: int, counts: Counts) -> Cells:
    """E_v = (C_v / n - q) / (p - q). Support counts are binomial, which their variance, kept above 0 by half a count,
    and Wilson's interval follow; sums with noise get the noise, and the spread f (1 - f) of the records.
    """
    p, q, *_, noise = analysis.support
    share = counts / (n * analysis.unit)
    if noise:
        frequency = np.clip(share, 0.0, 1.0)
        return Cells.normal(share, (noise + frequency * (1 - frequency)) / n)
    success = (counts + 0.5) / (n + 1)
    value, low, high = ((one - q) / (p - q) for one in (share, *wilson(counts, n)))
    return Cells(value, success * (1 - success) / (n * (p - q) ** 2), low, high)


def _contrasts(analysis: Analysis[Any], n: int, counts: Counts) -> Cells:
    """Estimate sums of signs, shape (k,), from counts of shape (k, m): a report adds the signs of the cells of a class
    that it supports.

    Half of a class's m cells have either sign s, so that the sums of s_i s_j over two of them are -m: of a class with
    frequency f the second moment is m q + (p - q) f - m b_0 - 2 f (b_1 - b_0), b_1 and b_0 being the
    probabilities that two cells are supported together, where one of them is true and where none is.
    """
    p, q, one_true, none_true, _ = analysis.support
    shares = counts / n
    value = shares @ SIGNS / (p - q)
    members, supported = counts.shape[1], shares.sum(axis=1)
    frequency = np.clip((supported - members * q) / (p - q), 0.0, 1.0)
    both = members * none_true + 2 * frequency * (one_true - none_true)
    second_moment = (supported - both) / (p - q) ** 2
    return Cells.normal(value, np.maximum(second_moment - value**2, 0.5 / n) / n)


def pool(estimates: Sequence[QuestionEstimate]) -> Cells:
    """The cells of the same question asked in several campaigns, as one."""
    if len(estimates) == 1:
        return estimates[0].cells
    answered = [e for e in estimates if e.n > 0]
    if not answered:
        return estimates[0].cells
    return weighted([e.cells for e in answered], pool_shares(answered))


def pool_shares(estimates: Sequence[QuestionEstimate]) -> Array:
    """The share that each campaign's estimate of the same question has in the pooled one."""
    weights = np.array([e.n / cell_variance(e) for e in estimates])
    return np.asarray(weights / weights.sum())


def pool_classes(estimates: Sequence[QuestionEstimate], classes: int, *, shared_records: bool) -> Cells:
    """P(class), shape (k,), from every question that carries the class.

    ``shared_records`` says that the same devices answered all questions (``answers: "all"``): then the records' own
    spread is in every estimate alike and is not reduced by pooling. Of one class everybody is.
    """
    if classes == 1:
        return Cells.normal(np.ones(1), np.zeros(1))
    telling = [(e, e.classes) for e in estimates if e.classes is not None and e.n > 0]
    if not telling:
        return uninformed(classes, frequencies=True)
    shares = class_shares([e for e, _ in telling], classes)
    pooled = weighted([c for _, c in telling], shares)
    if not shared_records:
        return pooled
    inside = np.clip(pooled.value, 0.0, 1.0)
    spread = inside * (1 - inside)
    largest = max(e.n for e, _ in telling)
    noise_only = weighted(
        [Cells.normal(c.value, np.maximum(c.variance - spread / e.n, 0.0)) for e, c in telling], shares
    )
    return Cells.normal(pooled.value, noise_only.variance + spread / largest)


def class_shares(estimates: Sequence[QuestionEstimate], classes: int) -> Array:
    """The share that each of these questions, all of which carry the class, has in the pooled P(class)."""
    weights = np.array([e.n / class_variance(e, classes) for e in estimates])
    return np.asarray(weights / weights.sum())


def weighted(parts: Sequence[Cells], shares: Array) -> Cells:
    """The sum of independent estimates, each times its share."""
    column = shares[:, None]
    value = (column * [part.value for part in parts]).sum(axis=0)
    return Cells.normal(value, (column**2 * [part.variance for part in parts]).sum(axis=0))


def cell_variance(estimate: QuestionEstimate) -> float:
    """Predicted n Var of one cell, at equal frequencies."""
    question = estimate.question
    if question.encoding == SIGN:
        members = SIGNS.size
        share = members / question.domain_size
        return question.mechanism.signs_variance(members, share) + share
    return noise_variance(question.mechanism, 1 / question.domain_size) + 1 / question.domain_size


def class_variance(estimate: QuestionEstimate, classes: int) -> float:
    """Predicted n Var of one class's share, at equal classes; or of whatever else as many cells add up to."""
    question = estimate.question
    members = question.domain_size // classes
    spread = (1 - 1 / classes) / classes
    if question.encoding == MOMENT:
        raise ValueError(f"question {question.index} does not carry the class")
    return sum_variance(question.mechanism, members, 1 / classes) + spread


def covariance_of_sums(
    question: Question, first: tuple[Array | int, Array], second: tuple[Array | int, Array]
) -> tuple[Array, Array, Array]:
    """`n` times the variance of a sum of cells, its covariance with a sum of other cells, and the variance of that; of
    each sum the number of its cells, and their frequencies added up.
    """
    p, q, one_true, none_true, noise = analysis_of(question.mechanism).support

    def supported(members: Array | int, total: Array) -> Array:
        return members * q + (p - q) * total

    def variance(members: Array | int, total: Array) -> Array:
        pairs = members * (members - 1) * none_true + 2 * (members - 1) * (one_true - none_true) * total
        own = supported(members, total)
        return (own + pairs - own**2) / (p - q) ** 2 + members * noise

    (inside, inside_sum), (others, others_sum) = first, second
    together = inside * others * none_true + (one_true - none_true) * (others * inside_sum + inside * others_sum)
    across = (together - supported(*first) * supported(*second)) / (p - q) ** 2
    return variance(*first), across, variance(*second)


@dataclass(frozen=True)
class Expectation:
    """First and second moment, per estimated cell, of what one record adds to it before the noise."""

    mean: Array
    second: Array


def even_expectation(campaign: Campaign, question: Question) -> Expectation:
    """Equal classes and values, none of them missing; a quantity is t or 2 t^2 - 1 with t uniform on [-1, 1]."""
    if question.encoding == INDEX:
        share = np.full(question.domain_size, 1 / question.domain_size)
        if question.kind in (PAIR, JOINT):
            named = [campaign.feature(name) for name in (question.feature, question.other) if name]
            parts = [np.repeat((1 / one.size, 0.0), (one.size, one.missing)) for one in named]
            classes = len(campaign.label.classes)
            share = reduce(np.kron, [*parts, np.full(classes, 1 / classes)])
        return Expectation(share, share)
    k = 1 if question.kind == PRODUCT else len(campaign.label.classes)
    if question.kind == VALUE:
        mean, second = 0.0, 1 / 3
    elif question.kind == PRODUCT and question.other != question.feature:
        mean, second = 0.0, 1 / 9
    else:
        mean, second = -1 / 3, 7 / 15
    return expectation_of(question, np.full(k, mean / k), np.full(k, second / k), np.full(k, 1 / k))


def expectation_of(question: Question, mean: Array, second: Array, share: Array) -> Expectation:
    """With ``sign`` the value travels as a bit of +1 or -1, whose square is 1 wherever there is one."""
    return Expectation(mean, share if question.encoding == SIGN else second)


def variance_per_answer(question: Question, expected: Expectation) -> Array:
    """`n` times the variance of each estimated cell of a question with n answers."""
    analysis, mean, second = analysis_of(question.mechanism), expected.mean, expected.second
    if question.encoding == INDEX:
        p, q, *_, noise = analysis.support
        supported = q + (p - q) * mean
        return supported * (1 - supported) / (p - q) ** 2 + noise
    if question.encoding == SIGN:
        signs = np.array([question.mechanism.signs_variance(SIGNS.size, share) for share in second.tolist()])
        return signs + second - mean**2
    return analysis.moment_variance(mean, second)


def answers(campaign: Campaign, devices: int) -> list[float]:
    """The number of answers that each question can expect."""
    totals = {question.index: sum(one.weight for one in pool) for pool in campaign.pools for question in pool}
    return [devices * question.weight / totals[question.index] for question in campaign.questions]


def even_variances(campaign: Campaign) -> list[Array]:
    """:func:`variance_per_answer` of every question, every value and class being as likely as any other."""
    return [variance_per_answer(one, even_expectation(campaign, one)) for one in campaign.questions]


def expected_errors(campaign: Campaign, devices: int, variances: Sequence[Array]) -> list[Array]:
    """Standard errors of all cells of every question when ``devices`` >= 1 answer, from one answer's variances."""
    return [
        np.sqrt(variance / number * chance_of_number(question, number, devices))
        for question, variance, number in zip(campaign.questions, variances, answers(campaign, devices), strict=True)
    ]


def chance_of_number(question: Question, number: float, devices: int) -> float:
    """E[1 / n] E[n], the number n of reports about a cell being binomial."""
    about = number * analysis_of(question.mechanism).cell_share
    return 1 + (1 - about / devices) / about
