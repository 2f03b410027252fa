"""The package hands its names on when they are asked for, and checking a share brings no estimator along."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ldp_aggregator import trainers


def test_every_name_is_at_its_home():
    assert sorted(trainers._HOMES) == trainers.__all__ == sorted(trainers.__all__)
    for name, home in trainers._HOMES.items():
        assert getattr(trainers, name).__module__ == f"ldp_aggregator.trainers.{home}"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = trainers.nothing


def test_a_server_starts_without_the_estimators_libraries():
    program = "import sys, ldp_aggregator.server.run; print({'sklearn', 'scipy'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"
