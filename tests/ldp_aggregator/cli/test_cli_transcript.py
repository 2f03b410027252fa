"""Every word and number that the commands print about two of everything, against a transcript of them all.

``transcript.txt`` stands beside this file. Where a change of it is meant, the failure names the new one to put there.
"""

import asyncio
import json
import re
from datetime import datetime, timedelta, timezone
from difflib import unified_diff
from pathlib import Path

import pandas as pd
from two_of_all import ANSWERS, AT, DRAFTS, answered, people, shared

from ldp_aggregator.store import open_store
from ldp_protocols import Campaign

STORED = Path(__file__).with_name("transcript.txt")
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
campaign list --json
campaign show FIRST
campaign show SECOND --explain
campaign show SURVEY
campaign show SERIES
campaign show NODES
estimates FIRST --liars 3
estimates SURVEY --liars 2
estimates SERIES --window 2
estimates SERIES --smooth
estimates SERIES --smooth --window 1
estimates SERIES --window 3
estimates NODES
estimates SECOND --json
train FIRST SECOND --anyway --explain
train SERIES
train SERIES --window now --anyway
train SURVEY
train NODES
campaign create first.json --federated
campaign create survey.json
campaign show unknown
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
token create --scope collector --name both --campaign FIRST --campaign SERIES
token create --in-place-of reader --name reader-2
token revoke reader
token revoke reader-2
token revoke south --withdraw
token list
campaign verify first.json.document --relay-batch 5000
backup copy
merge copy data --output both
campaign list --data both
campaign show FIRST --data both
restore copy --data restored
token list --data restored
fsck
status --log
status --log --last 2 --campaign SECOND
fit table.csv --schema first.json --epsilon 1 --seed 7 --test odd.csv
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


def fill(data, what, campaign_id, *more):
    """Have what this says happen to a campaign, at the moment at which its devices answer."""

    async def done():
        store = await open_store(data, clock=lambda: AT)
        await what(store, Campaign.parse(await store.document(campaign_id)), *more)
        await store.close()

    asyncio.run(done())


def test_the_commands_say_what_the_transcript_has(run, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("getpass.getuser", lambda: "somebody")
    said, ids, hidden = [], {}, {}

    def shell(lines):
        for line in lines.strip().splitlines():
            words = [ids.get(word, word) for word in line.split()]
            code, out, err = run(*words)
            out = json.dumps(json.loads(out)) + "\n" if out.startswith(("{", "[")) else out
            said.append(f"$ {line}\n{out}{err}" + (f"(exit code {code})\n" if code else ""))
            if words[:2] == ["campaign", "create"] and not code:
                name = words[2].removesuffix(".json").upper()
                ids[name] = out.strip()
                Path(f"{words[2]}.document").write_bytes(
                    run("campaign", "show", ids[name], "--document")[1].rstrip("\n").encode()
                )
            if words[:2] == ["token", "create"] and not code:
                hidden[out.strip()] = "TOKEN"

    for name, draft in DRAFTS.items():
        Path(f"{name}.json").write_text(json.dumps({key: one for key, one in draft.items() if one is not None}))
    rows = [{**record, "rain": label} for record, label in people(200, 9)]
    rows[0]["wind"], rows[1]["wind"], rows[2]["wind"] = 0, 120, 121
    pd.DataFrame(rows).to_csv("table.csv", index=False)
    pd.DataFrame(rows[:50] + [{**rows[50], "rain": "snow"}] * 3).to_csv("odd.csv", index=False)
    shell(OF_ALL)
    for name, devices, batch in ANSWERS:
        fill(data, answered, ids[name.upper()], devices, batch)
    fill(data, shared, ids["NODES"])
    shell(TOLD)
    fill(data, answered, ids["ROUND"], 600)
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
