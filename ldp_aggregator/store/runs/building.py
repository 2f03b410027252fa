"""A filter in the making, of which one part is in memory at a time.

Where it has several, what the secret makes of the ids waits for its part in files without a name, eight bytes an id.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final

import numpy as np

from ldp_aggregator.store.runs.filters import filter_words, mixed, places, spread
from ldp_aggregator.store.runs.keys import Keys, Words

PART_BYTES: Final = 1 << 20
MOST_PARTS: Final = 8
"""Parts of a filter: as many as make them this small, if it is not larger than so many of them."""
_CHUNK: Final = 1 << 14


class FilterDraft:
    """The filter of ``ids`` ids under a secret, with so many ``bits`` for each.

    A context, which gives the files back. Raises OSError.
    """

    def __init__(self, folder: Path, ids: int, secret: int, bits: int) -> None:
        self._secret = secret
        self._words = filter_words(ids, bits)
        parts = min(MOST_PARTS, -(-self._words * 8 // PART_BYTES))
        self._part_words = -(-self._words // parts)
        self._open = ExitStack()
        self._only = np.zeros(self._words if parts == 1 else 0, dtype=np.uint64)
        self._files = [
            self._open.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115 - closed with the context
            for _ in range(parts if parts > 1 else 0)
        ]

    def __enter__(self) -> FilterDraft:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def add(self, keys: Keys) -> None:
        """Have more ids in it."""
        made = mixed(keys, self._secret)
        if not self._files:
            self._mark(self._only, made, 0)
            return
        part_of = (places(made >> np.uint64(32), self._words) // self._part_words).astype(np.uint8)
        made = made[np.argsort(part_of, kind="stable")]
        ends = np.cumsum(np.bincount(part_of, minlength=len(self._files))).tolist()
        for file, start, end in zip(self._files, [0, *ends], ends, strict=False):
            file.write(made[start:end].data)

    def parts(self) -> Iterator[Words]:
        """The filter's words, part by part."""
        if not self._files:
            yield self._only
        for number, file in enumerate(self._files):
            start = number * self._part_words
            words = np.zeros(min(self._part_words, self._words - start), dtype=np.uint64)
            file.seek(0)
            while chunk := file.read(_CHUNK * 8):
                self._mark(words, np.frombuffer(chunk, dtype=np.uint64), start)
            yield words

    def _mark(self, words: Words, made: Words, start: int) -> None:
        chosen, bits = spread(made)
        np.bitwise_or.at(words, places(chosen, self._words) - start, bits)
