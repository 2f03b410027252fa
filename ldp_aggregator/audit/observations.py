"""Uploads as an eavesdropper sees them: which questions were answered, how long the answers are, and their bytes.

The ids are left out: they are made from a device's secret, which the audit does not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgpack
import numpy as np
from numpy.typing import NDArray

from ldp_aggregator.audit.black_box import BlackBoxError

Shape = tuple[tuple[int, int], ...]
"""(question, bytes of its payload), block by block."""


@dataclass(frozen=True)
class Observations:
    """What was seen of one person.

    Attributes
    ----------
    shapes
        The different shapes, in order of appearance.
    shape
        Number of the shape of every upload, shape (n,).
    lengths
        Bytes of every whole upload, shape (n,).
    payloads
        For every shape, the payloads of its uploads as bytes, shape (uploads, bytes).
    """

    shapes: tuple[Shape, ...]
    shape: NDArray[np.int64]
    lengths: NDArray[np.int64]
    payloads: tuple[NDArray[np.uint8], ...]

    @property
    def trials(self) -> int:
        return len(self.shape)

    def rows(self, shape: Shape, half: int | None) -> NDArray[np.uint8]:
        """The payloads of a shape; of the trials with even (0) or odd (1) numbers only, where ``half`` says so."""
        if shape not in self.shapes:
            return np.zeros((0, sum(size for _, size in shape)), dtype=np.uint8)
        number = self.shapes.index(shape)
        if half is None:
            return self.payloads[number]
        return np.asarray(self.payloads[number][np.flatnonzero(self.shape == number) % 2 == half])

    def first_rows(self, shape: Shape, trials: int) -> NDArray[np.uint8]:
        """The payloads of a shape among the first ``trials`` uploads."""
        rows = self.rows(shape, None)
        return rows[: int((self.shape[:trials] == self.shapes.index(shape)).sum())] if len(rows) else rows

    def half_trials(self, half: int) -> int:
        return len(range(half, self.trials, 2))


def observe(uploads: Sequence[bytes]) -> Observations:
    """Read the uploads of one person. Leniently: what a server would refuse may still tell something."""
    shapes: dict[Shape, int] = {}
    numbers, payloads = [], []
    for upload in uploads:
        shape, payload = _read(upload)
        numbers.append(shapes.setdefault(shape, len(shapes)))
        payloads.append(payload)
    of_shape: list[list[bytes]] = [[] for _ in shapes]
    for number, payload in zip(numbers, payloads, strict=True):
        of_shape[number].append(payload)
    return Observations(
        tuple(shapes),
        np.array(numbers, dtype=np.int64),
        np.array([len(upload) for upload in uploads], dtype=np.int64),
        tuple(np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1) for rows in of_shape),
    )


def _read(upload: bytes) -> tuple[Shape, bytes]:
    try:
        _, blocks = msgpack.unpackb(upload)
        shape = tuple((int(question), len(payload)) for question, _, payload in blocks)
        return shape, b"".join(payload for _, _, payload in blocks)
    except Exception:  # msgpack raises many types, and hostile bytes unpack to anything; each means the same here.
        raise BlackBoxError(f"not an upload: {upload[:40].hex()}") from None
