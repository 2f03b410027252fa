"""A sound client that answers thousands at a time, by the definitions of the mechanisms, for measuring false alarms."""

import json

import msgpack
import numpy as np

from ldp_aggregator.audit.searching.tight_events import Moment, item_of

ONE = 2**64


class Vectorised:
    """Every call is a process with coins of its own; devices of a storage remember what they sent."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self._sent = {}
        self._studies = {}

    def __call__(self, document, people, storage=None, /):
        value = json.loads(document)
        fresh = self._fresh(value, people)
        if storage is None:
            return fresh
        study = value.get("study")
        return [
            ()
            if study is not None and self._studies.setdefault((storage, study, person.device), document) != document
            else self._sent.setdefault((storage, document, person.device), answer)
            for person, answer in zip(people, fresh, strict=True)
        ]

    def _fresh(self, document, people):
        n = len(people)
        groups = {}
        for number, question in enumerate(document["questions"]):
            groups.setdefault(question["group"] if document["privacy"]["answers"] == "all" else 0, []).append(number)
        blocks = [[] for _ in range(n)]
        items = {}
        for questions in groups.values():
            weights = np.array([document["questions"][number]["weight"] for number in questions], dtype=float)
            drawn = self._rng.choice(questions, size=n, p=weights / weights.sum())
            ids = self._rng.bytes(16 * n)
            for number in questions:
                rows = np.flatnonzero(drawn == number)
                question = document["questions"][number]
                for row in rows:
                    key = number, id(people[row])
                    if key not in items:
                        items[key] = item_of(document, question, people[row])
                found = [items[number, id(people[row])] for row in rows]
                for row, payload in zip(rows, self._payloads(question, found), strict=True):
                    blocks[row].append([number, ids[16 * row : 16 * row + 16], payload])
        return [(msgpack.packb([1, of]),) for of in blocks]

    def _payloads(self, question, items):
        d, n, parameters = question["domain_size"], len(items), question["parameters"]
        p, q = (int(parameters.get(name, 0)) / ONE for name in "pq")
        if question["mechanism"] in ("laplace", "she"):
            cells = np.zeros((n, d))
            for row, item in enumerate(items):
                if isinstance(item, Moment):
                    cells[row, item.cell] = item.value * (1 << parameters["grid"])
                elif item is not None:
                    cells[row, item] = 1
            a = np.exp(-(2**40) / int(parameters["scale"]))
            noise = self._rng.geometric(1 - a, (n, d)) - self._rng.geometric(1 - a, (n, d))
            # A device cuts its own noise at so many scales.
            most = 16 * int(parameters["scale"]) // 2**40
            noise = noise.clip(-most, most)
            return [row.tobytes() for row in (cells + noise).astype("<i4")]
        if question["mechanism"] == "onebit":
            cells = self._rng.integers(d, size=n)
            values = [
                item.value if item is not None and item.cell == cell else 0.0
                for item, cell in zip(items, cells, strict=True)
            ]
            ones = self._rng.random(n) < 0.5 + (p - 0.5) * np.array(values)
            return [row.tobytes() for row in np.stack([cells, ones], axis=1).astype(np.uint8)]
        # A record that means nothing is answered as a random index.
        indices = np.array([self._rng.integers(d) if item is None else item for item in items], dtype=np.int64)
        if question["mechanism"] == "de":
            lies = self._rng.random(n) >= p
            other = (indices + self._rng.integers(1, d, n)) % d if d > 1 else indices
            return [bytes([value]) for value in np.where(lies, other, indices)]
        if question["mechanism"] == "ss":
            # The true index is in the subset, or it is not; the others are in it by lot.
            places = self._rng.random((n, d))
            places[np.arange(n), indices] = np.where(self._rng.random(n) < p, -1.0, 2.0)
            bits = places.argsort(axis=1).argsort(axis=1) < parameters["w"]
            return [row.tobytes() for row in np.packbits(bits, axis=1, bitorder="little")]
        bits = self._rng.random((n, d)) < np.where(np.arange(d) == indices[:, None], p, q)
        return [row.tobytes() for row in np.packbits(bits, axis=1, bitorder="little")]
