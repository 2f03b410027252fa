"""Rules for what must never repeat or be alike: ids of fresh devices, and the coins behind their answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.asking.black_box import Answer
from ldp_aggregator.audit.asking.observations import Seen, Shape, Table, hashed, read_tables
from ldp_aggregator.audit.asking.people import Document
from ldp_aggregator.audit.searching.events import loss_bound, share_bound
from ldp_aggregator.audit.searching.tight_events import malformed

WHOLE: Final = "whole uploads"

PLACES: Final = 2
"""Places at which answers of one person may be alike: two processes and two campaigns; and every lag of a process."""

_QUESTIONS: Final = 8
_CHOSEN: Final = 8
_ID_BITS: Final = 128
_LEAST: Final = 8

Keys = NDArray[Any]


@dataclass(frozen=True)
class Alike:
    """Equal pairs among answers that should be independent, beside those among pairs that are."""

    name: str
    equal: int
    pairs: int
    usual: int
    usual_pairs: int
    either_way: bool = True
    """True where fewer are wrong too: of whole uploads they are not, because questions may be dealt like cards."""

    def excessive(self, alpha: float) -> bool:
        """More, or fewer, than coins that are tossed anew allow; wrong with probability at most ``alpha``."""
        if min(self.pairs, self.usual_pairs) < _LEAST:
            return False
        more = loss_bound(self.equal, self.pairs, self.usual, self.usual_pairs, alpha / 2)
        if not self.either_way:
            return bool(more > 0)
        differ = self.pairs - self.equal, self.pairs, self.usual_pairs - self.usual, self.usual_pairs
        return bool(more > 0 or loss_bound(*differ, alpha / 2) > 0)

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.equal} of {self.pairs} answers are equal, where {self.usual} of {self.usual_pairs} "
            "are among devices that have nothing in common"
        )


def keys_of(tables: Sequence[Table], answers: int) -> dict[str, Keys]:
    """Numbers that are equal where uploads without ids, or answers to a question, are; 0 for none; shape (answers,)."""
    whole = np.zeros(answers, dtype=np.uint64)
    found: dict[str, Keys] = {WHOLE: whole}
    for table in tables:
        mark = hashed(np.frombuffer(repr((table.shape.lengths, table.shape.questions)).encode(), dtype=np.uint8)[None])
        whole[table.rows] = hashed(table.payloads) ^ mark
        for block in table.shape.blocks[:_QUESTIONS]:
            name = f"answers to question {block.question}"
            of_question = found.setdefault(name, np.zeros(answers, dtype=np.uint64))
            of_question[table.rows] = hashed(table.payloads[:, block.payload]) | np.uint64(1)
    return found


def coins_between(
    name: str, ones: Sequence[Answer], others: Sequence[Answer], usual: dict[str, tuple[int, int]]
) -> Iterator[Alike]:
    """Answers of the same people that were given one after the other in two places, in the same order."""
    first, second = (keys_of(read_tables(answers), len(answers)) for answers in (ones, others))
    yield from alike_keys(name, first, second, usual)


def alike_keys(
    name: str, first: dict[str, Keys], second: dict[str, Keys], usual: dict[str, tuple[int, int]]
) -> Iterator[Alike]:
    """The same of keys."""
    for of in first.keys() & second.keys() & usual.keys():
        yield Alike(f"{name}, {of}", *equal_pairs(first[of], second[of]), *usual[of], either_way=of != WHOLE)


def coins_within(seen: Seen, person: int) -> Iterator[Alike]:
    """Answers of one person's fresh devices so many apart in a process, at the lags at which they are most alike.

    Each of :func:`lags_of` may be among them, so that each has its part of the probability to be wrong.
    """
    usual = usual_matches(seen, person)
    for process in (0, 1):
        rows = np.flatnonzero((seen.person == person) & (seen.process == process))
        for of, keys in keys_of(seen.tables, len(seen.person)).items():
            for lag in suspicious_lags(keys[rows]):
                # Pairs that have no answer in common are independent of one another.
                starts = np.arange(len(rows) - lag)
                starts = starts[(starts // lag) % 2 == 0]
                found = equal_pairs(keys[rows[starts]], keys[rows[starts + lag]])
                name = f"fresh devices {lag} apart in a process, {of}"
                yield Alike(name, *found, *usual.get(of, (0, 0)), either_way=of != WHOLE)


def lags_of(seen: Seen, person: int) -> int:
    """Count the lags at which :func:`coins_within` looks, in both processes."""
    return sum(max(0, int(((seen.person == person) & (seen.process == process)).sum()) - 1) for process in (0, 1))


def suspicious_lags(keys: Keys) -> list[int]:
    """The lags at which most answers, or fewest, are equal; 0 is none. One transform sees them all: values become
    directions, evenly spread, and the autocorrelation adds up by how much answers so far apart point the same way.
    """
    there = keys != 0
    count = len(keys)
    if int(there.sum()) < 2 * _LEAST:
        return []
    values, codes = np.unique(keys[there], return_inverse=True)
    points = np.zeros(count, dtype=np.complex128)
    directions = np.exp(2j * np.pi * codes / len(values))
    points[there] = directions - directions.mean()
    length = 1 << (2 * count - 1).bit_length()
    alike, pairs = (
        np.fft.ifft(np.abs(np.fft.fft(of, length)) ** 2).real[1:count] for of in (points, there.astype(np.float64))
    )
    scores = np.where(pairs > _LEAST, np.abs(alike) / np.sqrt(np.maximum(pairs, 1.0)), 0.0)
    return [int(lag) + 1 for lag in np.argsort(-scores, kind="stable")[:_CHOSEN] if scores[lag] > 0]


def usual_matches(seen: Seen, person: int) -> dict[str, tuple[int, int]]:
    """Count how often answers of one person are equal in two processes, compared in opposite orders."""
    rows = [np.flatnonzero((seen.person == person) & (seen.process == process)) for process in (0, 1)]
    count = min(map(len, rows))
    found = keys_of(seen.tables, len(seen.person))
    return {of: equal_pairs(keys[rows[0][:count]], keys[rows[1][:count][::-1]]) for of, keys in found.items()}


def equal_pairs(ones: Keys, others: Keys) -> tuple[int, int]:
    """Count the equal ones among pairs of which both are there, and these."""
    both = (ones != 0) & (others != 0)
    return int((ones == others)[both].sum()), int(both.sum())


def ids_of(tables: Sequence[Table]) -> list[bytes]:
    """All ids, block by block; what one device sends twice counts once."""
    found: list[bytes] = []
    for table in tables:
        blocks = [block for block in table.shape.blocks if block.ids.stop > block.ids.start]
        columns = [[row.tobytes() for row in table.ids[:, block.ids]] for block in blocks]
        for ids in zip(*columns, strict=True):
            found += ids if len(table.shape.lengths) == 1 else set(ids)
    return found


def repeated_ids(ids: Sequence[bytes], alpha: float) -> str | None:
    """A finding about ids of fresh devices that repeat more often than uniform ones; a false one has P <= ``alpha``."""
    pairs = len(ids) * (len(ids) - 1) // 2
    ((most, times),) = Counter(ids).most_common(1) or [(b"", 0)]
    if times < 2 or pairs / 2**_ID_BITS > alpha:
        return None
    return (
        f"{len(ids) - len(set(ids))} of {len(ids)} ids of fresh devices were there before; {most.hex()} {times} times"
    )


Candidate = tuple[float, str, int, int, float]


def uneven_ids(seen: Seen, alpha: float) -> str | None:
    """Bits and bytes of ids, and of their differences, that are not uniform; wrong with probability <= ``alpha``."""
    single: list[Candidate] = []
    paired: list[Candidate] = []
    for table in seen.tables:
        tests = seen.tests[table.rows]
        for block in table.shape.blocks:
            ids = table.ids[:, block.ids]
            single += _uneven("byte", ids, tests)
            ones, others = ids[1::2], ids[: len(ids) // 2 * 2 : 2]
            # Pairs have no id in common, so that every other pair tests what the rest chose.
            tested = np.arange(len(ones)) % 2 == 1
            paired += _uneven("the difference to the id before, byte", ones - others, tested)
            paired += _uneven("the exclusive or with the id before, byte", ones ^ others, tested)
    for candidates in (single, paired):
        candidates.sort(key=lambda candidate: -candidate[0])
        for _, name, count, trials, share in candidates[:_CHOSEN]:
            if share_bound(count, trials, alpha / (2 * _CHOSEN)) > share:
                return f"{name} in {count} of {trials} ids of fresh devices; {share * trials:.0f} are right"
    return None


def _uneven(name: str, ids: NDArray[np.uint8], tests: NDArray[np.bool_]) -> Iterator[Candidate]:
    """For every byte its most frequent value, for every bit its most frequent state."""
    chosen, tested = ids[~tests], ids[tests]
    if not len(chosen) or not len(tested):
        return
    for place in range(ids.shape[1]):
        counts = np.bincount(chosen[:, place], minlength=256)
        value = int(counts.argmax())
        hits = int((tested[:, place] == value).sum())
        yield _z(int(counts[value]), len(chosen), 1 / 256), f"{name} {place} is {value}", hits, len(tested), 1 / 256
        for bit in range(8):
            ones = int((chosen[:, place] >> bit & 1).sum())
            state = int(2 * ones > len(chosen))
            count = ones if state else len(chosen) - ones
            hits = int(((tested[:, place] >> bit & 1) == state).sum())
            yield _z(count, len(chosen), 1 / 2), f"{name} {place}, bit {bit} is {state}", hits, len(tested), 1 / 2


def _z(count: int, trials: int, share: float) -> float:
    return float((count - trials * share) / np.sqrt(trials * share * (1 - share)))


ID_BYTES = 16


def different_lengths(seen: Seen) -> Iterator[str]:
    """An upload's length may depend on the questions only."""
    for questions, shapes in _by_questions(seen).items():
        lengths = sorted({shape.lengths for shape in shapes})
        if len(lengths) > 1 and len({len(of) for of in lengths}) == 1:
            sizes = [of[0] if len(of) == 1 else list(of) for of in lengths]
            yield f"answers to questions {list(questions)} have {sizes} bytes; one length is right"


def different_headers(seen: Seen, beyond: int = 0) -> Iterator[str]:
    """Check that everything around ids and payloads may depend on the questions and their order only; less the last
    bytes, so many, that are no upload's.
    """
    for questions, shapes in _by_questions(seen).items():
        for lengths in {shape.lengths for shape in shapes}:
            alike = [shape.header for shape in shapes if shape.lengths == lengths]
            headers = sorted({header[: len(header) - beyond] for header in alike})
            if len(headers) > 1:
                yield (
                    f"answers to questions {list(questions)} come with {len(headers)} different headers, among them "
                    f"{headers[0].hex()} and {headers[1].hex()}; one is right"
                )


def malformed_answers(document: Document, seen: Seen) -> Iterator[str]:
    """Payloads that no coin gives; what they hold is bounded by nothing."""
    found: dict[int, tuple[int, str]] = {}
    for table in seen.tables:
        for block in table.shape.blocks:
            payloads = table.payloads[:, block.payload]
            declared = 0 <= block.question < len(document["questions"])
            flags = malformed(document["questions"][block.question], payloads) if declared else None
            if flags is not None and flags.any():
                times, example = found.get(block.question, (0, payloads[flags][0].tobytes().hex()))
                found[block.question] = times + int(flags.sum()), example
    for question, (times, example) in found.items():
        yield f"{times} answers to question {question} are none that its mechanism gives, such as {example}"


def malformed_ids(seen: Seen) -> Iterator[str]:
    widths = {
        block.ids.stop - block.ids.start for table in seen.tables for block in table.shape.blocks if table.shape.header
    }
    if widths - {ID_BYTES}:
        yield f"ids have {sorted(widths)} bytes; {ID_BYTES} are right"


def _by_questions(seen: Seen) -> dict[tuple[int, ...], list[Shape]]:
    found: dict[tuple[int, ...], list[Shape]] = {}
    for table in seen.tables:
        found.setdefault(table.shape.questions, []).append(table.shape)
    return found
