"""Counting many questions together gives what counting them one by one gives, for whatever bytes come."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ldp_aggregator.counting import decoding
from ldp_aggregator.counting.decoding import count, lay_out, payload_rows, refusals
from ldp_aggregator.counting.digest import digests
from protocols import Campaign

KINDS = ("de", "oue", "ss", "she", "sue", "the")


def mixed_campaign(discrete, continuous, sizes=(2, 3, 4, 7, 9, 40, 130, 300)):
    """Questions of very different widths."""
    features = [
        {"name": f"f{n}", "kind": "categorical", "missing": False, "values": [str(v) for v in range(size)]}
        for n, size in enumerate(sizes)
    ]
    features += [{"name": f"c{n}", "kind": "continuous", "missing": False, "low": 0, "high": 1} for n in range(2)]
    return Campaign.compile(
        {
            "version": 1,
            "title": "Mixed",
            "label": {"name": "label", "classes": ["a", "b", "c"]},
            "features": features,
            "privacy": {"epsilon": 1.0, "discrete": discrete, "continuous": continuous},
        }
    )


def some_payloads(campaign, dice, most):
    """Questions in order, and for each report bytes that are often sound and often not."""
    questions, payloads = [], []
    for number, question in enumerate(campaign.questions):
        for _ in range(dice.randrange(most + 1)):
            width = question.mechanism.width
            payload = bytearray(dice.randbytes(width) if dice.random() < 0.5 else bytes(width))
            if dice.random() < 0.5:
                payload[0] = dice.randrange(3)
                payload[-1] = dice.randrange(2)
            questions.append(number)
            payloads.append(bytes(payload))
    return questions, payloads


def one_by_one(campaign, questions, payloads, counted):
    """Codes, digests and sums by the functions for one question."""
    codes, checks, sums = {}, np.zeros(len(questions), np.uint64), {}
    for number in sorted(set(questions)):
        question = campaign.questions[number]
        places = [place for place, asked in enumerate(questions) if asked == number]
        rows = payload_rows(question, b"".join(payloads[place] for place in places))
        codes |= {places[row]: code for row, code in refusals(question, rows).items()}
        checks[places] = digests(number, rows)
        kept = [row for row, place in enumerate(places) if counted[place]]
        if kept:
            sums[number] = (len(kept), count(question, rows[kept]).tolist())
    return codes, checks.tolist(), sums


@pytest.mark.parametrize("discrete", KINDS)
@pytest.mark.parametrize("continuous", ["laplace", "onebit", "sign"])
@pytest.mark.parametrize("few", [0, 64])
def test_both_ways_of_counting_agree(discrete, continuous, few, monkeypatch):
    monkeypatch.setattr(decoding, "FEW", few)
    campaign = mixed_campaign(discrete, continuous)
    dice = random.Random(f"{discrete} {continuous}")
    for most in (1, 3, 6):
        questions, payloads = some_payloads(campaign, dice, most)
        laid_out = lay_out(campaign, np.array(questions, dtype=np.int64), b"".join(payloads))
        codes, checks, sums = {}, np.zeros(len(questions), np.uint64), {}
        for sheet in laid_out:
            codes |= sheet.refusals()
            checks[sheet.places] = sheet.digests()
        counted = np.array([place not in codes and dice.random() < 0.9 for place in range(len(questions))], dtype=bool)
        for sheet in laid_out:
            sums |= {q: (n, counts.tolist()) for q, (n, counts) in sheet.sums(counted).items()}
        assert (codes, checks.tolist(), sums) == one_by_one(campaign, questions, payloads, counted)
        assert (len(laid_out) < len(set(questions))) == (few > 0)
