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
from drafts import draft, number, text

from ldp_aggregator.cli import tables
from ldp_aggregator.service.rights import make_token
from ldp_aggregator.store import open_store
from ldp_aggregator.store.contract import utc_now
from ldp_aggregator.trainers import FederatedState, encode_share, node_statistics
from ldp_aggregator.trainers.node_ledger import NodeLedger
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
        *report, told = err.splitlines()
        assert code == 1, err
        assert all("exact, for the eyes" in report[0] or one.startswith("  ") for one in report)
        return told

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
        assert re.search(r"^north +20\S+Z +0 +0 +[\d,-]+ +\d\.\d+ +\d\.\d+ +\d+\.\d +\w", shown, re.MULTILINE)
        assert "groups: none: all shares are added up" in shown
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
        assert shell.must("fsck").startswith("1 campaign checked: nothing is wrong.")
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


def test_what_a_node_sends_again_is_told_with_what_it_costs(shell, not_sent, federation):
    shell.must(submit("north", "first"))
    assert "north.ledger: the campaign costs epsilon 2; 2 of this node's 2 is spent" in not_sent(
        submit("north", "second")
    )
    assert not (federation / "second.share").exists()
    told = shell.must(f"{submit('north', 'second')} --max-epsilon 4")
    assert "ledger: north.ledger: epsilon 4 of 4 is spent" in told
    told = shell.must(f"{submit('south', 'third')} --other-rows")
    assert "declared: no row of it was in a share that this node sent before" in told
    with Daemon(federation / "data") as daemon:
        for share, epsilon in (("first", 2), ("first", 2), ("third", 2), ("second", 4), ("first", 4)):
            shell.must(f"{submit('north', share)} --max-epsilon 4 --url {daemon.public} --token-file north.token")
            shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
            assert shown["guarantee"]["epsilon"] == epsilon
        shell.must(f"node withdraw {CAMPAIGN.id} --url {daemon.public} --token-file north.token")
    shown = shell.must(f"campaign show {CAMPAIGN.id}")
    declared = "add or remove one row of a node whose shares have other rows where it declared so"
    assert f"guarantee: epsilon = 4; relation: {declared}" in shown
    assert re.search(r"^north +withdrawn +1 +1$", shown, re.MULTILINE)
    shown = json.loads(shell.must(f"campaign show {CAMPAIGN.id} --json"))
    assert shown["nodes"] == [{"node": "north", "received": None, "replacements": 1, "other_rows": 1, "epsilon": 4}]
    assert (shown["epsilon"], shown["guarantee"]["epsilon"]) == (2, 4)


def test_the_odd_one_of_three_is_seen_and_what_each_loses(shell, federation):
    agreed = Campaign.compile({**DRAFT, "title": "Three", "federation": {"replacements": 2}})
    (federation / "agreed.json").write_bytes(agreed.document)

    async def work():
        store = await open_store(federation / "data")
        await store.create_campaign(agreed, federated=True)
        await store.add_token(make_token("east", "node", utc_now())[1])
        for seed, (name, rows) in enumerate((("north", 80), ("south", 80), ("south", 80), ("east", 4000))):
            frame = table(seed).loc[np.arange(rows) % 80].reset_index(drop=True)
            frame = frame.assign(ill="yes", age=99) if name == "east" else frame
            assert await store.put_share(agreed.id, name, node_statistics(agreed, frame, frame.pop("ill"))) is None
        await store.close()

    asyncio.run(work())
    code, out, err = shell(f"campaign show {agreed.id}")
    assert code == 0
    assert "guarantee: epsilon = 2; 4 for the rows of one node; relation: add or remove one row" in out
    assert "groups: the median over 3 groups of nodes" in out
    assert "a node may replace its share 2 times" in out
    assert "the median counts each group alike" in err
    shown = json.loads(shell(f"campaign show {agreed.id} --json")[1])
    nodes = {node["node"]: node for node in shown["nodes"]}
    assert max(nodes, key=lambda name: nodes[name]["distance"]) == "east"
    assert [nodes[name]["epsilon"] for name in ("east", "north", "south")] == [2, 2, 4]
    assert nodes["east"]["classes"][0] > 0.9
    assert shown["guarantee"]["of_nodes"] == [[2, 2], [4, 1]]


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
    for cut, told in ((b"", "is empty"), (share[:-1], "no share for this"), (share + b"\0", "no share for this")):
        (federation / "north.share").write_bytes(cut)
        assert told in refused(submit("north"))
        assert (federation / "north.share").read_bytes() == cut
    assert "cannot be written" in refused(submit("north", "no/such/folder"))
    (federation / "taken.share").mkdir()
    assert "cannot be read" in refused(submit("north", "taken"))
    assert "no/ledger" in refused(f"{submit('south')} --ledger no/ledger")
    assert "two files" in refused(f"{submit('north')} --ledger north.share", expected=2)


def test_a_share_is_in_ledger_and_file_before_anything_is_told_and_never_written_over(
    shell, not_sent, federation, monkeypatch
):
    """The noise of a share that was handed out and lost is drawn again, and spends epsilon again."""
    steps = []
    write, drawn = tables.write_new, tables.node_statistics
    monkeypatch.setattr(tables, "write_new", lambda path, share: steps.append("file") or write(path, share))
    monkeypatch.setattr(tables, "sync_folder", lambda folder: steps.append("folder"))
    monkeypatch.setattr(tables, "say", lambda text: steps.append(text.partition(" ")[0]))
    shell.must(submit("north"))
    share = (federation / "north.share").read_bytes()
    assert steps[:3] == ["file", "folder", "north.share"]
    assert NodeLedger(federation / "north.ledger").share(f"{CAMPAIGN.id} north.share") == share
    assert [one.name for one in federation.iterdir() if "north.share" in one.name] == ["north.share"]

    def another_was_faster(*given, **more):
        (federation / "south.share").write_bytes(b"of another process")
        return drawn(*given, **more)

    monkeypatch.setattr(tables, "node_statistics", another_was_faster)
    assert "south.share cannot be written: File exists" in not_sent(submit("south"))
    assert (federation / "south.share").read_bytes() == b"of another process"


def test_a_run_that_is_killed_leaves_the_share_in_the_ledger_and_another_table_beside_it_is_told(
    shell, federation, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(tables, "write_new", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert shell(submit("north"))[0] == INTERRUPTED
    assert not (federation / "north.share").exists()
    drawn = NodeLedger(federation / "north.ledger").share(f"{CAMPAIGN.id} north.share")
    monkeypatch.setattr(tables, "node_statistics", None)  # Nothing is drawn again.
    assert "was written there again" in shell.must(submit("north"))
    assert (federation / "north.share").read_bytes() == drawn
    assert shell(submit("north"))[2] == ""
    table(7).to_csv(federation / "north.csv", index=False)
    assert "north.csv is another table than the one this share was drawn from" in shell(submit("north"))[2]
    other = federation / "other"
    other.mkdir()
    (other / "north.share").write_bytes(drawn[:-1] + bytes([drawn[-1] ^ 1]))
    assert "another share than the one that north.ledger has" in shell(submit("north", "other/north"))[2]


def test_a_second_campaign_over_the_same_table_is_booked_and_refused_above_the_cap(shell, not_sent, federation):
    again = Campaign.compile({**DRAFT, "title": "Again", "privacy": {"epsilon": 0.5}})
    (federation / "again.json").write_bytes(again.document)
    shell.must(submit("north"))
    line = submit("north", "again").replace("doc.json", "again.json")
    assert "costs epsilon 0.5; 2 of this node's 0.5 is spent; nothing left" in not_sent(line)
    assert "2 of this node's 2.4 is spent" in not_sent(f"{line} --max-epsilon 2.4")
    assert not (federation / "again.share").exists()
    assert "north.ledger: epsilon 2.5 of 2.5 is spent" in shell.must(f"{line} --max-epsilon 2.5")
    shell.must(f"{line} --max-epsilon 0.1")  # What is booked is not booked again.


def rewritten(**columns):
    """A change of a table, whose columns hold functions of what they held."""
    return lambda frame: frame.assign(**{name: frame[name].map(change) for name, change in columns.items()})


WRONG = {
    "a column of another name": lambda frame: frame.rename(columns={"age": "Age"}),
    "labels in capitals": rewritten(ill=str.title),
    "values in capitals": rewritten(ward=str.title),
    "a year of birth": rewritten(age=lambda age: 2026 - age),
    "no rows": lambda frame: frame.head(0),
    "labels of another study": rewritten(ill=lambda label: "1"),
    "days for years": rewritten(age=lambda age: age * 365.25),
    "a unit behind every number": rewritten(age=lambda age: f"{age:.0f} years"),
    "numbers from codes": rewritten(ward=lambda ward: str(len(ward))),
    "two columns in each other's place": lambda frame: frame.rename(columns={"age": "ward", "ward": "age"}),
    "labels that came to half only": lambda frame: frame.assign(ill=frame["ill"].where(frame.index % 5 < 2, "")),
    "an empty column": lambda frame: frame.assign(age=""),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_table_is_told_and_stopped_with_nothing_spent(run, tmp_path, monkeypatch, wrong):
    monkeypatch.chdir(tmp_path)
    asks = draft(number("age", 0, 110, missing=True), text("ward", "surgery", "other", missing=True), label=ILL)
    Path("doc.json").write_bytes(Campaign.compile(asks).document)
    Path("draft.json").write_text(json.dumps(asks))
    frame = table(1).round().assign(ward=np.where(np.arange(80) % 3, "surgery", "other"))
    wrong_frame = WRONG[wrong](frame)
    wrong_frame.to_csv("north.csv", index=False)
    for line in (
        "node check north.csv --campaign doc.json",
        submit("north"),
        f"{submit('north')} --url http://127.0.0.1:9 --token-file north.token",
        "fit north.csv --schema draft.json --epsilon 1 --output model.json",
    ):
        Path("north.token").write_text("token\n")
        code, out, err = run(*line.split())
        assert (code, out) == (1, ""), err
        assert "nothing was drawn" in err or "no column 'age'" in err
        assert not Path("north.share").exists()
        assert not Path("model.json").exists()
    ledger = NodeLedger(Path("north.ledger"))
    assert ledger.spent == 0
    if "age" in wrong_frame:
        code, out, err = run(*f"{submit('north')} --anyway".split())
        assert code == 0
        assert "north.csv, as it stands" in err
        assert "epsilon 1 of 1 is spent" in out


def test_a_table_as_declared_is_told_in_numbers_and_checked_without_a_draw(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asks = draft(number("age", 0, 110, missing=True), text("ward", "surgery", "other", missing=True), label=ILL)
    Path("doc.json").write_bytes(Campaign.compile(asks).document)
    Path("t.csv").write_text("ill,age,ward\nyes,50,surgery\nno,120,Surgery\nYes,,\nno,old,other\nno,1,other\nno,2,\n")
    code, out, err = run("node", "check", "t.csv", "--campaign", "doc.json")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "t.csv, as it stands (exact, for the eyes of who holds it):",
        "  6 rows",
        '  ill, one of "yes", "no": 5 as declared, 1 not declared (such as "Yes")',
        '  age, a number from 0 to 110: 3 as declared, 1 clipped, 1 missing, 1 not declared (such as "120", "old")',
        '  ward, one of surgery, other: 3 as declared, 2 missing, 1 not declared (such as "Surgery")',
    ]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["doc.json", "t.csv"]
