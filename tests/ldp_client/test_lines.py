"""The client as a program of lines: each line is of its campaign, its device and its moment, and answered at once."""

import io
import json
import re
import sys

import pytest
from drafts import draft, number, text

from ldp_client import lines
from ldp_client.lines import answers
from ldp_protocols import Campaign, decode_upload

ONE, OTHER = (
    Campaign.compile(
        draft(
            text("sky", "blue", "grey"), number("age", 0, 100), title=title, privacy={"epsilon": 2.0, "answers": "all"}
        )
    )
    for title in ("one", "other")
)
RECORD = {"sky": "blue", "age": 30}


def line(campaign=None, **more):
    asked = {"record": RECORD, "label": ONE.label.classes[0], **more}
    return json.dumps(asked | ({"document": campaign.document.decode()} if campaign else {}))


def told(*asked):
    return list(answers(asked))


def test_the_first_line_has_a_document_and_it_holds_until_another_comes():
    with pytest.raises(ValueError, match="the first line needs a document"):
        told(line())
    first, second, third = told(line(ONE), line(), line(OTHER))
    for upload, campaign in ((first, ONE), (second, ONE), (third, OTHER)):
        assert decode_upload(bytes.fromhex(upload), campaign)


def test_a_device_answers_a_campaign_once_and_another_one_of_its_name_for_another_campaign():
    first, again, of_other, of_another = told(
        line(ONE, device="a"), line(device="a"), line(OTHER, device="a"), line(ONE, device="b")
    )
    assert first == again
    assert len({first, of_other, of_another}) == 3
    assert decode_upload(bytes.fromhex(of_other), OTHER)


def test_a_stored_device_is_the_same_in_the_next_process_and_its_file_tells_no_name(tmp_path):
    names = ("a", "A", "../a", "a/b", "x" * 300)
    first = told(line(ONE, storage=str(tmp_path), device=names[0]), *(line(device=name) for name in names[1:]))
    assert len(set(first)) == 5
    kept = {path.name for path in tmp_path.iterdir() if path.suffix == ".sqlite"}
    assert len(kept) == 5
    assert all(re.fullmatch(r"[0-9a-f]{32}\.sqlite", name) for name in kept)
    again = told(line(ONE, storage=str(tmp_path), device=names[0]), *(line(device=name) for name in names[1:]))
    assert again == first


@pytest.mark.parametrize("given", [{}, {"device": "a"}])
def test_a_record_is_as_odd_as_it_is_asked_to_be(given):
    read, unread = told(line(ONE, odd={"age": "nan"}, **given), line(odd={"age": "unreadable", "sky": "unreadable"}))
    assert len(bytes.fromhex(read)) == len(bytes.fromhex(unread)), "an upload tells nothing of that"
    record = lines._record({"record": {"sky": "blue"}, "odd": {"age": "unreadable", "far": "-infinity"}})
    assert (record.get("sky"), record.get("far"), record.get("none", 5)) == ("blue", -float("inf"), 5)
    for read in (record.get, record.__getitem__):
        with pytest.raises(lines.LdpError):
            read("age")


def test_a_device_lives_at_the_moment_of_its_line():
    windows = {"from": "2026-01-01T00:00:00Z", "length": "P1D", "count": 400}
    series = Campaign.compile(draft(text("sky", "blue", "grey"), privacy={"epsilon": 2.0}, windows=windows))
    asked = {"record": {"sky": "blue"}, "label": series.label.classes[0], "device": "a"}
    early, late = "2025-01-01T00:00:00Z", "2028-01-01T00:00:00Z"
    for moments, says in (
        ((early, early), ["!campaign-not-open", "!campaign-not-open"]),
        ((early, late), ["!campaign-not-open", "!campaign-closed"]),
        ((late, late), ["!campaign-closed", "!campaign-closed"]),
    ):
        first, then = ({**asked, "now": moment} for moment in moments)
        assert told(json.dumps({**first, "document": series.document.decode()}), json.dumps(then)) == says


def test_every_answer_has_left_before_the_next_line_is_read(monkeypatch):
    steps = []

    class Out(io.StringIO):
        def write(self, answer):
            steps.append("write")
            return len(answer)

        def flush(self):
            steps.append("flush")

    def asked():
        for one in (line(ONE), line()):
            steps.append("read")
            yield one

    monkeypatch.setattr(sys, "stdin", asked())
    monkeypatch.setattr(sys, "stdout", Out())
    lines.main()
    assert steps == ["read", "write", "flush"] * 2
