"""Packages hand names on, each loaded when it is first used."""

import inspect
import os
import pickle
import subprocess
import sys
import zipfile
from importlib import import_module
from pathlib import Path

import pytest

import ldp_protocols
from ldp_protocols import LdpError, errors

PACKAGES = (
    *("ldp_aggregator", "ldp_aggregator.trainers", "ldp_client", "ldp_aggregator.relay", "ldp_client.testing"),
    *("ldp_protocols", "ldp_simulations"),
)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_every_name_that_it_hands_on_and_no_other(name):
    if not name.startswith(("ldp_client", "ldp_protocols")):
        pytest.importorskip("numpy", reason="the aggregator's packages are not installed")
    package = import_module(name)
    assert all(getattr(package, one) is not None for one in package.__all__)
    assert set(package.__all__) <= set(dir(package))
    assert "lazy_names" not in dir(package)
    with pytest.raises(AttributeError, match=rf"module '{name}' has no attribute 'absent'"):
        _ = package.absent


@pytest.mark.parametrize("kind", [kind for _, kind in inspect.getmembers(errors, inspect.isclass)])
def test_every_error_has_the_one_base_and_is_imported_from_the_package(kind):
    """One ``except`` catches whatever ``ldp_protocols`` raises about its input."""
    assert issubclass(kind, LdpError)
    assert getattr(ldp_protocols, kind.__name__) is kind
    assert kind.__name__ in ldp_protocols.__all__
    error = kind("one", "two")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code) == (str(error), error.code)


def test_names_are_found_in_an_archive_too(tmp_path):
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        for file in Path(ldp_protocols.__file__).parent.rglob("*.py*"):
            if file.suffix in (".py", ".pyi"):
                archive.write(file, Path("ldp_protocols") / file.relative_to(Path(ldp_protocols.__file__).parent))
    code = "import ldp_protocols; print(ldp_protocols.Campaign.__module__, '.zip' in ldp_protocols.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "app.zip")}
    said = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60, env=environment, cwd=tmp_path)
    assert said == "ldp_protocols.campaign True\n"
