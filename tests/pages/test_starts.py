"""The snippets that everybody copies ask a person once, at the first of an app's starts."""

import re

import pytest
from blocks import ROOT, blocks_of

from ldp_client import Device
from ldp_client.testing import FakeServer
from simulations.tables.sources import read_draft

PAGES = ("README.md", "deploy/client-wheel/README.md", "docs/client.md", "docs/how-to/backend.md")
EXAMPLE = read_draft(ROOT / "examples" / "campaign.toml")


@pytest.mark.parametrize(
    "page", ["README.md", "deploy/client-wheel/README.md", "docs/client.md", "docs/how-to/backend.md"]
)
@pytest.mark.parametrize("says", [True, False])
def test_three_starts_ask_once_and_answer_once(page, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    block = next(block for block in blocks_of(page) if block.language == "python" and "next_step" in block.text)
    asked = []

    def agrees(*told):
        asked.append(told)
        return says

    with FakeServer() as server:
        published = server.publish(EXAMPLE)
        text = re.sub(r"https://collect\.example\.org", server.url, block.text)
        for _ in range(3):
            names = {"url": server.url, "campaign_id": published.id, "agrees": agrees}
            exec(compile(text, block.place, "exec", dont_inherit=True), names)
            device = names["device"]
            assert isinstance(device, Device)
            assert device.run_once(5)
            device.close()
        assert asked == [(EXAMPLE["title"], EXAMPLE["purpose"])]
        assert server.counted(published.id) == says
