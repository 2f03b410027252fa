"""One screen of a server: whether it is well, and why not."""

import logging
import socket
import urllib.request

from daemon import Daemon

from ldp_aggregator.cli.operation import maintenance
from protocols import Campaign, Report, encode_upload
from protocols.wire import MEDIA_TYPE


def test_a_server_that_is_well_says_what_it_does_on_one_screen(run, refused, weather, data, monkeypatch):
    monkeypatch.setattr(maintenance, "BETWEEN", 0.05)
    campaign_id = weather()
    with Daemon(data) as daemon:
        url = f"{daemon.public}/v1/campaigns/{campaign_id}"
        with urllib.request.urlopen(url) as answer:
            campaign = Campaign.parse(answer.read(), campaign_id)
        body = encode_upload([Report(0, bytes(16), bytes(campaign.questions[0].mechanism.width))], campaign)
        request = urllib.request.Request(url + "/reports", body, {"Content-Type": MEDIA_TYPE})
        with urllib.request.urlopen(request) as answer:
            assert answer.status == 200
        code, out, err = run("status", "--operations", daemon.operations)
        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{daemon.operations}: healthy"
        assert "1 counted since the start" in out
        assert "campaigns 1 open of 1" in out
        assert campaign_id in out
        assert "none is in the log" in out
        assert len(out.splitlines()) <= 24
        daemon.stop()
    code, out, _ = run("status", "--operations", daemon.operations)
    assert (code, "not healthy" in out) == (1, True)
    assert f"nothing answers at {daemon.operations}" in out
    assert "campaigns 1 open of 1" in out
    assert "no http:// address" in refused("status", "--operations", "file:///etc/passwd", expected=2)


def test_a_taken_port_fails_in_one_line(refused, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listeners = ("--listen", f"127.0.0.1:{port}", "--listen-admin", 0)
        before = logging.getLogger().handlers[:]
        assert refused("serve", *listeners, "--data", tmp_path).startswith("ldp-aggregator: cannot listen: ")
        assert logging.getLogger().handlers == before, "what a server logs to is gone with it"
