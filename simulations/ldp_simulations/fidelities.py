"""A population answers a campaign: from a table to the tally that its devices would leave, at a chosen fidelity."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ldp_aggregator.counting.payloads import count
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.learning.frames import MISSING_INDEX
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import Rows
from ldp_client.answering import perturb
from ldp_protocols import Campaign, Question
from ldp_protocols.document.questions import INDEX, JOINT, LABEL, RIGHT, SCORE, SIGN, signs_of
from ldp_protocols.exact import Coins
from ldp_protocols.features import Feature
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import Block, encode_blocks, encode_upload
from ldp_simulations.columns import UNIT, Columns, Integers
from ldp_simulations.tables import python_values, records


class SeededCoins(Coins):
    """Reproducible words from a Mersenne Twister; whoever knows the seed can undo every perturbation."""

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed)

    def words(self, count: int) -> Sequence[int]:
        return struct.unpack(f"<{count}Q", self._random.randbytes(8 * count))


FIDELITIES: Final = ("device", "vector", "counts")
_CELLS_AT_ONCE: Final = 1 << 21
"""Cells (devices times domain size) perturbed at once, so that memory stays flat however many devices there are."""

_DEVICES_AT_ONCE: Final = 1 << 20

Spread = Callable[[Integers, int], Integers]
"""Devices whose owners are rows of a table. ``spread(kinds, number)`` puts every row into one of ``number`` kinds and
returns how many devices each kind has. It may be called once only: a second call would be about other devices.
"""


def simulate(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: Iterable[object] | None = None,
    rng: np.random.Generator | int | None = None,
    *,
    fidelity: str = "vector",
    devices: int | None = None,
) -> Tally:
    """The tally after a population of devices has answered ``campaign``.

    Parameters
    ----------
    campaign
        A compiled campaign.
    frame
        One row per person, a column per feature; a column that is absent is missing on every device.
    labels
        One class per row; None in a campaign without a label. Raises RecordError, naming the row, for one that the
        campaign does not declare.
    rng
        A numpy Generator or a seed; the same seed gives the same tally.
    fidelity
        All three draw from the same distribution. ``device`` runs the client's own code, one device at a time;
        ``vector`` does the same with numpy; ``counts`` draws the tally itself, so that a billion devices cost no more
        than a thousand.
    devices
        None makes every row a device of its own. A number takes that many devices and draws the owner of each among the
        rows, independently.
    """
    if fidelity not in FIDELITIES:
        raise ValueError(f"fidelity must be one of {', '.join(FIDELITIES)}, not {fidelity!r}")
    generator = np.random.default_rng(rng)
    labels = np.full(len(frame), None) if labels is None else labels
    if fidelity == "device":
        return simulate_device(campaign, frame, labels, generator, devices)
    simulator = simulate_vector if fidelity == "vector" else simulate_counts
    return simulator(Columns.of(campaign, frame, labels), generator, devices)


def simulate_device(
    campaign: Campaign,
    frame: pd.DataFrame,
    labels: Iterable[object],
    rng: np.random.Generator,
    devices: int | None = None,
) -> Tally:
    """The tally of every device's real upload, decoded and counted as the server does."""
    coins = SeededCoins(int(rng.integers(0, 2**63)))
    classes = pd.Series(labels)
    if devices is not None:
        owners = rng.integers(0, len(frame), size=devices)
        frame, classes = frame.iloc[owners], classes.iloc[owners]
    people = zip(records(frame), python_values(classes), strict=True)
    uploads = (encode_upload(perturb(campaign, record, label, coins=coins), campaign) for record, label in people)
    return Tally.of_uploads(campaign, uploads)


def simulate_vector(columns: Columns, rng: np.random.Generator, devices: int | None = None) -> Tally:
    """The tally of one report (one per group if ``"all"``) from each row, or from ``devices`` drawn independently."""
    if columns.campaign.windows is not None:
        return _in_windows(simulate_vector, columns, rng, devices)
    if devices is None:
        return _answer(columns, np.arange(len(columns)), rng)
    tally = Tally(columns.campaign)
    for start in range(0, devices, _DEVICES_AT_ONCE):
        owners = rng.integers(0, len(columns), size=min(_DEVICES_AT_ONCE, devices - start))
        tally.merge(_answer(columns, owners, rng))
    return tally


def draw_questions(campaign: Campaign, devices: int, rng: np.random.Generator) -> Iterator[tuple[Question, Integers]]:
    """Each question with the devices that answer it, drawn by weight without looking at any record."""
    for pool in campaign.pools:
        if len(pool) == 1:
            yield pool[0], np.arange(devices)
            continue
        bounds = np.cumsum([question.weight for question in pool])
        drawn = np.searchsorted(bounds, rng.integers(0, bounds[-1], size=devices), side="right")
        order = np.argsort(drawn, kind="stable")
        starts = np.searchsorted(drawn[order], np.arange(len(pool) + 1))
        for position, question in enumerate(pool):
            yield question, order[starts[position] : starts[position + 1]]


def relayed_upload(columns: Columns, owners: Integers, rng: np.random.Generator) -> bytes:
    """One upload of the devices of ``owners`` as from a relay: payloads drawn by ``vector``, under random ids."""
    drawn: dict[int, list[Rows]] = {}
    for question, payloads in _payloads(columns, owners, rng):
        drawn.setdefault(question.index, []).append(payloads)
    joined = {index: np.concatenate(payloads) for index, payloads in sorted(drawn.items())}
    return encode_blocks(
        [Block(index, rng.bytes(ID_BYTES * len(rows)), rows.tobytes()) for index, rows in joined.items() if len(rows)],
        columns.campaign,
    )


def _answer(columns: Columns, owners: Integers, rng: np.random.Generator) -> Tally:
    tally = Tally(columns.campaign)
    for question, payloads in _payloads(columns, owners, rng):
        tally.add(question.index, len(payloads), count(question, payloads))
    return tally


def _payloads(columns: Columns, owners: Integers, rng: np.random.Generator) -> Iterator[tuple[Question, Rows]]:
    for question, positions in draw_questions(columns.campaign, len(owners), rng):
        step = max(1, _CELLS_AT_ONCE // question.domain_size)
        for start in range(0, len(positions), step):
            items = columns.items(question, owners[positions[start : start + step]], rng)
            yield question, analysis_of(question.mechanism).perturb(items, rng)


def simulate_counts(columns: Columns, rng: np.random.Generator, devices: int | None = None) -> Tally:
    """As :func:`simulate_vector`, in distribution, at a cost that does not grow with the number of devices.

    Devices are exchangeable, so only how many of them hold each item matters; how the reports of that many devices add
    up is the mechanism's to draw (:mod:`ldp_aggregator.mechanisms`).
    """
    if columns.campaign.windows is not None:
        return _in_windows(simulate_counts, columns, rng, devices)
    tally = Tally(columns.campaign)
    for question, number, spread in _answering(columns, rng, devices):
        tally.add(question.index, number, _count(columns, question, spread, rng))
    return tally


def _in_windows(
    simulate: Callable[[Columns, np.random.Generator, int | None], Tally],
    columns: Columns,
    rng: np.random.Generator,
    devices: int | None,
) -> Tally:
    """A series of a population that stands still: every device draws its window by lot."""
    campaign = columns.campaign
    if campaign.windows is None or devices is None:
        raise ValueError("a series is simulated with a number of devices; name it")
    numbers = rng.multinomial(devices, np.full(campaign.windows.count, 1 / campaign.windows.count))
    one = replace(columns, campaign=campaign.one_window)
    return Tally.of_windows(campaign, [simulate(one, rng, number) for number in numbers.tolist()])


def _answering(
    columns: Columns, rng: np.random.Generator, devices: int | None
) -> Iterator[tuple[Question, int, Spread]]:
    """Each question with the devices that answer it: how many, and how they are spread over the rows."""
    if devices is None:
        for question, rows in draw_questions(columns.campaign, len(columns), rng):
            yield question, len(rows), _rowwise(np.bincount(rows, minlength=len(columns)))
    elif columns.campaign.privacy.answers == "one":
        # The devices of different questions are different ones, so their owners are drawn independently.
        numbers = rng.multinomial(devices, _shares(columns.campaign.questions))
        for question, number in zip(columns.campaign.questions, numbers.tolist(), strict=True):
            yield question, number, _resampled(number, len(columns), rng)
    else:
        owners = rng.multinomial(devices, np.full(len(columns), 1 / len(columns)))
        for pool in columns.campaign.pools:
            answers = rng.multinomial(owners, _shares(pool))
            for position, question in enumerate(pool):
                yield question, int(answers[:, position].sum()), _rowwise(answers[:, position])


def _shares(pool: Sequence[Question]) -> NDArray[np.float64]:
    weights = np.array([question.weight for question in pool], dtype=np.float64)
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def _count(columns: Columns, question: Question, spread: Spread, rng: np.random.Generator) -> Integers:
    analysis = analysis_of(question.mechanism)
    if question.encoding == INDEX:
        return analysis.tally(_hold_cells(columns, question, spread, rng), rng)
    drawn = ((columns.moments(question, rows, rng), numbers) for rows, numbers in _listed(columns, question, spread))
    if question.encoding != SIGN:
        sums = [analysis.tally_moments(moments, numbers, rng) for moments, numbers in drawn]
        return np.asarray(np.sum(sums, axis=0), dtype=np.int64)
    cells: Integers = np.zeros(question.domain_size, dtype=np.int64)
    for moments, numbers in drawn:
        present = np.where(moments.missing, 0, numbers)
        ones = rng.binomial(present, (moments.values + UNIT) / (2 * UNIT))  # Devices whose stochastic bit is 1.
        first = signs_of(question, columns.class_count) * moments.cells
        np.add.at(cells, first[:, None] + np.arange(2), np.stack([present - ones, ones], axis=-1))
        np.add.at(cells, first[moments.missing] + 2, numbers[moments.missing])
    return analysis.tally(cells, rng)


def _rowwise(numbers: Integers) -> Spread:
    """So many devices of each row."""
    return lambda kinds, number: np.bincount(kinds, numbers, number).astype(np.int64)


def _resampled(devices: int, rows: int, rng: np.random.Generator) -> Spread:
    """Devices whose owners are drawn among ``rows`` independently: multinomial over the kinds, however many devices."""
    return lambda kinds, number: rng.multinomial(devices, np.bincount(kinds, minlength=number) / rows)


def _hold_cells(columns: Columns, question: Question, spread: Spread, rng: np.random.Generator) -> Integers:
    """Devices per cell of a question about an index."""
    k = columns.class_count
    if question.kind == LABEL:
        return spread(columns.classes, k)
    if question.kind in (RIGHT, SCORE):
        return spread(columns.of_the_model(question), question.domain_size)
    if columns.is_projected(question.feature):
        cells = np.zeros(question.domain_size)
        for rows, numbers in _listed(columns, question, spread):
            cells += np.bincount(columns.indices(question, rows, rng), numbers, question.domain_size)
        return cells.astype(np.int64)
    feature = columns.campaign.feature(question.feature)
    other = columns.campaign.feature(question.other) if question.kind == JOINT else None
    beside = columns.classes if other is None else columns.value_indices(question.other) - MISSING_INDEX
    shape = feature.size + 1, k if other is None else other.size + 1
    values = columns.value_indices(question.feature) - MISSING_INDEX
    values_here = _filled(spread(values * shape[1] + beside, shape[0] * shape[1]).reshape(shape), feature, rng)
    return (values_here if other is None else _filled(values_here.T, other, rng).T).ravel()


def _filled(indices: Integers, feature: Feature, rng: np.random.Generator) -> Integers:
    """Devices by value, those without one first: they come last where that may be, else are spread over the values."""
    if feature.missing:
        return np.roll(indices, -1, axis=0)
    return indices[1:] + rng.multinomial(indices[0], np.full(feature.size, 1 / feature.size)).T


def _listed(columns: Columns, question: Question, spread: Spread) -> Iterator[tuple[Integers, Integers]]:
    """Rows and their numbers of devices; then, in parts, one for each device with a missing value in a feature that is
    called complete, which draws its own replacement.
    """
    numbers = spread(np.arange(len(columns)), len(columns))
    incomplete = columns.incomplete(question)
    whole, broken = (np.flatnonzero(of & (numbers > 0)) for of in (~incomplete, incomplete))
    yield whole, numbers[whole]
    ends = np.cumsum(numbers[broken])
    devices = int(ends[-1]) if len(ends) else 0
    for start in range(0, devices, _DEVICES_AT_ONCE):
        places = np.arange(start, min(start + _DEVICES_AT_ONCE, devices))
        yield broken[np.searchsorted(ends, places, side="right")], np.ones_like(places)
