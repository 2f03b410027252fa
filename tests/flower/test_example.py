"""The example of a federation: its README names what a node needs, and its made-up tables are of its campaign."""

import sys
from pathlib import Path

from ldp_aggregator.flower.settings import NODE_KEYS

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "flower"


def test_the_readme_names_every_setting_of_a_node():
    readme = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    for key in NODE_KEYS:
        assert f"{key}=" in readme


def test_the_made_up_tables_are_of_the_campaign(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    try:
        from hospitals.made_up import CAMPAIGN, simulated_node

        from ldp_aggregator.flower.answering import answer

        settings = simulated_node(1, 2)
        assert settings.table.is_relative_to(tmp_path)
        assert set(answer(settings, {"campaign": CAMPAIGN.document})) == {"share"}
    finally:
        for name in [name for name in sys.modules if name.startswith("hospitals")]:
            del sys.modules[name]
