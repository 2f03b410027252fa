"""What is uploaded as sources: the same wheels come from it, and it installs where nothing is."""

import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from drafts import draft, text
from installing import SMALL, build_wheel, copy_of_sources, install, printed

PROJECTS = {"ldp-bayes-client": SMALL, "ldp-bayes": Path()}
ANSWER = """
import sys
from ldp_client import Device, perturb
from ldp_protocols import Campaign, encode_upload
campaign = Campaign.parse(open(sys.argv[1], "rb").read())
print(len(encode_upload(perturb(campaign, {"u": "1"}, "a"), campaign)))
"""
COMPILE = """
from pathlib import Path
from ldp_protocols import Campaign
Path("document.json").write_bytes(Campaign.compile(Path("draft.json").read_text()).document)
"""
SERVE = """
from importlib.resources import files
from ldp_aggregator.dashboard import __name__ as dashboard
from ldp_aggregator import trainers
from ldp_aggregator.server import process
print(all(getattr(trainers, name) for name in trainers.__all__) and bool(process))
print((files(dashboard) / "templates" / "base.html").is_file())
"""

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return copy_of_sources(tmp_path_factory.mktemp("sources"))


@pytest.fixture(scope="module")
def sdists(copy, tmp_path_factory) -> dict[str, Path]:
    made = {}
    for name, project in PROJECTS.items():
        target = tmp_path_factory.mktemp("sdist")
        printed([sys.executable, "-m", "build", "--sdist", "--outdir", target, copy / project])
        (made[name],) = target.glob("*.tar.gz")
    return made


def wheel_of(source: Path, folder: Path) -> dict[str, bytes]:
    """The files of the wheel that is built from a folder or an archive; what lists them is left out."""
    with zipfile.ZipFile(build_wheel(source, folder)) as archive:
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
    whole = f"ldp-bayes[aggregator] @ {sdists['ldp-bayes'].as_uri()}"
    return install(tmp_path_factory.mktemp("clean"), sdists["ldp-bayes-client"], whole)


def test_what_is_installed_from_sources_publishes_answers_and_serves_pages(clean, tmp_path):
    (tmp_path / "draft.json").write_text(json.dumps(draft(text("u", "1", "2", "3", missing=True))), encoding="utf-8")
    campaign = printed(
        [clean / "ldp-aggregator", "campaign", "create", "draft.json", "--data", "data"], cwd=tmp_path
    ).strip()
    assert len(campaign) == 43
    printed([clean / "python", "-c", COMPILE], cwd=tmp_path)
    assert int(printed([clean / "python", "-c", ANSWER, "document.json"], cwd=tmp_path)) > 20
    assert printed([clean / "python", "-c", SERVE], cwd=tmp_path).split() == ["True", "True"]
    assert "contribute" in printed([clean / "ldp-client", "--help"], cwd=tmp_path)
    assert "complete" in printed([clean / "ldp-client", "--completion", "bash"], cwd=tmp_path)
