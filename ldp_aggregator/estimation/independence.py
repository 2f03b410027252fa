"""Test whether the features of a campaign tell anything of the class, against features that tell nothing.

A model and what it is judged by must not share their noise: tables that are made of noise look as if they told the
class, and a posterior of the same reports agrees. So the reports themselves are tested.

*A table.* Of every discrete feature, and of every quantity asked as ``sign`` (its bit is a value like any other, and
tells nothing where the quantity tells nothing), the reports give unbiased estimates E of the cells f = m (x) pi, m the
shares of the values and pi of the classes among those who hold one. Their covariance is

    n Cov(E) = diag(w) + b 1 1' + g f' + f g',
    w = (s - n_0 - 2 (n_1 - n_0) f) / (p - q)^2 + noise,   s = q + (p - q) f,

with b = (n_0 - q^2) / (p - q)^2 and some g, for support probabilities p, q, n_1, n_0. Both m and pi are nuisances with
the directions A = {e_v (x) pi, m (x) e_c}, among which is f, so that g does not matter (neither do the cells of who
holds no value, which are free): the efficient score (Cox and Hinkley 1974, section 9.3) is what generalised least
squares leave of E beside A. Its squared length is chi-squared with (K - 1)(C - 1) degrees of freedom, and depends on
no common estimate of P(class). It costs K C^2 operations.

*A sum.* A quantity asked as ``laplace`` or ``onebit`` gives sums S with mean mu pi where it tells nothing, and needs
P(class) from elsewhere. The error of that is common to all sums, so that all of them are fitted together: one mu each,
and one pi that has to agree with the estimate of P(class), too. C - 1 degrees of freedom each.

*The same devices.* Where one device answers everything, the noise of two questions is independent and the records
behind them are not: features may repeat each other. How they go together nothing in the reports says, so the worst is
assumed. Of each whitened score the records have a share of at most r, the cells' f / w in falling order (they bound the
eigenvalues of what is left of diag(f), by Cauchy's interlacing); with the records of all questions alike the scores
of one order have the covariance diag(1 - r) + sqrt(r r'), and the sum of squares is a mixture of chi-squared ones with
its eigenvalues as weights, whose tail three moments tell well (Imhof, Biometrika 48, 1961, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import chi2

from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimators import (
    SIGNS,
    CampaignEstimates,
    QuestionEstimate,
    cell_variance,
    class_shares,
    covariance_of_sums,
    pool,
    pool_shares,
)
from ldp_aggregator.estimation.evidence import MOST_MISSING, PSEUDO_REPORTS
from ldp_aggregator.estimation.posterior import Posterior
from ldp_aggregator.estimation.simplex import norm_sub
from ldp_aggregator.mechanisms import analysis_of
from ldp_protocols import Question
from ldp_protocols.document.questions import PAIR, SIGN, SQUARE, VALUE

LEAST_EXPECTED: Final = 3.0
"""Reports that support a cell, so that a squared deviation is nearly chi-squared: rarer values are taken together."""


@dataclass(frozen=True)
class Answers:
    """Estimates of one question, in all campaigns that have answers to it; ``alike`` tells of each whether the same
    devices answered other questions.
    """

    estimates: Sequence[QuestionEstimate]
    alike: Sequence[bool]

    @property
    def weights(self) -> Array:
        """Those by which pooled estimates are added up."""
        return pool_shares(self.estimates)


@dataclass(frozen=True)
class Score:
    """The rest of the cells of questions beside all nuisances: its squared length, and for each question what share
    of each of its degrees of freedom is of records that other questions share, in falling order.
    """

    square: float
    shared: Sequence[Array]


def p_value(
    estimates: Sequence[CampaignEstimates],
    posterior: Posterior,
    gaussian: Sequence[str],
    shares: Cells,
    telling: Sequence[QuestionEstimate],
) -> float:
    """Probability that features which tell nothing of the class look as if they told so much; 1 without reports.

    ``posterior`` has the shares of values and classes to test all campaigns' ``estimates`` at; ``shares`` is the
    unbiased P(class) that the questions ``telling`` give, which the sums of the ``gaussian`` features are of.
    """
    scores, sums = [], []
    for group, its in posterior.groups:
        for place, name in enumerate(group.names):
            shares_of_it = its.values[place], its.joint[place]
            scores += [_score_of_table(answers, *shares_of_it) for answers in _answers(estimates, name, PAIR)]
    for answers in [one for name in gaussian for kind in (VALUE, SQUARE) for one in _answers(estimates, name, kind)]:
        if answers.estimates[0].question.encoding == SIGN:
            scores.append(_score_of_table(answers, *_shares_of_signs(answers, posterior.classes.value)))
        elif np.isfinite(pool(answers.estimates).variance).all():
            sums.append(answers)
    if sums and np.isfinite(shares.variance).all():
        scores.append(_score_of_sums(sums, posterior.classes.value, shares, telling))
    return _tail(sum(score.square for score in scores), [one for score in scores for one in score.shared])


def joint_p_value(estimates: CampaignEstimates, joint: QuestionEstimate) -> float:
    """Probability that two features which tell nothing of each other look as if they told so much, among those who hold
    a value of both; 1 without reports. Their shares are those that the questions about one of them give.
    """
    alone = [estimates.asking(str(name), PAIR) for name in (joint.question.feature, joint.question.other)]
    features = [estimates.campaign.feature(one.question.feature) for one in alone]
    if not joint.n or not all(one.n for one in alone):
        return 1.0
    table = joint.cells.value.reshape([one.cells for one in features])[: features[0].size, : features[1].size]
    first, other = (
        norm_sub(estimate.cells.value[: feature.size] / max(estimate.cells.value[: feature.size].sum(), 1e-12))
        for estimate, feature in zip(alone, features, strict=True)
    )
    present = min(max(float(table.sum()), 0.0), 1.0)
    score = _score_of_table(Answers([joint], [False]), first, present * other, table)
    return _tail(score.square, score.shared)


def _answers(estimates: Sequence[CampaignEstimates], feature: str, kind: str) -> list[Answers]:
    """Answers to a question, those of one encoding together."""
    found: dict[str, list[tuple[QuestionEstimate, bool]]] = {}
    for campaign in estimates:
        one = campaign.asking(feature, kind)
        if one.n > 0:
            alike = campaign.campaign.privacy.answers == "all"
            found.setdefault(one.question.encoding, []).append((one, alike))
    return [Answers([one for one, _ in pairs], [alike for _, alike in pairs]) for pairs in found.values()]


def _shares_of_signs(answers: Answers, classes: Array) -> tuple[Array, Array]:
    """P(sign), shape (2,), and P(class, present), shape (C,), of a quantity that is asked as a sign."""
    cells = _pooled(answers)
    absent = classes * 0.0
    if answers.estimates[0].missing is not None:
        absent = np.clip(classes - cells.sum(axis=0), 0.0, MOST_MISSING * classes)
    present = classes - absent
    both = np.clip(cells.sum(axis=1), 0.0, None)
    reports = sum(one.n / cell_variance(one) for one in answers.estimates)
    share = both / both.sum() if both.sum() > 0 else np.full(2, 0.5)
    return (reports * share + PSEUDO_REPORTS / 2) / (reports + PSEUDO_REPORTS), present


def _pooled(answers: Answers) -> Array:
    """Estimates of P(value, class) of those who hold a value, shape (K, C); of a sign in the order of ``SIGNS``."""
    pooled: Array = np.tensordot(answers.weights, [_table(one) for one in answers.estimates], 1)
    return pooled


def _table(one: QuestionEstimate) -> Array:
    if one.classes is None:
        raise ValueError(f"question {one.question.index} does not carry the class")
    if one.question.encoding == SIGN:  # Half of who holds a value is of either sign, but for the sum of the signs.
        present = one.classes.value if one.missing is None else one.classes.value - one.missing.value
        return np.asarray((present + SIGNS[:, None] * one.cells.value) / 2)
    table = one.cells.value.reshape(-1, one.classes.value.size)
    return table if one.missing is None else table[:-1]


def _score_of_table(answers: Answers, marginal: Array, classes: Array, table: Array | None = None) -> Score:
    """Score of a table (the pooled one) at P(value | present), shape (K,), and P(class, present), shape (C,)."""
    table = _pooled(answers) if table is None else table
    frequencies = marginal[:, None] * classes
    variance, shared, expected = (np.zeros_like(table) for _ in range(3))
    common = 0.0
    for one, weight, alike in zip(answers.estimates, answers.weights.tolist(), answers.alike, strict=True):
        p, q, one_true, none_true, noise = analysis_of(one.question.mechanism).support
        supported, scale = q + (p - q) * frequencies, weight**2 / one.n
        variance += scale * ((supported - none_true - 2 * (one_true - none_true) * frequencies) / (p - q) ** 2 + noise)
        common += scale * (none_true - q**2) / (p - q) ** 2
        shared += scale * frequencies * alike
        expected += one.n * supported if not noise else np.inf
    groups = _together(marginal, expected.min(axis=1))
    if len(groups) < 2:
        return Score(0.0, ())
    table, variance, shared, members = (
        np.array([one[group].sum(axis=0) for group in groups]) for one in (table, variance, shared, np.ones_like(table))
    )
    marginal = np.array([marginal[group].sum() for group in groups])
    left, common_left = (_beside_shares(one, variance, marginal, classes) for one in (table, members))
    square = float((table * left).sum())
    square -= common * float((members * left).sum()) ** 2 / (1 + common * float((members * common_left).sum()))
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return Score(square, [np.sort((shared / variance).ravel())[::-1][:freedom]])


def _together(marginal: Array, expected: Array) -> list[Array]:
    """Values by groups, in which enough reports are expected to support the rarest cell: rare ones are one group."""
    order = np.argsort(-marginal, kind="stable")
    groups: list[list[int]] = []
    rest: list[int] = []
    supported = 0.0
    for place in order.tolist():
        if not rest and expected[place] >= LEAST_EXPECTED:
            groups.append([place])
        else:
            rest.append(place)
            supported += float(expected[place])
    if rest and (supported >= LEAST_EXPECTED or not groups):
        groups.append(rest)
    elif rest:
        groups[-1] += rest
    return [np.array(group) for group in groups]


def _beside_shares(table: Array, variance: Array, marginal: Array, classes: Array) -> Array:
    """P x: W x less its part that shares of values and of classes explain, W = diag(1 / variance); shape (K, C)."""
    weights = 1 / variance
    weighed = weights * table
    of_values = weights @ classes**2
    across = weights * marginal[:, None] * classes
    to_values, to_classes = weighed @ classes, marginal @ weighed
    normal = np.diag(marginal**2 @ weights) - across.T @ (across / of_values[:, None])
    # One direction is both: f itself.
    moved = np.linalg.lstsq(normal, to_classes - across.T @ (to_values / of_values), rcond=None)[0]
    value_parts = (to_values - across @ moved) / of_values
    return weights * (table - value_parts[:, None] * classes - marginal[:, None] * moved)


def _score_of_sums(
    sums: Sequence[Answers], classes: Array, shares: Cells, telling: Sequence[QuestionEstimate]
) -> Score:
    """Score of sums of which each is a mean times P(class), fitted together with P(class) as told."""
    size = classes.size
    gain, pull, square = np.zeros((size, size)), np.zeros(size), 0.0
    shared = []
    for answers in sums:
        cells = pool(answers.estimates)
        mean = float(np.clip(cells.value.sum(), -1.0, 1.0))
        reports = sum(one.n for one in answers.estimates)
        # The records' part of the covariance, - S S' / n, is in the direction of P(class), which is free. There is none
        # if a report is about one class that it drew: then different devices tell two classes.
        draws = analysis_of(answers.estimates[0].question.mechanism).cell_share < 1
        variance = cells.variance + (mean * classes) ** 2 / reports * (not draws)
        weights = 1 / variance
        across = weights * classes
        projected = np.diag(weights) - np.outer(across, across) / (across @ classes)
        left = cells.value - mean * shares.value
        gain += mean**2 * projected
        pull += mean * (projected @ left)
        square += float(left @ projected @ left)
        parts = zip(answers.weights, answers.estimates, answers.alike, strict=True)
        alike = sum(weight**2 / one.n for weight, one, shared_devices in parts if shared_devices)
        shared.append(np.sort(np.minimum(1.0, alike * classes / variance))[::-1][: size - 1])
    spread = _covariance_of_classes(telling, classes)
    # What is left is of S - mu times P(class) as told. An error d of that is chosen that explains the most of it.
    root = np.linalg.cholesky(spread + 1e-12 * np.trace(spread) * np.eye(size))  # Direct encoding's is singular.
    inner = np.eye(size) + root.T @ gain @ root
    square -= float(pull @ root @ np.linalg.solve(inner, root.T @ pull))
    return Score(square, shared)


def _covariance_of_classes(telling: Sequence[QuestionEstimate], classes: Array) -> Array:
    """Covariance of the pooled estimate of P(class), shape (C, C)."""
    answered = [one for one in telling if one.n > 0 and one.classes is not None]
    parts = [covariance_of_shares(one.question, classes) / one.n for one in answered]
    return np.asarray(np.tensordot(class_shares(answered, classes.size) ** 2, parts, 1))


def covariance_of_shares(question: Question, classes: Array) -> Array:
    """n times the covariance of P(class) as one question tells it, each share a sum of cells, shape (C, C)."""
    members = np.full(classes.size, question.domain_size // classes.size)
    variance, covariance, _ = covariance_of_sums(question, (members, classes), (members[:, None], classes[:, None]))
    covariance[np.diag_indices(classes.size)] = variance
    return covariance


def _tail(squares: float, shared: Sequence[Array]) -> float:
    """Probability that scores which tell nothing are as long, if what they share is as much alike as may be."""
    freedom = sum(one.size for one in shared)
    if not freedom:
        return 1.0
    depth = max(one.size for one in shared)
    cumulants = np.zeros(3)  # Sums of the first, second and third powers of the weights of the mixture.
    for place in range(depth):
        part = np.array([one[place] for one in shared if one.size > place])
        root = np.sqrt(part)
        weights = np.linalg.eigvalsh(np.diag(1 - part) + np.outer(root, root)) if part.any() else np.ones(part.size)
        cumulants += [(weights**power).sum() for power in (1, 2, 3)]
    first, second, third = cumulants
    like = second**3 / third**2
    return float(chi2.sf(max(0.0, like + (squares - first) * np.sqrt(like / second)), like))
