"""A federation from the shell: campaign, tokens, shares, the model, withdrawal."""

import asyncio
import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from daemon import Daemon
from drafts import draft, number

from ldp_aggregator.cli import tables
from ldp_aggregator.store import open_store
from ldp_aggregator.trainers import FederatedState, encode_share
from ldp_protocols import Campaign

INTERRUPTED = 130


ILL = {"name": "ill", "classes": ["yes", "no"]}
DRAFT = draft(number("age", 0, 100, missing=True), label=ILL, privacy={"epsilon": 2})
CAMPAIGN = Campaign.compile(DRAFT)


def submit(name, share=None):
    """The command line of a node."""
    return f"node submit {name}.csv --campaign doc.json --output {share or name}.share"


def table(seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.uniform(0, 100, 80), "ill": rng.choice(["yes", "no"], 80)})


@pytest.fixture
def shell(run, tmp_path, monkeypatch):
    """Exit code, standard output and standard error of a command, run in a folder with a draft, two tables, a store."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.json").write_text(json.dumps(DRAFT))
    for seed, name in enumerate(("north", "south")):
        table(seed).to_csv(tmp_path / f"{name}.csv", index=False)

    def shell_line(line):
        return run(*line.split())

    def must(line):
        code, out, err = shell_line(line)
        assert code == 0, err
        return out

    shell_line.must = must
    return shell_line


@pytest.fixture
def refused(refused):
    """The one line in which a command line fails."""
    return lambda line, **more: refused(*line.split(), **more)


@pytest.fixture
def not_sent(shell):
    """The one line in which a share that is kept is not sent."""

    def fail(line):
        code, _, err = shell(line)
        assert (code, err.count("\n")) == (1, 1), err
        return err

    return fail


@pytest.fixture
def federation(shell, tmp_path):
    """A federated campaign, its document and the tokens of two nodes in files."""
    assert shell.must("campaign create draft.json --federated").strip() == CAMPAIGN.id
    (tmp_path / "doc.json").write_text(shell.must(f"campaign show {CAMPAIGN.id} --document").rstrip("\n"))
    for name in ("north", "south"):
        (tmp_path / f"{name}.token").write_text(shell.must(f"token create --scope node --name {name}"))
    return tmp_path


def model_of(url):
    try:
        with urllib.request.urlopen(f"{url}/v1/campaigns/{CAMPAIGN.id}/model") as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_a_federation_from_its_campaign_to_its_model_and_back(shell, not_sent, federation):
    shares = {}
    for name in ("north", "south"):
        told = shell.must(f"{submit(name)} --id {CAMPAIGN.id}")
        assert "guarantee: epsilon = 2; relation: add or remove one row;" in told
        assert "nothing is sent" in told
        shares[name] = (federation / f"{name}.share").read_bytes()
    with Daemon(federation / "data") as daemon:
        for name in ("north", "south", "north"):
            told = shell.must(f"{submit(name)} --url {daemon.public} --token-file {name}.token")
            assert told.startswith(f"{name}.share is there: its share is taken as it is, and {name}.csv is not read\n")
            assert told.endswith(f"the share is kept as that of '{name}'\n")
        assert model_of(daemon.public) == FederatedState(CAMPAIGN, shares).model().to_json()
        shown = shell.must(f"campaign show {CAMPAIGN.id}")
        assert "federated: True\nshares: 2\n" in shown
        assert "epsilon: 2 for the rows of each node, a share\nguarantee: epsilon = 2; relation" in shown
        assert re.search(r"^north +20\S+Z +0 +0$", shown, re.MULTILINE)
        shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
        assert [node["node"] for node in shown["nodes"]] == ["north", "south"]
        told = shell.must(f"node withdraw {CAMPAIGN.id} --url {daemon.public} --token-file north.token")
        assert told == "this node has no share in the campaign any more\n"
        assert model_of(daemon.public) == FederatedState(CAMPAIGN, {"south": shares["south"]}).model().to_json()
        (federation / "fresh.token").write_text(shell.must("token create --in-place-of south --name south-again"))
        assert "wrong-token" in not_sent(f"{submit('south')} --url {daemon.public} --token-file south.token")
        shell.must(f"{submit('south')} --url {daemon.public} --token-file fresh.token")
        assert shell.must(f"campaign show {CAMPAIGN.id}").count("south") == 1, "a rotated token is the same node"
        told = shell.must("token revoke south-again --withdraw")
        assert told == "token 'south-again' is revoked, 1 shares are withdrawn\n"
        assert model_of(daemon.public) == 404
        assert shell.must("fsck").startswith("1 campaigns are sound")
        assert shell.must(f"campaign close {CAMPAIGN.id}") == "closed with 0 shares\n"
        assert "campaign-closing" in not_sent(f"{submit('north')} --url {daemon.public} --token-file north.token")


def test_what_a_federated_campaign_is_not_is_told_in_one_line(refused, federation):
    (federation / "moments.json").write_text(json.dumps({**DRAFT, "asks": "moments", "study": "rounds"}))
    told = {
        f"train {CAMPAIGN.id}": "is federated: its model is that of the shares there are",
        f"estimates {CAMPAIGN.id}": "is federated: it has a model, and no estimates",
        "campaign create draft.json --federated --max-reports 5": "takes shares of nodes and no reports",
        "campaign create moments.json --federated": 'a federated campaign asks for a "model"',
        "token revoke nobody --withdraw": "no token in use has the name 'nobody'",
    }
    for line, message in told.items():
        assert message in refused(line)


def test_what_a_node_sends_again_is_told_with_what_it_costs(shell, federation):
    shell.must(submit("north", "first"))
    shell.must(submit("north", "second"))
    told = shell.must(f"{submit('south', 'third')} --other-rows")
    assert "declared: no row of it was in a share that this node sent before" in told
    with Daemon(federation / "data") as daemon:
        for share, epsilon in (("first", 2), ("first", 2), ("third", 2), ("second", 4), ("first", 4)):
            shell.must(f"{submit('north', share)} --url {daemon.public} --token-file north.token")
            shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
            assert shown["guarantee"]["epsilon"] == epsilon
        shell.must(f"node withdraw {CAMPAIGN.id} --url {daemon.public} --token-file north.token")
    shown = shell.must(f"campaign show {CAMPAIGN.id}")
    declared = "add or remove one row of a node whose shares have other rows where it declared so"
    assert f"guarantee: epsilon = 4; relation: {declared}" in shown
    assert re.search(r"^north +withdrawn +1 +1$", shown, re.MULTILINE)
    shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
    assert shown["nodes"] == [{"node": "north", "received": None, "replacements": 1, "other_rows": 1}]
    assert (shown["epsilon"], shown["guarantee"]["epsilon"]) == (2, 4)


def test_a_token_is_revoked_without_its_shares_and_they_can_be_withdrawn_later(shell, refused, federation):
    async def sent(store):
        share = encode_share(CAMPAIGN, np.zeros(len(FederatedState(CAMPAIGN).totals), dtype=np.int64))
        assert await store.put_share(CAMPAIGN.id, "north", share) is None

    async def work():
        store = await open_store(federation / "data")
        await sent(store)
        await store.close()

    asyncio.run(work())
    assert shell.must("token revoke north") == "token 'north' is revoked\n"
    assert "shares: 1\n" in shell.must(f"campaign show {CAMPAIGN.id}")
    assert shell.must("token revoke north --withdraw") == "token 'north' is revoked, 1 shares are withdrawn\n"
    assert "no token in use has the name 'north'" in refused("token revoke north --withdraw")


def test_wrong_ids_addresses_and_tokens_are_told_in_one_line_before_anything_is_drawn(refused, federation):
    (federation / "empty").write_text("\n")
    assert "SHA-256" in refused(f"{submit('north')} --id {'A' * 43}")
    told = {
        "--url http://collect.example.org --token-file north.token": "must be https",
        "--url https://collect.example.org --token-file empty": "one word of printable ASCII",
        "--url https://collect.example.org --token-file missing": "missing cannot be read",
    }
    for options, message in told.items():
        assert message in refused(f"{submit('north')} {options}")
    for half in ("--url https://collect.example.org", "--token-file north.token"):
        assert "go together" in refused(f"{submit('north')} {half}", expected=2)
    assert not (federation / "north.share").exists()


def test_noise_is_drawn_once_whatever_happens_between_writing_and_sending(shell, not_sent, federation, monkeypatch):
    """A node is interrupted, its table changes, nobody answers: the same bytes leave in the end."""

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    with Daemon(federation / "data") as daemon:
        line = f"{submit('north')} --url {daemon.public} --token-file north.token"
        with monkeypatch.context() as patch:
            patch.setattr(tables, "send_share", interrupted)
            assert shell(line)[0] == INTERRUPTED
        share = (federation / "north.share").read_bytes()
        table(7).to_csv(federation / "north.csv", index=False)
        (federation / "wrong.token").write_text("ldp_wrong\n")
        assert "(the share stays in north.share)" in not_sent(line.replace("north.token", "wrong.token"))
        shell.must(line)
        shell.must(line)
        assert model_of(daemon.public) == FederatedState(CAMPAIGN, {"north": share}).model().to_json()
    assert (federation / "north.share").read_bytes() == share
    shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
    assert shown["guarantee"]["epsilon"] == 2


def test_a_file_that_is_no_share_for_this_campaign_is_neither_sent_nor_overwritten(shell, refused, federation):
    other = Campaign.compile({**DRAFT, "title": "Other hospitals"})
    (federation / "other.json").write_bytes(other.document)
    shell.must(submit("north"))
    share = (federation / "north.share").read_bytes()
    line = submit("north").replace("doc.json", "other.json")
    assert "north.share is there and is no share for this campaign (the share is for another" in refused(line)
    assert "without --other-rows; name another --output" in refused(f"{submit('north')} --other-rows")
    for cut in (b"", share[:-1], share + b"\0"):
        (federation / "north.share").write_bytes(cut)
        assert "no share for this campaign" in refused(submit("north"))
        assert (federation / "north.share").read_bytes() == cut
    assert "cannot be written" in refused(submit("north", "no/such/folder"))
    (federation / "taken.share").mkdir()
    assert "cannot be read" in refused(submit("north", "taken"))


def test_a_share_is_on_disk_with_its_folder_before_anything_is_told_and_never_written_over(
    shell, refused, federation, monkeypatch
):
    """The noise of a share that was handed out and lost is drawn again, and spends epsilon again."""
    steps = []
    kept = federation / "north.share"
    monkeypatch.setattr(tables.os, "fsync", lambda number: steps.append(("file", kept.stat().st_size)))
    monkeypatch.setattr(tables, "sync_folder", lambda folder: steps.append(("folder", folder)))
    monkeypatch.setattr(tables, "say", lambda text: steps.append(("told", text.partition(" ")[0])))
    shell.must(submit("north"))
    size = len(kept.read_bytes())
    assert size > 0
    assert steps[:3] == [("file", size), ("folder", Path()), ("told", "north.share")]
    drawn = tables.node_statistics

    def another_was_faster(*given, **more):
        (federation / "south.share").write_bytes(b"of another process")
        return drawn(*given, **more)

    monkeypatch.setattr(tables, "node_statistics", another_was_faster)
    assert "south.share cannot be written: File exists" in refused(submit("south"))
    assert (federation / "south.share").read_bytes() == b"of another process"
