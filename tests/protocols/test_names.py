"""Packages hand names on, each loaded when it is first used."""

from __future__ import annotations

import builtins
import subprocess
import sys
from importlib import import_module

import pytest

from protocols.names import loaded_on_use

PACKAGES = (
    "ldp_aggregator",
    "ldp_aggregator.trainers",
    "ldp_client",
    "ldp_client.relay",
    "ldp_client.testing",
    "protocols",
    "simulations",
)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_every_name_that_it_hands_on_and_no_other(name):
    package = import_module(name)
    assert all(getattr(package, one) is not None for one in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match=rf"module '{name}' has no attribute 'absent'"):
        _ = package.absent


def test_a_module_is_loaded_with_its_first_name_and_other_imports_are_left_alone():
    code = (
        "import sys\nfrom protocols.names import loaded_on_use\n"
        "with loaded_on_use(globals()):\n    from fractions import Fraction as Fraction\n    import_now = __import__\n"
        "__name__ = 'package'\nprint('fractions' in sys.modules, 'Fraction' in globals(), __all__)\n"
        "print(__getattr__('Fraction')(1, 2), 'fractions' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "False False ['Fraction']\n1/2 True\n"


def fail_inside():
    with loaded_on_use({"__name__": "package"}):
        from colorsys import hls_to_rgb  # into another namespace, and so at once

        raise ValueError(hls_to_rgb(0.0, 0.0, 0.0))


def test_a_block_that_fails_leaves_imports_as_they_were():
    before = builtins.__import__
    with pytest.raises(ValueError, match=r"\(0.0, 0.0, 0.0\)"):
        fail_inside()
    assert builtins.__import__ is before
