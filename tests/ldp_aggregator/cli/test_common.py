"""What commands share: files that are whole or untouched."""

import os
from pathlib import Path

import pytest

from ldp_aggregator.cli.common import CommandError, write_file


@pytest.mark.parametrize("failing", ["write_text", "replace"])
def test_a_file_that_cannot_be_written_whole_leaves_what_was_there(tmp_path, monkeypatch, failing):
    path = tmp_path / "model.json"
    write_file(path, "before")
    real = getattr(Path, failing)

    def fails(self, *given, **more):
        if failing == "write_text":
            real(self, "half", **more)
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, failing, fails)
    with pytest.raises(CommandError, match=r"model\.json cannot be written: No space left on device"):
        write_file(path, "after")
    monkeypatch.undo()
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"model.json": "before"}
    write_file(path, "after")
    assert path.read_text() == "after"
