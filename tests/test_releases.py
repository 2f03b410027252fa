"""What a release wrote, every later version reads; and public names only grow."""

import json
import re
import shutil
from pathlib import Path

import pytest
from keep_release import keep, public_names

from ldp_aggregator import NaiveBayes, Tally
from ldp_aggregator.store import open_store
from ldp_client import Device
from ldp_protocols import Campaign

RELEASES = Path(__file__).parent / "releases"
FRESH = "what this version keeps"


@pytest.fixture(scope="module", params=[FRESH, *sorted(one.name for one in RELEASES.glob("*") if one.is_dir())])
def release(request, tmp_path_factory):
    """A copy, since opening a store or a device's storage may bring it up to date."""
    folder = tmp_path_factory.mktemp("releases") / "release"
    if request.param == FRESH:
        keep(folder)
    else:
        shutil.copytree(RELEASES / request.param, folder)
    return folder


@pytest.fixture(scope="module")
def campaign(release):
    return Campaign.parse((release / "campaign.json").read_bytes())


def test_every_release_that_the_changelog_tells_of_was_kept():
    """Without what it wrote nothing of this could fail."""
    text = (RELEASES.parents[1] / "CHANGELOG.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^## \[?(\d+\.\d+\.\d+)", text, re.MULTILINE))
    assert told == {one.name for one in RELEASES.glob("*") if one.is_dir()}
    assert "## Unreleased" in text


def test_uploads_are_counted_and_models_classify(release, campaign):
    tally = Tally.of_uploads(campaign, [(release / "upload.bin").read_bytes()])
    assert tally.n.sum() == len(campaign.groups)
    model = NaiveBayes.from_json((release / "model.json").read_text())
    assert model.model_.classes == campaign.label.classes


async def test_a_store_opens_with_its_counts_and_its_model(release, campaign):
    store = await open_store(release / "store", create=False)
    try:
        assert (await store.tally(campaign.id)).n.sum() == len(campaign.groups)
        assert (await store.model(campaign.id)).document == (release / "model.json").read_text()
        assert await store.check() == []
    finally:
        await store.close()


def test_a_device_that_has_answered_does_not_answer_again(release, campaign):
    with Device(release / "device.db", max_total_epsilon=2.0) as device:
        joined = device.campaign((release / "address.txt").read_text(), campaign.id, max_epsilon=2.0)
        assert joined.next_step().step == "nothing"
        assert campaign.title in str(device.ledger())
        assert joined.status().sent == len(campaign.groups)


def test_public_names_only_grow(release):
    gone = set(json.loads((release / "names.json").read_text())) - set(public_names())
    assert not gone, f"gone since a release: {sorted(gone)}"
