"""Keys and signatures on the command line, from the offline machine to the device that pins the key."""

import itertools
import json
import secrets
import stat
import tomllib
from datetime import datetime, timezone

import pytest
from daemon import Daemon
from drafts import draft
from drafts import text as values

from ldp_aggregator.service.signing import read_gateway_seeds
from ldp_client import Classifier, Device, MemoryStorage, RefusedError
from ldp_protocols import Campaign, DocumentError
from ldp_protocols.document.directory import read_directory


@pytest.fixture
def key(run, tmp_path):
    """A key file, and its public key."""
    path = tmp_path / "publisher.key"
    return path, run("key", "create", path)[1].strip()


def test_a_key_is_readable_by_its_owner_only_and_neither_it_nor_what_is_none_is_overwritten(
    run, refused, key, tmp_path
):
    path, public = key
    assert len(public) == 43
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    code, out, err = run("key", "create", path)
    assert (code, out) == (0, f"{public}\n")
    assert "publisher.key is there, and stays as it is" in err
    assert path.read_bytes() == before
    assert public.encode() not in before, "the file holds the secret alone"
    path.chmod(0o640)
    assert "others can read the key" in run("key", "create", path)[2]
    path.chmod(0o600)
    for text in ("nonsense", "ldp-bayes signing key 1: abc", "ldp-bayes signing key 1: !!!", ""):
        path.write_text(text)
        assert run("key", "create", path)[0] == 1
        assert path.read_text() == text
    assert "cannot be written" in run("key", "create", tmp_path / "none" / "key")[2]


def test_a_gateways_key_prints_what_a_draft_takes_and_is_no_publishers(run, key, tmp_path):
    path = tmp_path / "gateway.key"
    code, out, _ = run("key", "create", path, "--gateway")
    assert code == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    gateway = tomllib.loads(out)["gateway"]
    campaign = Campaign.compile(draft(values("age", "young", "old"), gateway=gateway))
    assert campaign.gateway.to_json() == gateway
    assert run("key", "create", path, "--gateway")[1] == out
    assert "is no key of this kind" in run("key", "create", path)[2]
    assert "create FILE --gateway" in run("key", "create", key[0], "--gateway")[2]


def test_a_newer_gateways_key_is_appended_and_has_an_identifier_that_no_older_one_has(
    run, refused, key, tmp_path, monkeypatch
):
    path = tmp_path / "gateway.key"
    first = run("key", "create", path, "--gateway", "--append")[1]
    path.write_text(path.read_text().rstrip("\n"))
    (kept,) = read_gateway_seeds(path)
    drawn = itertools.chain([kept], itertools.repeat(bytes(32)))
    monkeypatch.setattr(secrets, "token_bytes", lambda _: next(drawn))
    code, second, err = run("key", "create", path, "--gateway", "--append")
    assert (code, "SIGHUP" in err) == (0, True)
    assert read_gateway_seeds(path) == (kept, bytes(32))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert second == run("key", "create", path, "--gateway")[1] != first
    assert "--append goes with --gateway" in refused("key", "create", key[0], "--append", expected=2)
    assert "is no key of this kind" in refused("key", "create", key[0], "--gateway", "--append")


def test_nothing_is_published_whose_answers_nobody_opens_unless_another_server_does(
    run, refused, tmp_path, monkeypatch
):
    path, draft_path = tmp_path / "gateway.key", tmp_path / "draft.json"
    lines = [run("key", "create", path, "--gateway", "--append")[1].strip() for _ in range(2)]
    for number, line in enumerate(lines):
        gateway = tomllib.loads(line)["gateway"]
        draft_path.write_text(json.dumps(draft(values("age", "young", "old"), gateway=gateway, title=f"{number}")))
        for command in (["campaign", "create"], ["quickstart", "--draft"]):
            told = refused(*command, draft_path)
            assert "gateway.key: is none of the 0 that" in told
            assert "set gateway_key to the file" in told
    run("key", "create", tmp_path / "other.key", "--gateway")
    monkeypatch.setenv("LDP_AGGREGATOR_GATEWAY_KEY", str(tmp_path / "other.key"))
    told = refused("campaign", "create", draft_path)
    assert f"the newest one's line is: {run('key', 'create', tmp_path / 'other.key', '--gateway')[1].strip()}" in told
    assert run("campaign", "list", "--json")[0] == 1, "there is no store yet"
    monkeypatch.setenv("LDP_AGGREGATOR_GATEWAY_KEY", str(path))
    assert run("campaign", "create", draft_path)[0] == 0
    monkeypatch.setenv("LDP_AGGREGATOR_GATEWAY_KEY", str(tmp_path / "lost.key"))
    assert "lost.key cannot be read" in refused("campaign", "create", draft_path)
    assert run("campaign", "create", draft_path, "--elsewhere")[0] == 0
    monkeypatch.setenv("LDP_AGGREGATOR_GATEWAY_ELSEWHERE", "true")
    assert run("campaign", "create", draft_path)[0] == 0


def test_what_cannot_be_meant_is_not_signed_and_what_another_key_signed_is_not_published(run, refused, key, tmp_path):
    path, public = key
    sign = ("key", "sign", path, "--output", tmp_path / "d.json", "--version", "1", "--expires-in")
    (tmp_path / "bad.json").write_text("{}")
    twice = f"--campaign {'A' * 43}"
    for more in ("0", "nan", "1 --campaign short", f"1 {twice} {twice}", f"1 {twice}=bad.json", f"1 {twice}=none.json"):
        assert run(*sign, *more.replace("=", f"={tmp_path}/").split())[0] == (1 if "=" in more else 2), more
    assert not (tmp_path / "d.json").exists()
    other = run("key", "create", tmp_path / "other.key")[1].strip()
    assert run(*sign, 30)[0] == 0
    signed = read_directory((tmp_path / "d.json").read_bytes(), public)
    days = (signed.expires - datetime.now(timezone.utc)).total_seconds() / 86400
    assert 29.9 < days <= 30
    assert run("token", "create", "--scope", "relay")[0] == 0, "there is a store"
    assert "not signed by the publisher's key" in refused("key", "publish", other, tmp_path / "d.json")


def test_a_device_that_pins_the_key_answers_and_classifies_as_far_as_it_was_signed(run, key, weather, data, tmp_path):
    """The whole way, with the real commands, a real server and a real device."""
    path, public = key
    campaign_id = weather()

    def sign(version, *campaigns):
        named = [text for campaign in campaigns for text in ("--campaign", campaign)]
        signing = ("key", "sign", path, "--version", version, "--expires-in", 30, *named)
        assert run(*signing, "--output", tmp_path / "directory.json")[0] == 0
        return run("key", "publish", public, tmp_path / "directory.json")

    assert sign(1)[0] == 0
    with Daemon(data) as daemon:
        device = Device(MemoryStorage(), max_total_epsilon=8)
        part = device.campaign(daemon.public, campaign_id, max_epsilon=4, publisher=public)
        assert part.refusal().code == "not-in-directory"
        with pytest.raises(RefusedError):
            part.grant()
        assert sign(2, campaign_id)[0] == 0
        assert part.refusal() is None
        part.grant()
        part.contribute({"sky": "blue"}, "no")
        assert device.run_once(30)
        assert part.status().sent == 1
        assert run("train", campaign_id, "--anyway", "--output", tmp_path / "model.json")[0] == 0
        with pytest.raises(DocumentError, match="not the one"):
            part.classifier()
        assert sign(3, f"{campaign_id}={tmp_path / 'model.json'}")[0] == 0
        assert part.classifier().classes == ("yes", "no")
        fetched = Classifier.fetch(daemon.public, campaign_id, storage=tmp_path / "models", publisher=public)
        assert fetched.classes == ("yes", "no")
        assert daemon.stop() == 0
    code, _, err = sign(2, campaign_id)
    assert (code, "sign a later one" in err) == (1, True)
    acts = [act["act"] for act in json.loads(run("status", "--log", "--json")[1])]
    published = "publish directory"
    assert acts == ["create campaign", published, published, "publish model", published, published]
    kept = b"".join(file.read_bytes() for file in data.iterdir())
    assert path.read_bytes().split()[-1] not in kept, "the key never comes near the store"
