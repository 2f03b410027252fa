"""Noise that everybody can compute: the coins of a usual generator, seeded with what is public or with few bits.

How a client turns coins into an answer is not known here. So it is asked whether answers have anything to do with what
the generator gives: whether a byte of the stream lies below a cut more often, or less often, where the answer has some
bit, or is the usual one. Half of a person's uploads choose generator, byte, cut and bit, the other half tests them. A
sound client's answers for one record are alike in law and have nothing to do with ids and places: given how often
either holds, how often both do is as if the answers had been dealt out by lot, which is hypergeometric.

The usual generators of random bytes are here, each as a function of a seed: a client may use one by mistake, and
anybody else then computes its coins. A stream is 64 bytes, the beginning of what a generator gives; a table has a row
for every seed.

Ids that are the outputs of a Mersenne Twister: whoever sees 156 of them in order knows its state, and every coin that
follows (Matsumoto, Nishimura 1998; the generator of Python's ``random``, of PHP, R and others).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from ldp_aggregator.audit.asking.observations import Block, Bytes, Flags, Numbers, Seen, Table

WIDTH: Final = 64
_COUNTED: Final = 3
"""Values of a counter, so that the first words are there whether it begins with 0 or with 1."""

Words = NDArray[Any]
FromBytes = Callable[[Sequence[bytes]], Bytes]
FromIntegers = Callable[[Sequence[int]], Bytes]

_hmac = functools.partial(hmac.digest, digest="sha256")

_COUNTERS: Final[dict[str, Callable[[int], bytes]]] = {
    "8 bytes, little-endian": lambda n: n.to_bytes(8, "little"),
    "8 bytes, big-endian": lambda n: n.to_bytes(8, "big"),
    "4 bytes, little-endian": lambda n: n.to_bytes(4, "little"),
    "4 bytes, big-endian": lambda n: n.to_bytes(4, "big"),
    "1 byte": lambda n: bytes([n]),
}

_DIGESTS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "SHA-256": lambda seed: hashlib.sha256(seed).digest(),
    "SHA-256 twice": lambda seed: hashlib.sha256(hashlib.sha256(seed).digest()).digest(),
    "SHA-512": lambda seed: hashlib.sha512(seed).digest(),
    "BLAKE2b": lambda seed: hashlib.blake2b(seed).digest(),
    "SHAKE128": lambda seed: hashlib.shake_128(seed).digest(WIDTH),
    "SHAKE256": lambda seed: hashlib.shake_256(seed).digest(WIDTH),
    "MD5": lambda seed: hashlib.md5(seed, usedforsecurity=False).digest(),
    "SHA-1": lambda seed: hashlib.sha1(seed, usedforsecurity=False).digest(),
}

_COUNTING: Final[dict[str, Callable[[bytes, bytes], bytes]]] = {
    "SHA-256 of it and a counter": lambda seed, count: hashlib.sha256(seed + count).digest(),
    "SHA-256 of a counter and it": lambda seed, count: hashlib.sha256(count + seed).digest(),
    "HMAC-SHA256 under it of a counter": _hmac,
}


def from_bytes(public: bytes) -> Iterator[tuple[str, FromBytes]]:
    """The generators that take any bytes; ``public`` is a key that everybody knows."""
    for name, digest in _DIGESTS.items():
        yield name, functools.partial(_each, digest)
    yield "HMAC-SHA256 under the campaign's id", functools.partial(_each, functools.partial(_hmac, public))
    for name, digest_of in _COUNTING.items():
        for width, counter in _COUNTERS.items():
            counts = [counter(number) for number in range(_COUNTED)]
            yield f"{name} ({width})", functools.partial(_counted, digest_of, counts)
    yield "Python's random", functools.partial(_each, _twister)


def from_integers(bits: int) -> Iterator[tuple[str, FromIntegers]]:
    """The generators that take an integer, of so many bits."""
    yield "Python's random", functools.partial(_each, _twister)
    yield "numpy's default_rng", functools.partial(_each, lambda seed: np.random.default_rng(seed).bytes(WIDTH))
    if bits <= 32:
        yield "numpy's random.seed", lambda seeds: _rows(list(_legacy(seeds)))
        yield "mulberry32", lambda seeds: _mulberry(np.array(seeds, dtype=np.uint32))
    if bits <= 64:
        yield "splitmix64", lambda seeds: _splitmix(np.array(seeds, dtype=np.uint64))
        yield "java.util.Random", lambda seeds: _java(np.array(seeds, dtype=np.uint64))


def _each(stream_of: Callable[[Any], bytes], seeds: Sequence[Any]) -> Bytes:
    return _rows([stream_of(seed) for seed in seeds])


def _counted(digest_of: Callable[[bytes, bytes], bytes], counts: Sequence[bytes], seeds: Sequence[bytes]) -> Bytes:
    """The first word of every block, which is all that many take, and the rest of the first."""
    blocks = ([digest_of(seed, count) for count in counts] for seed in seeds)
    return _rows([b"".join(of[:8] for of in row) + row[0][8:] for row in blocks])


def _rows(streams: Sequence[bytes]) -> Bytes:
    return np.frombuffer(b"".join(streams), dtype=np.uint8).reshape(len(streams), len(streams[0]))


def _twister(seed: int | bytes) -> bytes:
    # Safety: this is the generator that a client must not use; nothing here is drawn by it.
    return random.Random(seed).randbytes(WIDTH)  # noqa: S311


def _legacy(seeds: Sequence[int]) -> Iterator[bytes]:
    state = np.random.RandomState()  # To seed one anew is twenty times as quick as to make another.
    for seed in seeds:
        state.seed(seed)
        yield state.bytes(WIDTH)


def _splitmix(state: Words) -> Bytes:
    """Steele, Lea, Flood 2014."""
    found = []
    for _ in range(WIDTH // 8):
        state = state + np.uint64(0x9E3779B97F4A7C15)
        word = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        found.append(word ^ (word >> np.uint64(31)))
    return _as_bytes(found, "<u8")


def _mulberry(state: Words) -> Bytes:
    """The 32-bit generator that scripts for browsers use."""
    found = []
    for _ in range(WIDTH // 4):
        state = state + np.uint32(0x6D2B79F5)
        word = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
        word ^= word + (word ^ (word >> np.uint32(7))) * (word | np.uint32(61))
        found.append(word ^ (word >> np.uint32(14)))
    return _as_bytes(found, "<u4")


def _java(seeds: Words) -> Bytes:
    """The 48-bit congruences of its documentation."""
    mask = np.uint64((1 << 48) - 1)
    state, found = (seeds ^ np.uint64(0x5DEECE66D)) & mask, []
    for _ in range(WIDTH // 4):
        state = (state * np.uint64(0x5DEECE66D) + np.uint64(0xB)) & mask
        found.append(state >> np.uint64(16))
    return _as_bytes(found, "<u4")


def _as_bytes(words: Sequence[Words], kind: str) -> Bytes:
    return np.stack(words, axis=1).astype(kind).view(np.uint8)


_EACH: Final = 640
"""Uploads that are looked at, of each of two people."""

_BITS: Final = 48
"""Bits of an answer that are compared."""

_FLAGS: Final = 1 + 2 * _BITS
_CUTS: Final = (64, 128, 192)
_CHOSEN: Final = 16
_LEAST: Final = 16
SMALL: Final = 1 << 14
"""Seeds that are tried one after the other."""

_EARLIER: Final = 60
"""Seconds before the audit of which any may be a seed."""

_ID_BYTES: Final = 16
_ID_BITS: Final = 128


def public_noise(document: str, seen: Seen, people: Sequence[int], before: int, alpha: float) -> str | None:
    """Find what is wrong about answers of some ``people`` that have to do with public bytes; None where nothing has.
    Wrong with probability at most ``alpha``. ``before``: how many devices each process served before the first that was
    ``seen``.
    """
    texts = (_noise_of(_Uploads(document, seen, person, before), alpha / len(people)) for person in people)
    return next((text for text in texts if text is not None), None)


def _noise_of(uploads: _Uploads, alpha: float) -> str | None:
    tests, chooses = uploads.tests, ~uploads.tests
    if min(tests.sum(), chooses.sum()) < _LEAST:
        return None
    choosing = uploads.flags[chooses]
    varying = np.flatnonzero(choosing.any(axis=0) & ~choosing.all(axis=0))
    if not len(varying):
        return None
    packed, share = _packed(choosing[:, varying]), choosing[:, varying].mean(axis=0)
    candidates = [
        (z, name, stream, cut, place, uploads.flags[tests, varying[flag]])
        for name, stream in uploads.streams()
        for z, cut, place, flag in _related(stream(chooses), packed, share)
    ]
    candidates.sort(key=lambda candidate: -abs(candidate[0]))
    for z, name, stream, cut, place, there in candidates[:_CHOSEN]:
        here = _below(stream(tests)[:, place], cut) == (z > 0)
        both, of = int((here & there).sum()), (len(here), int(here.sum()), int(there.sum()))
        if hypergeom.sf(both - 1, *of) <= alpha / _CHOSEN:
            return (
                f"answers follow from public bytes: {name}, byte {place}, lies on one side of a cut in {both} of "
                f"{of[2]} answers that say one thing, where {of[1] * of[2] / of[0]:.0f} are right"
            )
    return None


def small_seeds(document: str, ids: Sequence[bytes], alpha: float) -> str | None:
    """A finding about ids that a generator makes from a small seed or the time, or None; error far below ``alpha``."""
    message = _campaign_id(document) + bytes(4)
    now = int(time.time())
    every = frozenset(ids)
    tables = [*_streams_of_numbers(0, SMALL), *_streams_of_numbers(now - _EARLIER, now + 1)]
    tried = 0
    for name, stream in tables:
        for number, row in enumerate(stream):
            first, secret = row[:_ID_BYTES], row[: 2 * _ID_BYTES]
            guesses = first, first[::-1], _hmac(secret, message)[:_ID_BYTES]
            tried += len(guesses)
            if not every.isdisjoint(guesses) and tried * len(every) / 2**_ID_BITS <= alpha:
                return f"an id is what {name} makes of a number that anybody finds, the {number + 1}. of {len(stream)}"
    return None


@functools.lru_cache(maxsize=2)
def _streams_of_numbers(first: int, end: int) -> list[tuple[str, list[bytes]]]:
    numbers = range(first, end)
    found = [
        (name, [row.tobytes() for row in generator(numbers)[:, : 2 * _ID_BYTES]])
        for name, generator in from_integers(32)
    ]
    for order in ("little", "big"):
        for width in (4, 8):
            digests = [hashlib.sha256(number.to_bytes(width, order)).digest() for number in numbers]
            found.append((f"SHA-256 ({width} bytes, {order}-endian)", digests))
    return [*found, ("SHA-256 (decimal)", [hashlib.sha256(b"%d" % number).digest() for number in numbers])]


def _campaign_id(document: str) -> bytes:
    """The name of a campaign: the hash of its document, as it stands in addresses."""
    return base64.urlsafe_b64encode(hashlib.sha256(document.encode()).digest()).rstrip(b"=")


class _Uploads:
    """The first uploads of a person, one answer of each: ``flags`` says whether it is the most frequent answer, its
    bits, and whether each of them is not what it usually is.
    """

    def __init__(self, document: str, seen: Seen, person: int, before: int) -> None:
        self._campaign = _campaign_id(document)
        early = (seen.person == person) & (seen.within < _EACH)
        parts = [
            (table, block, mine)
            for table in seen.tables
            for number, block in enumerate(table.shape.blocks)
            if block.ids.stop - block.ids.start == _ID_BYTES
            # Of several answers one, by turns.
            and len(mine := np.flatnonzero(early[table.rows] & (table.rows % len(table.shape.blocks) == number)))
        ]
        rows = [table.rows[mine] for table, _, mine in parts]
        self.ids = _joined([table.ids[mine, block.ids] for table, block, mine in parts], _ID_BYTES)
        self.flags = _joined([_flags(seen, table, block, mine, person) for table, block, mine in parts], _FLAGS)
        self.tests = np.concatenate([np.zeros(0, dtype=np.bool_), *(seen.tests[of] for of in rows)])
        self._questions = [block.question for _, block, mine in parts for _ in mine]
        starts = np.array([0, int((seen.process == 0).sum())])
        self._slots: list[int] = [int(row - starts[seen.process[row]]) + before for of in rows for row in of]

    def streams(self) -> Iterator[tuple[str, Callable[[Flags], Bytes]]]:
        """The streams of the generators, by name: each of the uploads that are flagged."""
        yield "its id itself", self.ids.__getitem__
        ids = [row.tobytes() for row in self.ids]
        questions = [question.to_bytes(4, "little", signed=True) for question in self._questions]
        places = [slot.to_bytes(8, "little") for slot in self._slots]
        public: dict[str, Sequence[bytes]] = {
            "its id": ids,
            "its id in hexadecimal": [one.hex().encode() for one in ids],
            "its id and the campaign's": [one + self._campaign for one in ids],
            "the campaign's id and its own": [self._campaign + one for one in ids],
            "its id and question": [one + question for one, question in zip(ids, questions, strict=True)],
            "its place among the devices": places,
            "the campaign's id and its place among the devices": [self._campaign + place for place in places],
        }
        for what, seeds in public.items():
            for name, generator in from_bytes(self._campaign):
                yield f"{name} of {what}", _of_flagged(generator, seeds)
        for width in (4, 8, 16):
            for order in ("little", "big"):
                numbers = [int.from_bytes(one[:width], order) for one in ids]
                what = f"the first {width} bytes of its id ({order}-endian)"
                for name, numbered in from_integers(8 * width):
                    yield f"{name} of {what}", _of_flagged(numbered, numbers)
        for name, numbered in from_integers(32):
            yield f"{name} of its place among the devices", _of_flagged(numbered, self._slots)


def _of_flagged(generator: Callable[[Sequence[Any]], Bytes], seeds: Sequence[Any]) -> Callable[[Flags], Bytes]:
    return lambda flags: generator(list(itertools.compress(seeds, flags)))


def _joined(parts: Sequence[NDArray[Any]], width: int) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros((0, width), dtype=np.uint8)


def _flags(seen: Seen, table: Table, block: Block, mine: Numbers, person: int) -> Flags:
    """Flag a person's telling answers, in the order of ``mine``; the half that chooses says what is usual."""
    payloads = table.payloads[:, block.payload]
    bits = np.unpackbits(payloads[:, : _BITS // 8], axis=1, bitorder="little").astype(np.bool_)
    width = bits.shape[1]
    found = np.zeros((len(mine), _FLAGS), dtype=np.bool_)
    others = (seen.person[table.rows] == person) & ~seen.tests[table.rows]
    if width and others.any():
        different, times = np.unique(payloads[others], axis=0, return_counts=True)
        found[:, 0] = (payloads[mine] == different[times.argmax()]).all(axis=1)
        found[:, 1 : 1 + width] = bits[mine]
        found[:, 1 + _BITS : 1 + _BITS + width] = bits[mine] != (bits[others].mean(axis=0) > 0.5)
    return found


def _below(stream: NDArray[Any], cut: int) -> Flags:
    """True where bytes lie below the cut; for a cut at 0, where they are odd."""
    return np.asarray(stream < cut if cut else stream & 1 == 1)


def _related(stream: Bytes, packed: Words, share: NDArray[np.float64]) -> Iterator[tuple[float, int, int, int]]:
    """By how many standard deviations a byte and a flag have to do with one another, with the cut, the byte's place and
    the flag's: for every cut the most telling ones. Of the flags the ``packed`` columns, and how often each is set.
    """
    n, cuts = len(stream), (0, *_CUTS)
    holds = np.concatenate([_below(stream, cut) for cut in cuts], axis=1)
    of = holds.mean(axis=0)
    both = np.bitwise_count(_packed(holds)[:, :, None] & packed[:, None]).sum(axis=0, dtype=np.int64)
    spread = np.sqrt(n * np.outer(of * (1 - of), share * (1 - share)))
    z = np.divide(both - n * np.outer(of, share), spread, out=np.zeros_like(spread), where=spread > 0)
    for cut, of_cut in zip(cuts, np.split(z, len(cuts)), strict=True):
        place, flag = np.unravel_index(int(np.abs(of_cut).argmax()), of_cut.shape)
        yield float(of_cut[place, flag]), cut, int(place), int(flag)


def _packed(flags: Flags) -> Words:
    """Every column as words of bits, shape (words, columns)."""
    bits = np.packbits(flags, axis=0)
    rows = np.zeros((-(-len(bits) // 8) * 8, flags.shape[1]), dtype=np.uint8)
    rows[: len(bits)] = bits
    return np.ascontiguousarray(rows.T).view(np.uint64).T


_WORDS: Final = 624
_MIDDLE: Final = 397
_MATRIX: Final = 0x9908B0DF
_HIGH, _LOW = 0x80000000, 0x7FFFFFFF

_BY_CHANCE: Final = 2.0**-32
"""Probability that a uniform word is what the recurrence makes of those before, whatever they are."""


def twisted_ids(seen: Seen, alpha: float) -> str | None:
    """A finding about the order of first ids, or None; wrong with probability <= ``alpha`` where ids are uniform."""
    ids = np.zeros((len(seen.person), 16), dtype=np.uint8)
    for table in seen.tables:
        if table.ids.shape[1] >= ids.shape[1]:
            ids[table.rows] = table.ids[:, :16]
    for process in (0, 1):
        of_process = ids[seen.process == process]
        for order in (of_process, of_process[:, ::-1]):
            words = np.ascontiguousarray(order).view("<u4").ravel()
            right = followed(words)
            if right and binom.sf(right - 1, len(words), _BY_CHANCE) <= alpha / 4:
                return f"{right} words of ids follow from those before as a Mersenne Twister's do, and so do its coins"
    return None


def followed(outputs: Words) -> int:
    """Count how many of the 32-bit words are what the recurrence makes of the 624 before."""
    if len(outputs) <= _WORDS:
        return 0
    state = untempered(outputs)
    end = len(state) - _WORDS
    joined = (state[:end] & _HIGH) | (state[1 : end + 1] & _LOW)
    odd = np.where(state[1 : end + 1] & 1, _MATRIX, 0)
    expected = state[_MIDDLE : _MIDDLE + end] ^ (joined >> 1) ^ odd
    # Words that are all zero come from uploads without ids.
    return int(((expected == state[_WORDS:]) & (outputs[_WORDS:] != 0)).sum())


def untempered(outputs: Words) -> Words:
    """The words of the state behind outputs."""
    y = outputs.astype(np.int64)
    y ^= y >> 18
    y ^= (y << 15) & 0xEFC60000
    # What was shifted by less than half a word comes back a few bits at a time.
    left = y
    for _ in range(5):
        left = y ^ ((left << 7) & 0x9D2C5680)
    state = left
    for _ in range(3):
        state = left ^ (state >> 11)
    return state
