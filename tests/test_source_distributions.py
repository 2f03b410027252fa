"""What is uploaded as sources: the same wheels come from it, and it installs where nothing is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = (
    "protocols",
    "ldp_client",
    "ldp_aggregator",
    "simulations",
    "deploy",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
PROJECTS = {"ldp-bayes-client": Path("deploy", "client-wheel"), "ldp-bayes": Path()}
DRAFT = {
    "version": 1,
    "title": "t",
    "label": {"name": "y", "classes": ["a", "b"]},
    "features": [{"name": "u", "kind": "categorical", "values": ["1", "2", "3"]}],
    "privacy": {"epsilon": 1.0},
}
ANSWER = """
import sys
from ldp_client import Device, perturb
from protocols import Campaign, encode_upload
campaign = Campaign.parse(open(sys.argv[1], "rb").read())
print(len(encode_upload(perturb(campaign, {"u": "1"}, "a"))))
"""
COMPILE = """
from pathlib import Path
from protocols import Campaign
Path("document.json").write_bytes(Campaign.compile(Path("draft.json").read_text()).document)
"""
SERVE = """
from importlib.resources import files
from ldp_aggregator.dashboard import __name__ as dashboard
from ldp_aggregator import trainers
from ldp_aggregator.server import app
print(all(getattr(trainers, name) for name in trainers.__all__) and bool(app))
print((files(dashboard) / "templates" / "base.html").is_file())
"""

pytestmark = pytest.mark.install


def run(command: Sequence[str | Path], **options: object) -> str:
    # Without PYTHONPATH and outside the checkout, so that only what is installed can be imported.
    environment = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the sources: a build leaves files beside them."""
    folder = tmp_path_factory.mktemp("sources")
    for name in SOURCES:
        source = REPOSITORY / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy(source, folder / name)
    return folder


@pytest.fixture(scope="module")
def sdists(copy, tmp_path_factory) -> dict[str, Path]:
    made = {}
    for name, project in PROJECTS.items():
        target = tmp_path_factory.mktemp("sdist")
        run([sys.executable, "-m", "build", "--sdist", "--outdir", target, copy / project])
        (made[name],) = target.glob("*.tar.gz")
    return made


def wheel_of(source: Path, folder: Path) -> dict[str, bytes]:
    """The files of the wheel that is built from a folder or an archive; what lists them is left out."""
    run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, source])
    (made,) = folder.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


@pytest.mark.parametrize("name", PROJECTS)
def test_the_wheel_from_the_sources_is_the_wheel_from_the_repository(name, copy, sdists, tmp_path):
    ours = wheel_of(copy / PROJECTS[name], tmp_path / "ours")
    theirs = wheel_of(sdists[name], tmp_path / "theirs")
    assert sorted(ours) == sorted(theirs)
    assert [one for one in ours if ours[one] != theirs[one]] == []


@pytest.mark.parametrize("name", PROJECTS)
def test_the_sources_hold_the_licence_and_no_file_outside_their_folder(name, sdists):
    with tarfile.open(sdists[name]) as archive:
        names = archive.getnames()
    folder = sdists[name].name.removesuffix(".tar.gz")
    assert [one for one in names if one.partition("/")[0] != folder or ".." in Path(one).parts] == []
    assert f"{folder}/LICENSE" in names


@pytest.fixture(scope="module")
def clean(sdists, tmp_path_factory) -> Path:
    """An environment into which the sources, and what the aggregator asks for, were installed."""
    folder = tmp_path_factory.mktemp("clean")
    run([sys.executable, "-m", "venv", folder])
    whole = f"ldp-bayes[aggregator] @ {sdists['ldp-bayes'].as_uri()}"
    run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", sdists["ldp-bayes-client"], whole])
    return folder / "bin"


def test_what_is_installed_from_sources_publishes_answers_and_serves_pages(clean, tmp_path):
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT), encoding="utf-8")
    campaign = run(
        [clean / "ldp-aggregator", "campaign", "create", "draft.json", "--data", "data"], cwd=tmp_path
    ).strip()
    assert len(campaign) == 43
    run([clean / "python", "-c", COMPILE], cwd=tmp_path)
    assert int(run([clean / "python", "-c", ANSWER, "document.json"], cwd=tmp_path)) > 20
    assert run([clean / "python", "-c", SERVE], cwd=tmp_path).split() == ["True", "True"]
    assert "contribute" in run([clean / "ldp-client", "--help"], cwd=tmp_path)
    assert "complete" in run([clean / "ldp-client", "--completion", "bash"], cwd=tmp_path)
