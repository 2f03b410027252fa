"""The package hands its names on when they are asked for."""

from __future__ import annotations

import pytest

from ldp_aggregator import trainers


def test_every_name_is_at_its_home():
    assert sorted(trainers._HOMES) == trainers.__all__ == sorted(trainers.__all__)
    for name, home in trainers._HOMES.items():
        assert getattr(trainers, name).__module__ == home
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trainers.nothing
