"""Real processes, killed or told to leave: an acknowledged report is on disk, and counts once however often it is sent.

Every run kills a server twice on each store; at length, 200 times on each store and each event loop, newly started.
"""

import json
import random
import signal
import time
import urllib.error
import urllib.request
from functools import partial

import numpy as np
import pytest
from cells import cell_report
from daemon import Daemon
from drafts import text
from issuing import issuer, shown_for
from uploader import Uploaders, in_groups, post

from ldp_protocols import Report, encode_upload

STORES = ("sqlite", "postgres")
LOOPS = ("uvloop", "asyncio")


def uploads_of(campaign, numbers):
    """Uploads of one report each, with a cell of its own."""
    return [encode_upload([cell_report(campaign, number)], campaign) for number in numbers]


def uploads_counted(kept, campaign):
    return set(uploads_of(campaign, np.flatnonzero(kept.tally(campaign).counts[0]).tolist()))


@pytest.mark.parametrize(
    ("kept", "loop", "kills", "tokens"),
    [
        *((store, loop, 2, True) for store, loop in zip(STORES, LOOPS, strict=True)),
        *(pytest.param(store, loop, 200, False, marks=pytest.mark.long) for store in STORES for loop in LOOPS),
        *(pytest.param(*both, 200, True, marks=pytest.mark.long) for both in zip(STORES, LOOPS, strict=True)),
    ],
    indirect=["kept"],
)
def test_no_acknowledged_report_is_lost_when_the_server_is_killed(kept, loop, kills, tokens):
    """Nor is one counted twice; with ``tokens`` each shows one of its own, and none counts for another's answer."""
    reports, uvloop = 1000 * (kills // 2), loop == "uvloop"
    campaign = kept.publish(min(reports, 20_000), **({"issuer": issuer()} if tokens else {}))
    cells = campaign.questions[0].domain_size
    uploads = uploads_of(campaign, range(cells))
    dice = random.Random(20)
    start = partial(Daemon, kept.folder, uvloop=uvloop, new=kills > 2, **kept.environment)
    current = [start()]
    made = [cell_report(campaign, number) for number in range(cells)]
    shown = {body: shown_for(campaign, one) for body, one in zip(uploads, made, strict=True)} if tokens else {}
    invented = encode_upload([cell_report(campaign, cells, cell=0)], campaign)
    uploaders = Uploaders(lambda: current[0].public, campaign, uploads, shown=shown)
    for _ in range(kills):
        time.sleep(dice.uniform(0.05, 0.5))
        acknowledged = set(uploaders.acknowledged)
        current[0].kill()
        assert acknowledged <= uploads_counted(kept, campaign)
        assert kept.check() == []
        current[0] = start()
        if tokens:
            status, told = post(current[0].public, campaign, invented, shown=shown[dice.choice(uploads)])
            assert (status, told["code"]) == (401, "wrong-answer-token")
    uploaders.join()
    assert uploaders.refusals == []
    for upload in random.Random(21).sample(uploads, 100):
        assert post(current[0].public, campaign, upload, shown=shown.get(upload)) == (200, {"rejected": []})
    assert current[0].stop() == 0
    tally = kept.tally(campaign)
    assert tally.n.tolist() == [cells]
    assert tally.counts[0].tolist() == [1] * cells
    assert kept.check() == []


def test_sigterm_commits_what_was_accepted_and_ends_cleanly(kept_in_file):
    kept = kept_in_file
    campaign = kept.publish(6000)
    uploads = uploads_of(campaign, range(6000))
    daemon = Daemon(kept.folder)
    uploaders = Uploaders(lambda: daemon.public, campaign, uploads)
    time.sleep(0.7)
    assert uploaders.sending
    assert daemon.stop() == 0
    uploaders.stop()
    assert len(uploaders.acknowledged) > 0
    assert uploaders.acknowledged <= uploads_counted(kept, campaign)
    assert max(kept.tally(campaign).counts[0]) == 1
    assert kept.check() == []


@pytest.mark.parametrize("reports", [10_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_two_instances_and_a_restarted_database_count_each_report_once(kept_in_own_database, own_postgres, reports):
    kept = kept_in_own_database
    if own_postgres.server is None:
        pytest.skip("this database is not ours to restart")
    half = reports // 2
    token = kept.relay_token()
    # More reports than one question has cells find one of their own in two.
    features = [text(name, *(f"v{value}" for value in range(half // 4))) for name in ("first", "second")]
    campaign = kept.publish(0, label={"name": "label", "classes": [*"abcd"], "weight": 0}, features=features)
    assert [question.domain_size for question in campaign.questions] == [half, half]
    sent = [
        Report(question, cell_report(campaign, question * half + cell, cell=0).id, cell.to_bytes(2, "little"))
        for question in (0, 1)
        for cell in range(half)
    ]

    def shuffled(seed):
        mixed = random.Random(seed).sample(sent, len(sent))
        return [encode_upload(group, campaign) for group in in_groups(mixed, 250)]

    with Daemon(kept.folder, **kept.environment) as first, Daemon(kept.folder, **kept.environment) as second:
        both = [Uploaders(lambda d=d: d.public, campaign, shuffled(s), 3, token) for s, d in enumerate((first, second))]
        time.sleep(0.3)
        own_postgres.restart()
        for uploaders in both:
            uploaders.join()
            assert uploaders.refusals == []
    tally = kept.tally(campaign)
    assert tally.n.tolist() == [half, half]
    assert [counts.tolist() for counts in tally.counts] == [[1] * half] * 2
    assert kept.check() == []


PATIENCE = 60


def fetch(url):
    """Status and code of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.loads(answer.read()).get("status")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())["code"]


def test_readiness_goes_first_and_the_server_serves_on_until_the_pause_is_over(kept_in_file):
    campaign = kept_in_file.publish(64)
    uploads = uploads_of(campaign, range(2))
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_PAUSE_SECONDS="600") as daemon:
        assert fetch(daemon.operations + "/readyz") == (200, "ready")
        assert post(daemon.public, campaign, uploads[0])[0] == 200
        daemon.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + PATIENCE
        while (seen := fetch(daemon.operations + "/readyz")) != (503, "stopping"):
            assert time.monotonic() < deadline, seen
            time.sleep(0.02)
        assert fetch(daemon.operations + "/healthz") == (200, "ok")
        assert post(daemon.public, campaign, uploads[1])[0] == 200, "whoever was sent here still gets an answer"
        assert daemon.process.poll() is None
        assert daemon.stop() == 0, "another SIGTERM ends the pause"
    events = [json.loads(line)["event"] for line in (kept_in_file.folder / "daemon.log").read_text().splitlines()]
    assert events[-3:] == ["leaving", "stopping", "stopped"]
    assert kept_in_file.tally(campaign).n.tolist() == [2]


def test_ctrl_c_does_not_wait_for_the_pause(kept_in_file):
    with Daemon(kept_in_file.folder, LDP_AGGREGATOR_PAUSE_SECONDS="600") as daemon:
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(PATIENCE) == 0
