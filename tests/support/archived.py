"""Campaigns with every kind of payload, and random reports of them, for the tests of the archive."""

from functools import lru_cache

import numpy as np
import pytest
from drafts import draft, number, text
from payloads import possible_payloads

from ldp_aggregator.archive.locations import Reports
from ldp_protocols import Campaign


@pytest.fixture(scope="session", params=[("de", "onebit"), ("oue", "laplace"), ("ss", "sign"), ("she", "onebit")])
def campaign(request):
    """Indices, bits, subsets, noisy vectors: payloads of one byte and of many."""
    discrete, continuous = request.param
    features = (text("colour", "red", "green", "blue"), text("size", "small", "large"), number("age", 0, 100))
    privacy = {"epsilon": 1.0, "discrete": discrete, "continuous": continuous}
    return Campaign.compile(draft(*features, label={"name": "label", "classes": ["yes", "no"]}, privacy=privacy))


def random_kept(campaign, reports, seed):
    """About so many reports that devices can have sent, spread over all questions."""
    rng = np.random.default_rng(seed)
    each = max(1, reports // len(campaign.questions))
    return {
        asked: Reports(rng.integers(0, 256, (each, 16), dtype=np.uint8), rng.choice(_sound(campaign, asked), each))
        for asked in range(len(campaign.questions))
    }


def other_answers(campaign, question, kept):
    """The same ids with another sound payload each."""
    sound = _sound(campaign, question)
    others = [next(row for row in sound if (row != payload).any()) for payload in kept.payloads]
    return Reports(kept.ids, np.array(others, dtype=np.uint8))


@lru_cache
def _sound(campaign, question):
    payloads = possible_payloads(campaign.questions[question])
    return np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(len(payloads), -1)
