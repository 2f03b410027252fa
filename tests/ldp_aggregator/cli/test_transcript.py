"""Every word and number that the commands print about two of everything, against a transcript of them all.

``transcript.txt`` stands beside this file. Where a change of it is meant, the failure names the new one to put there.
"""

import asyncio
import json
import random
import re
from datetime import datetime, timedelta, timezone
from difflib import unified_diff
from pathlib import Path

import drafts
import numpy as np
import pandas as pd
import pytest
from exact_coins import SeededCoins

from ldp_aggregator.store import StoredToken, Submission, open_store
from ldp_aggregator.trainers import PrivacyWarning
from ldp_aggregator.trainers.federation import node_statistics
from ldp_client.answering import perturb
from ldp_client.draw import draw_window
from ldp_protocols import Campaign, decode_upload, encode_upload

AT = datetime(2020, 1, 14, tzinfo=timezone.utc)
"""In the second window of the series."""
STORED = Path(__file__).with_name("transcript.txt")
LABEL = {"name": "rain", "classes": ["heavy", "light", "none"]}
SKY = drafts.text("sky", "clouds", "blue", missing=True)
WIND, HOURS = drafts.number("wind", high=120, bins=3), drafts.number("hours", high=24, missing=True)
STUDY = {"label": LABEL, "study": "weather", "privacy": {"epsilon": 4.0}}
DRAFTS = {
    "first": drafts.draft(SKY, WIND, HOURS, **STUDY, title="First"),
    "second": drafts.draft(SKY, WIND, HOURS, **STUDY, title="Second"),
    "survey": drafts.draft(
        SKY, WIND, HOURS, label=None, pairs=[["sky", "wind"]], privacy={"epsilon": 3}, title="Survey"
    ),
    "series": drafts.draft(
        SKY,
        title="Series",
        privacy={"epsilon": 4.0},
        windows={"from": "2020-01-01T00:00:00Z", "length": "P7D", "count": 3},
    ),
    "nodes": drafts.draft(WIND, HOURS, title="Nodes", label={"name": "ill", "classes": ["yes", "no"]}),
}
OF_ALL = """
token create --scope device --name app
campaign create first.json
campaign create second.json --max-reports 5000 --uploads-need-token relay
campaign create survey.json
campaign create series.json
campaign create nodes.json --federated
"""
TOLD = """
campaign list
campaign show FIRST
campaign show SECOND --explain
campaign show SURVEY
campaign show SERIES
campaign show NODES
estimates FIRST --liars 3
estimates SURVEY --liars 2
estimates SERIES --window 2
estimates SERIES --smooth
estimates SECOND --json
train FIRST SECOND --anyway --explain
train SERIES --window now --anyway
campaign uploads SECOND device
campaign uploads SECOND anybody
campaign close SECOND
campaign close SECOND --undo
campaign close NODES
campaign close SERIES
campaign close SERIES --seal
campaign close SERIES --seal-now
campaign delete SERIES
campaign delete FIRST
token create --in-place-of app --name app-2 --overlap 7
token create --scope collector --name reader --campaign FIRST --expires-in 2
token revoke reader
token revoke south --withdraw
token list
campaign verify first.json.document --relay-batch 5000
backup copy
merge copy data --output both
campaign list --data both
fsck
status --log
fit table.csv --schema first.json --epsilon 1 --seed 7 --test table.csv
fit table.csv --schema first.json --epsilon 2 --seed 7 --method federated --nodes 2 --json
fit table.csv --schema first.json --epsilon 3 --seed 7 --method kmeans --clusters 2
project table.csv --draft first.json --method dca --components 1 --output projected.json
evaluate FIRST SECOND --output round.json
campaign create round.json
"""
ROUND = """
estimates ROUND
train FIRST SECOND --evaluation ROUND
campaign show ROUND
campaign list
"""


def people(count, seed):
    """Records and labels, of unequal shares."""
    draws = random.Random(seed)
    for _ in range(count):
        label = draws.choices(LABEL["classes"], (5, 3, 2))[0]
        wet = label != "none"
        record = {"wind": draws.uniform(0, 40 if wet else 120), "hours": draws.gauss(6 if wet else 15, 3)}
        if draws.random() < 0.9:
            record["sky"] = draws.choices(("clouds", "blue"), (4 if wet else 1, 2))[0]
        yield record, label


async def share(data, campaign_id):
    """Three nodes of unlike sizes: one replaced its share, one sent further rows, one withdrew."""
    store = await open_store(data)
    campaign = Campaign.parse(await store.document(campaign_id))
    for place, (node, rows, more) in enumerate(
        (("north", 900, []), ("south", 80, [False]), ("west", 300, [True, False]))
    ):
        await store.add_token(StoredToken(node, "node", node.encode() * 8, datetime.now(timezone.utc)))
        for number, other_rows in enumerate([False, *more]):
            rng = np.random.default_rng(10 * place + number)
            frame = pd.DataFrame({"wind": rng.uniform(0, 60, rows), "hours": rng.normal(9, 2, rows)})
            labels = pd.Series(rng.choice(["yes", "no"], rows, p=[0.2, 0.8]))
            with pytest.warns(PrivacyWarning):
                drawn = node_statistics(campaign, frame, labels, other_rows=other_rows, random_state=number)
            assert await store.put_share(campaign_id, node, drawn) is None
    assert await store.withdraw_share(campaign_id, "west") is None
    await store.close()


def answer(data, campaign_id, count, batch=None):
    """So many devices; in a series those of two windows, half of them in the first."""

    async def counted():
        store = await open_store(data, clock=lambda: AT)
        campaign = Campaign.parse(await store.document(campaign_id))
        uploads = []
        for number, (record, label) in enumerate(people(count, count)):
            secret, classes = random.Random(count * number).randbytes(32), campaign.label.names
            window = draw_window(campaign, secret) if campaign.windows else 1
            if window == 1 or (window == 0 and number % 2):
                known = classes[label == "none"] if len(classes) == 2 else label if campaign.label else None
                reports = perturb(campaign, record, known, secret=secret, coins=SeededCoins(number))
                uploads.append(decode_upload(encode_upload(reports, campaign), campaign))
        await store.count([Submission(campaign, upload, batch=batch) for upload in uploads])
        await store.close()

    asyncio.run(counted())


def test_the_commands_say_what_the_transcript_has(run, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    said, ids, hidden = [], {}, {}

    def shell(lines):
        for line in lines.strip().splitlines():
            words = [ids.get(word, word) for word in line.split()]
            code, out, err = run(*words)
            out = json.dumps(json.loads(out)) + "\n" if out.startswith("{") else out
            said.append(f"$ {line}\n{out}{err}" + (f"(exit code {code})\n" if code else ""))
            if words[:2] == ["campaign", "create"]:
                name = words[2].removesuffix(".json").upper()
                ids[name] = out.strip()
                Path(f"{words[2]}.document").write_bytes(
                    run("campaign", "show", ids[name], "--document")[1].rstrip("\n").encode()
                )
            if words[:2] == ["token", "create"]:
                hidden[out.strip()] = "TOKEN"

    for name, draft in DRAFTS.items():
        Path(f"{name}.json").write_text(json.dumps({key: one for key, one in draft.items() if one is not None}))
    rows = [{**record, "rain": label} for record, label in people(200, 9)]
    pd.DataFrame(rows).to_csv("table.csv", index=False)
    shell(OF_ALL)
    for name, devices, batch in (
        ("FIRST", 700, None),
        ("SECOND", 400, 300),
        ("SURVEY", 500, None),
        ("SERIES", 900, None),
    ):
        answer(data, ids[name], devices, batch)
    asyncio.run(share(data, ids["NODES"]))
    shell(TOLD)
    answer(data, ids["ROUND"], 600)
    shell(ROUND)
    text = "\n".join(said)
    for name, one in ids.items():
        hidden |= {one: f"<{name}>", one[:8]: f"<{name[:6]}>"}
    days = [datetime.now(timezone.utc) + timedelta(days=number) for number in (-1, 0, 1, 2, 7, 8)]
    for shown, stands in (*hidden.items(), (str(tmp_path), "DIR")):
        text = text.replace(shown, stands)
    for day in days:
        text = re.sub(rf"{day:%Y-%m-%d}(?:[T ][\d:.]+Z?)?", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "STORE", re.sub(r"(\.\d{6})\d+", r"\1", text))
    fresh = tmp_path / "transcript.txt"
    fresh.write_text(text, encoding="utf-8")
    change = unified_diff(STORED.read_text("utf-8").splitlines(), text.splitlines(), "stored", "now", lineterm="", n=1)
    assert list(change) == [], f"if that is meant, it stands in {fresh}"
