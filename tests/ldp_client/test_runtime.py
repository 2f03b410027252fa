"""The seconds that a call has."""

import math

from ldp_client.runtime import seconds_left, within


def test_a_call_inside_another_has_no_more_seconds_than_that_one_and_gives_none_back():
    assert seconds_left(7.0) == 7.0
    with within(60.0):
        with within(1000.0):
            assert 59 < seconds_left(math.inf) <= 60
        with within(None):
            assert 59 < seconds_left(math.inf) <= 60
        with within(5.0):
            assert 4 < seconds_left(math.inf) <= 5
        assert 59 < seconds_left(math.inf) <= 60
        with within(-1.0):
            assert seconds_left(math.inf) == 0.0
    assert seconds_left(math.inf) == math.inf
