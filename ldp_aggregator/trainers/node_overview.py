"""Overview of a federation's nodes: what each share tells of its table, how far its model is from the others', and what
no table can give. A share has all of its noise, so that whatever is computed from it costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from ldp_aggregator.node_statistics import SQUARE, SUM, TABLE, Integers, decode_share
from ldp_aggregator.trainers.schemas import Schema
from ldp_aggregator.trainers.sensitivities import ADD_REMOVE
from ldp_aggregator.trainers.statistics import GRID, Array, QueryNoise, plan_noise
from ldp_protocols.campaign import Campaign
from ldp_protocols.errors import DocumentError

IMPOSSIBLE: Final = "impossible-share"

MOST_ROWS: Final = 1 << 40

_CERTAIN: Final = 16.0
"""Standard deviations of Laplace noise, beyond which one number is once in 10^10 shares: a share is drawn only once."""

_KNOWN: Final = 4.0
"""Standard deviations of its noise, beyond which a count is large enough to divide by."""

_TENFOLD: Final = 10.0


class NodeOverview(NamedTuple):
    """Rows and class frequencies as a share has them, and the parameter that is ``furthest`` from the median of the
    other nodes' models: its ``distance`` in standard errors of both, which are those of noise and of rows drawn at
    random; None where there is nothing to compare.
    """

    rows: int
    classes: tuple[float, ...]
    distance: float | None
    furthest: str | None

    def to_json(self) -> dict[str, Any]:
        """As ``campaign show --json`` has it."""
        return self._asdict()


def check_possible(campaign: Campaign, share: bytes) -> None:
    """Refuse a share that no table gives, whatever the noise. Raises DocumentError, with :data:`IMPOSSIBLE`."""
    vector = decode_share(share, campaign).astype(np.float64)
    schema, k = Schema.of_campaign(campaign), len(campaign.label.classes)
    plans = plan_noise(schema, campaign.privacy.epsilon, ADD_REMOVE)
    counts, variance = vector[:k], plans[0].variance
    slack = _CERTAIN * math.sqrt(variance)
    if counts.sum() > MOST_ROWS or (counts < -slack).any():
        raise DocumentError(IMPOSSIBLE, f"a table has from 0 to {MOST_ROWS} rows; the class counts are of none")
    for plan in plans[1:]:
        part = plan.part
        unit = 1 if part.kind == TABLE else GRID
        cells = vector[part.start : part.stop].reshape(-1, k) / unit
        slack = _CERTAIN * math.sqrt(variance + len(cells) * plan.variance / unit**2)
        most = counts + slack
        least = -most if part.kind == SUM else np.full(k, -slack)
        if (cells.sum(axis=0) > most).any() or (cells.sum(axis=0) < least).any():
            raise DocumentError(
                IMPOSSIBLE, f"no table of so many rows gives these sums of {part.query}, whatever the noise"
            )


def overviews(campaign: Campaign, shares: Mapping[str, bytes]) -> dict[str, NodeOverview]:
    """The overview of every node by its share."""
    schema, k = Schema.of_campaign(campaign), len(campaign.label.classes)
    plans = plan_noise(schema, campaign.privacy.epsilon, ADD_REMOVE)
    names = _names(schema, plans)
    vectors = [decode_share(share, campaign) for share in shares.values()]
    found = [_parameters(vector, plans, k) for vector in vectors]
    overviews = {}
    for place, node in enumerate(shares):
        counts = vectors[place][:k].astype(np.float64)
        rows = counts.sum()
        distance = _distance(found[place], [one for other, one in enumerate(found) if other != place])
        furthest = None if distance is None or np.isnan(distance).all() else int(np.nanargmax(distance))
        overviews[node] = NodeOverview(
            int(rows),
            tuple((np.maximum(counts, 0) / max(np.maximum(counts, 0).sum(), 1)).tolist()),
            None if furthest is None or distance is None else float(distance[furthest]),
            None if furthest is None else names[furthest],
        )
    return overviews


def unlike_sizes(nodes: Iterable[NodeOverview], groups: int) -> str | None:
    """A warning where a median counts a small table as much as one with ten times its rows, else None."""
    rows = [max(node.rows, 1) for node in nodes]
    if groups == 1 or not rows or max(rows) < _TENFOLD * min(rows):
        return None
    return (
        f"tables of {min(rows):,} to {max(rows):,} rows: the median counts each group alike; a document with "
        "federation.groups = 1 counts rows, and then one node that lies decides the model"
    )


def _names(schema: Schema, plans: Sequence[QueryNoise]) -> list[str]:
    classes = schema.label.classes
    names = [f"{schema.label.name} = {one}" for one in classes]
    for plan in plans:
        feature = plan.part.feature
        if feature is not None and plan.part.kind != SQUARE:
            values = [feature.name] if plan.part.kind == SUM else [f"{feature.name} = {one}" for one in feature.names]
            names += [f"{value} | {one}" for value in values for one in classes]
    return names


def _parameters(vector: Integers, plans: Sequence[QueryNoise], k: int) -> tuple[Array, Array]:
    """Class frequencies, frequencies of values and means of `t` by class, and their variances; NaN where unknown."""
    counts, variance = vector[:k].astype(np.float64), plans[0].variance
    rows = counts.sum()
    rows = rows if rows > _KNOWN * math.sqrt(k * variance) else math.nan
    counts = np.where(counts > _KNOWN * math.sqrt(variance), counts, math.nan)
    shares = vector[:k] / rows
    values, variances = [shares], [_share_variance(shares, rows, variance, 0.0)]
    squares = {
        plan.part.feature.name: vector[plan.part.start : plan.part.stop] / GRID
        for plan in plans
        if plan.part.kind == SQUARE and plan.part.feature is not None
    }
    for plan in plans:
        cells = vector[plan.part.start : plan.part.stop].reshape(-1, k)
        if plan.part.kind == TABLE:
            shares = cells / counts
            values.append(shares.ravel())
            variances.append(_share_variance(shares, counts, plan.variance, variance).ravel())
        elif plan.part.kind == SUM and plan.part.feature is not None:
            means = cells[0] / GRID / counts
            spread = np.clip(1 - squares[plan.part.feature.name] / counts - means**2, 0, 1)
            noise = plan.variance / GRID**2 + means**2 * variance
            values.append(means)
            variances.append((spread * counts + noise) / counts**2)
    return np.concatenate(values), np.concatenate(variances)


def _share_variance(shares: Array, rows: Array | float, noise: float, noise_of_rows: float) -> Array:
    inside = np.clip(shares, 0, 1)
    found: Array = (inside * (1 - inside) * rows + noise + inside**2 * noise_of_rows) / np.square(rows)
    return found


def _distance(own: tuple[Array, Array], others: Sequence[tuple[Array, Array]]) -> Array | None:
    """The distance of every parameter from the median of the others, which a single one of three does not move far."""
    if not others:
        return None
    values, variances = (np.array(column) for column in zip(*others, strict=True))
    median, spread = np.full((2, values.shape[1]), math.nan)
    comparable = ~np.isnan(values).all(axis=0)
    median[comparable] = np.nanmedian(values[:, comparable], axis=0)
    spread[comparable] = np.nanmedian(variances[:, comparable], axis=0)
    wider = math.pi / 2 if len(others) > 2 else 1.0  # Variance of a median over that of a mean.
    found: Array = np.abs(own[0] - median) / np.sqrt(own[1] + wider * spread / len(others))
    return found
