"""A sound client that answers thousands at a time, for measuring false alarms."""

import json

import msgpack
import numpy as np

from ldp_aggregator.audit.searching.tight_events import item_of
from ldp_aggregator.mechanisms import analysis_of
from ldp_aggregator.mechanisms.analysis import MomentBatch
from ldp_protocols import Campaign
from ldp_protocols.document.questions import MOMENT

VALUE_BITS = 52


class Vectorised:
    """Every call is a process with coins of its own; devices of a storage remember what they sent."""

    def __init__(self, seed):
        self._rng = np.random.default_rng(seed)
        self._sent = {}
        self._studies = {}

    def __call__(self, document, people, storage=None, /):
        campaign = Campaign.parse(document.encode())
        fresh = self._fresh(campaign, people)
        if storage is None:
            return fresh
        study = campaign.study
        return [
            ()
            if study is not None and self._studies.setdefault((storage, study, person.device), document) != document
            else self._sent.setdefault((storage, document, person.device), answer)
            for person, answer in zip(people, fresh, strict=True)
        ]

    def _fresh(self, campaign, people):
        n, document = len(people), json.loads(campaign.document)
        blocks = [[] for _ in range(n)]
        items = {}
        for pool in campaign.pools:
            weights = np.array([question.weight for question in pool], dtype=float)
            drawn = self._rng.choice([question.index for question in pool], size=n, p=weights / weights.sum())
            ids = self._rng.bytes(16 * n)
            for question in pool:
                rows = np.flatnonzero(drawn == question.index)
                for row in rows:
                    key = question.index, id(people[row])
                    if key not in items:
                        items[key] = item_of(document, document["questions"][question.index], people[row])
                payloads = self._payloads(question, [items[question.index, id(people[row])] for row in rows])
                for row, payload in zip(rows, payloads, strict=True):
                    blocks[row].append([question.index, ids[16 * row : 16 * row + 16], payload.tobytes()])
        return [(msgpack.packb([1, of]),) for of in blocks]

    def _payloads(self, question, items):
        """A record that means nothing is answered as a value of 0, or as a random index."""
        if question.encoding == MOMENT:
            pairs = [(0, 0.0) if item is None else (item.cell, item.value) for item in items]
            cells, values = np.array(pairs).reshape(-1, 2).T
            many = MomentBatch(cells.astype(int), (values * (1 << VALUE_BITS)).astype(int), np.zeros(len(items), bool))
        else:
            many = np.array([self._rng.integers(question.domain_size) if item is None else item for item in items], int)
        return analysis_of(question.mechanism).perturb(many, self._rng)
