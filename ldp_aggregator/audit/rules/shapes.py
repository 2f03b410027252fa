"""Rules that hold of every single upload, whatever the coins: one break is enough."""

from __future__ import annotations

from collections.abc import Iterator

from ldp_aggregator.audit.asking.observations import Seen, Shape
from ldp_aggregator.audit.asking.people import Document
from ldp_aggregator.audit.searching.tight_events import malformed

ID_BYTES = 16


def different_lengths(seen: Seen) -> Iterator[str]:
    """An upload's length may depend on the questions only."""
    for questions, shapes in _by_questions(seen).items():
        lengths = sorted({shape.lengths for shape in shapes})
        if len(lengths) > 1 and len({len(of) for of in lengths}) == 1:
            told = [of[0] if len(of) == 1 else list(of) for of in lengths]
            yield f"answers to questions {list(questions)} have {told} bytes; one length is right"


def different_headers(seen: Seen) -> Iterator[str]:
    """What stands around ids and payloads may depend on the questions and their order only."""
    for questions, shapes in _by_questions(seen).items():
        for lengths in {shape.lengths for shape in shapes}:
            headers = sorted({shape.header for shape in shapes if shape.lengths == lengths})
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
            known = 0 <= block.question < len(document["questions"])
            flags = malformed(document["questions"][block.question], payloads) if known else None
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
