"""A device whose power is cut at every point of what it does: it answers with the same bytes, or had sent none."""

import subprocess

import pytest
from drafts import draft, text
from power_cuts import lay_out
from syscalls import TracedDisk, traced

from ldp_client.testing import FakeServer

DRAFT = draft(text("u", "1", "2"))


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.long)])
def test_what_has_left_is_answered_with_the_same_bytes_after_a_power_cut_at_every_point(every, program, tmp_path):
    """Every so many of the states that a cut can leave, of each phase."""
    root = tmp_path / "disk"
    root.mkdir()
    with FakeServer() as server:
        campaign = server.publish(DRAFT)

        def deliver(folder):
            return [*program, "deliver", server.url, campaign.id, str(folder / "far" / "below")]

        cuts = list(TracedDisk(root).cuts(traced(deliver(root), tmp_path / "calls")))
        (body,) = server.uploads
        states = {}
        for cut in cuts:
            for told, files in cut.states():
                states.setdefault((cut.done, *files.items()), told)
        assert len(cuts) > 20
        assert {done for done, *_ in states} == {0, 1}
        for number, ((done, *files), told) in enumerate(list(states.items())[::every]):
            server.uploads.clear()
            folder = lay_out(dict(files), tmp_path / f"state-{number}")
            ran = subprocess.run(deliver(folder), capture_output=True, text=True, timeout=60, check=False)
            assert ran.returncode == 0, (told, ran.stderr)
            assert not done or set(server.uploads) <= {body}, told
