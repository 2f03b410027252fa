"""Random campaigns, tampered documents, odd records and scripted words: a client for phones gives the bytes of Python.

A few campaigns in every run, 10,000 at length. No outcome is a matter of chance: seeds are fixed, and every single
difference fails.
"""

import pytest
from differential import compare

FEW, MANY, AT_ONCE = 300, 10_000, 500


@pytest.mark.parametrize(
    ("first", "end"),
    [(0, FEW), *(pytest.param(n, n + AT_ONCE, marks=pytest.mark.long) for n in range(0, MANY, AT_ONCE))],
)
def test_random_campaigns_and_scripted_coins_give_the_same_bytes_as_python(first, end, program):
    compare([*program, "differential"], first, end)
