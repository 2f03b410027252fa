"""Fitting the projection that a campaign ships: PCA or DCA, from public data or from a private round of second moments.

Everything is computed in t = 2 (x - low) / (high - low) - 1, scaled by the *public* bounds. From public data the
moments are exact; from a private round they are the unbiased estimates of what its devices answered, so that no raw
record was needed, and fitting is post-processing that costs no privacy.

* PCA: eigenvectors of the covariance.
* DCA (Kung 2017, "Discriminant component analysis for privacy protection and visualization of big data"): generalised
  eigenvectors of (S_B + rho' I) against (S + rho I), S the total and S_B the between-class scatter. That of k classes
  has k - 1 directions; whatever came after them would tell nothing, and take its part of the devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.linalg import eigh

from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.cells import Array, Cells
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.moments import SIGNIFICANT, present_shares
from ldp_aggregator.learning.frames import column_of, declared_indices, numbers, rescaled
from ldp_protocols import Campaign
from ldp_protocols.document.authored import MOMENTS
from ldp_protocols.document.questions import PRODUCT, VALUE
from ldp_protocols.document.schema import METHODS, PUBLIC, Label
from ldp_protocols.features import NumericFeature, describe_number

DEFAULT_RIDGE: Final = 1e-3
"""rho for exact moments, as a share of the inputs' mean variance."""

DEFAULT_SPREAD: Final = 3.0
"""Output bounds: so many standard deviations around the mean, where that is inside what the inputs' bounds allow."""


@dataclass(frozen=True)
class InputMoments:
    """Moments of the m inputs in t.

    Attributes
    ----------
    mean, covariance
        Of all records; shapes (m,) and (m, m).
    between
        Between-class scatter sum_c P(c) (mean_c - mean)(mean_c - mean)^T, shape (m, m).
    classes
        Those that were seen.
    noise
        Standard error of a covariance entry; 0 for exact moments.
    fitted_on
        ``public``, or the id of the private round.
    fitted_study, fitted_epsilon
        The private round's study, and what it cost a device in all; None for public data.
    """

    features: tuple[NumericFeature, ...]
    mean: Array
    covariance: Array
    between: Array
    classes: int
    noise: float
    fitted_on: str
    fitted_study: str | None = None
    fitted_epsilon: float | None = None


def moments_of_table(features: Sequence[NumericFeature], label: Label, frame: pd.DataFrame) -> InputMoments:
    """Moments of a *public* table; rows with a missing input or an undeclared class are left out."""
    t = np.column_stack([rescaled(feature, numbers(column_of(frame, feature))) for feature in features])
    if label.name not in frame.columns:
        raise ValueError(f"the table has no column {label.name!r} with the classes")
    classes = declared_indices(label, frame[label.name])
    usable = ~np.isnan(t).any(axis=1) & (classes >= 0)
    if usable.sum() < 2:
        raise ValueError(
            f"{int(usable.sum())} of {len(frame)} rows have every input and a declared class; at least 2 are needed"
        )
    t, classes = t[usable], classes[usable]
    mean = t.mean(axis=0)
    members = [t[classes == c] for c in np.unique(classes)]
    offsets = np.array([one.mean(axis=0) - mean for one in members])
    between = (offsets.T * [len(one) / len(t) for one in members]) @ offsets
    covariance = np.cov(t.T, bias=True).reshape(between.shape)
    return InputMoments(tuple(features), mean, covariance, between, len(members), 0.0, PUBLIC)


def moments_of_round(campaign: Campaign, tally: Tally) -> InputMoments:
    """Moments of a private round, unbiased but noisy; the covariance is made positive definite.

    The expected noise is subtracted from the between-class scatter; classes that may be absent take no part.
    """
    if campaign.asks != MOMENTS:
        raise ValueError(f'campaign {campaign.id} asks for a model; a private round has "asks": "moments"')
    found = estimate(campaign, tally)
    silent = [q.question.index for q in found.questions if q.n == 0 and q.question.kind != "label"]
    if silent:
        raise ValueError(
            f"{len(silent)} of {len(found.questions)} questions have no reports yet; let more devices answer"
        )
    features = tuple(f.number for f in campaign.asked if f.number)
    answered = [found.asking(feature.name, VALUE) for feature in features]
    present = [present_shares(found.class_prior, [one]) for one in answered]
    values, shares = np.array([one.cells.value for one in answered]), np.array([one.of_class.value for one in present])
    whole = np.array([[_seen(one.whole)] for one in present])
    mean = values.sum(axis=1) / whole[:, 0]
    second, noise = _second_moments(features, found)
    covariance = _positive(second - np.outer(mean, mean))
    seen = (shares > SIGNIFICANT * np.sqrt([one.of_class.variance for one in present])).all(axis=0)
    shares, weights = shares[:, seen], found.class_prior.value[seen]
    offsets = values[:, seen] / shares - mean[:, None]
    variances = np.array([one.cells.variance for one in answered])
    # A class's sum is a part of the mean, too: the two do not vary apart.
    unsure = variances[:, seen] * (1 / shares**2 - 2 / (shares * whole)) + variances.sum(axis=1)[:, None] / whole**2
    between = (offsets * weights) @ offsets.T - np.diag(unsure @ weights)
    private = campaign.id, campaign.study, campaign.privacy.epsilon
    return InputMoments(features, mean, covariance, between, int(seen.sum()), noise, *private)


def fit_projection(
    moments: InputMoments,
    method: str,
    components: int,
    *,
    ridge: float | None = None,
    signal_ridge: float = 0.0,
    spread: float | None = DEFAULT_SPREAD,
    bins: int | None = None,
) -> dict[str, Any]:
    """The ``projection`` of a draft.

    Parameters
    ----------
    moments
        Of the inputs; see :func:`moments_of_table` and :func:`moments_of_round`.
    method, components
        ``pca`` or ``dca``; 1 to m outputs, of DCA at most one fewer than classes, named ``pca1``, ``pca2``, ...
    ridge, signal_ridge
        rho and rho' of DCA, in squared units of t. ``ridge`` None takes 0.001 of the mean variance, or the size of the
        noise in the covariance (half the spectral norm of a matrix of noise, sqrt(m) standard errors), if that is
        larger.
    spread
        Output bounds in standard deviations around the mean, cut to what the inputs' bounds allow; None takes just
        these.
    bins
        Discretise the outputs; None models them as Gaussian.
    """
    size = len(moments.features)
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if not 1 <= components <= size:
        raise ValueError(f"{size} inputs have 1 to {size} components, not {components}")
    if method != "pca" and components >= moments.classes:
        raise ValueError(
            f"{moments.classes} classes with enough records differ in {moments.classes - 1} directions: a further one "
            f"of DCA tells nothing and takes devices from the others; ask for so many at most, not {components}"
        )
    directions = _directions(moments, method, ridge, signal_ridge)[:, :components].T
    deviations = np.sqrt(np.einsum("ij,jk,ik->i", directions, moments.covariance, directions))
    half = np.array([(float(f.high) - float(f.low)) / 2 for f in moments.features])
    middle = np.array([(float(f.high) + float(f.low)) / 2 for f in moments.features])
    missing = all(feature.missing for feature in moments.features)  # An output is missing where all its inputs are.
    outputs = []
    for position, (direction, deviation) in enumerate(zip(directions, deviations, strict=True), start=1):
        ends = direction * np.array([-1 - moments.mean, 1 - moments.mean])  # Over all inputs t in [-1, 1].
        low, high = float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())
        if spread is not None and deviation > 0:
            low, high = max(low, -spread * deviation), min(high, spread * deviation)
        outputs.append(describe_number(f"{method}{position}", low, high, bins=bins, missing=missing))
    private = {"fitted_study": moments.fitted_study, "fitted_epsilon": moments.fitted_epsilon}
    return {
        "method": method,
        "inputs": [feature.name for feature in moments.features],
        "mean": (middle + half * moments.mean).tolist(),
        "scale": half.tolist(),
        "matrix": directions.tolist(),
        "outputs": outputs,
        "fitted_on": moments.fitted_on,
        **({} if moments.fitted_on == PUBLIC else private),
    }


def add_to_draft(draft: Mapping[str, Any], projection: Mapping[str, Any], study: str | None = None) -> dict[str, Any]:
    """The draft with ``projection``; after a private round also with its study, so that nobody answers both rounds."""
    if study is not None and draft.get("study") not in (None, study):
        raise ValueError(f"the draft's study is {draft['study']!r}; it must be the private round's, {study!r}")
    return {**draft, "projection": dict(projection), **({} if study is None else {"study": study})}


def _directions(moments: InputMoments, method: str, ridge: float | None, signal_ridge: float) -> Array:
    """Unit columns, the best first; of the two signs the one whose largest entry is positive."""
    size = len(moments.features)
    if method == "pca":
        _, vectors = eigh(moments.covariance)
    else:
        scatter = float(np.trace(moments.covariance)) / size
        rho = max(DEFAULT_RIDGE * scatter, moments.noise * size**0.5) if ridge is None else ridge
        if rho < 0 or signal_ridge < 0:
            raise ValueError("ridges must be at least 0")
        try:
            _, vectors = eigh(moments.between + signal_ridge * np.eye(size), moments.covariance + rho * np.eye(size))
        except np.linalg.LinAlgError:
            raise ValueError("the scatter is singular; use a ridge above 0, such as 0.001") from None
    vectors = vectors[:, ::-1] / np.linalg.norm(vectors[:, ::-1], axis=0)
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(size)]
    return np.asarray(vectors * np.sign(largest))


def _second_moments(features: Sequence[NumericFeature], found: Estimates) -> tuple[Array, float]:
    """E[t t^T] from the product questions, and the standard error of an entry."""
    position = {feature.name: index for index, feature in enumerate(features)}
    second = np.zeros((len(features), len(features)))
    variances = []
    for one in found.questions:
        question = one.question
        if question.kind != PRODUCT or question.feature is None or question.other is None:
            continue
        i, j = position[question.feature], position[question.other]
        value, variance = float(one.cells.value[0]), float(one.cells.variance[0])
        if one.missing is not None:
            present = _seen(Cells.normal(1 - one.missing.value, one.missing.variance))
            value, variance = value / present, variance / present**2
        if i == j:  # A square is asked as 2 t^2 - 1.
            value, variance = (value + 1) / 2, variance / 4
        second[i, j] = second[j, i] = value
        variances.append(variance)
    return second, float(np.sqrt(np.mean(variances)))


def _seen(present: Cells) -> float:
    """A share that is divided by: of the records that hold a value. Raises ValueError where hardly any does."""
    share = float(present.value[0])
    if not share > SIGNIFICANT * float(np.sqrt(present.variance[0])):
        raise ValueError("too few devices hold a value of some input; leave it out, or let more devices answer")
    return share


def _positive(matrix: Array) -> Array:
    """The nearest symmetric matrix with eigenvalues of at least a millionth."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 1e-6)) @ vectors.T)
