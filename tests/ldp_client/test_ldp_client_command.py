"""The command line, as a shell sees it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ldp_client.__main__ import main
from ldp_client.testing import Answer

FAILED = 1
WRONG_USAGE = 2


WRONG = ("must be https", "campaign_id must be", "max_total_epsilon must be")
"""What the command line itself says wrong; everything else failed."""


@pytest.fixture
def storage(tmp_path):
    """Options that name it; the record to contribute lies beside it."""
    record = '{"record": {"age": "young", "hours": 3}, "label": "yes"}'
    (tmp_path / "record.json").write_text(record, encoding="utf-8")
    return ["--storage", str(tmp_path / "device.db")]


def contribute(server, campaign, storage, *options):
    given = str(Path(storage[1]).with_name("record.json"))
    return main(["contribute", server.url, campaign.id, "--record-file", given, *storage, *options])


def test_the_whole_flow_works_from_a_shell(server, campaign, model, storage):
    def run(given, *arguments):
        command = [sys.executable, "-m", "ldp_client", *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=True, timeout=60).stdout

    young, old = '{"record": {"age": "young"}, "label": "yes"}', '{"record": {"age": "old"}}'
    told = run(young, "contribute", server.url, campaign.id, *storage)
    assert told == 'Contributed to "Will a customer miss a payment?": epsilon 1 spent, delivered.\n'
    assert server.counted(campaign.id) == 1
    server.publish_model(campaign.id, model)
    assert run(old, "predict", server.url, campaign.id) == "no\n"
    asked = run(old, "predict", server.url, campaign.id, "--record-file", "-", "--json", *storage)
    assert json.loads(asked)["class"] == "no"
    assert sum(json.loads(asked)["probabilities"].values()) == pytest.approx(1)


def test_what_cannot_be_delivered_is_kept_and_sent_by_the_next_run_and_a_third_sends_nothing(
    server, campaign, storage, capsys
):
    server.answer_with = lambda _: Answer(503, "overloaded", {"Retry-After": "1"})
    assert contribute(server, campaign, storage, "--timeout", "0.2") == FAILED
    errors = capsys.readouterr().err
    assert errors.startswith("ldp-client: not delivered yet (overloaded)")
    assert errors.count("\n") == 1
    server.answer_with = lambda _: None
    sent = []
    for _ in range(2):
        assert contribute(server, campaign, storage, "--json") == 0
        sent.append(json.loads(capsys.readouterr().out))
    assert sent[0] == sent[1]
    assert {"epsilon": 1.0, "sent": 1, "queued": 0, "answers": 1}.items() <= sent[0].items()
    assert len(set(server.uploads)) == server.counted(campaign.id) == 1


def test_a_refused_report_is_an_error(server, campaign, storage, capsys):
    server.answer_with = lambda _: Answer(409, "campaign-closed")
    assert contribute(server, campaign, storage) == FAILED
    assert "(campaign-closed)" in capsys.readouterr().err


def test_status_tells_in_plain_words_and_as_json(server, campaign, storage, capsys):
    def status(*options):
        assert main(["status", server.url, campaign.id, *options, *storage]) == 0
        return capsys.readouterr().out

    assert "no campaign" in status()
    contribute(server, campaign, storage)
    assert "contributed to 1 campaign" in status()
    assert json.loads(status("--json").splitlines()[-1])["sent"] == 1


def test_a_withdrawal_holds_until_consent_is_given_again(server, campaign, storage, capsys):
    assert main(["withdraw", server.url, campaign.id, *storage]) == 0
    assert contribute(server, campaign, storage) == FAILED
    assert "consented" in capsys.readouterr().err
    assert not server.uploads
    assert contribute(server, campaign, storage, "--consent") == 0
    assert server.counted(campaign.id) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"INPUT": '{"record": {"age": "SECRET"'}, "the input must be the JSON object"),
        ({"INPUT": '["SECRET"]'}, "the input must be the JSON object"),
        ({"INPUT": '{"record": ["SECRET"]}'}, "the input must be the JSON object"),
        ({"INPUT": '{"record": {"age": "SECRET"}, "label": "SECRET"}'}, "must be one of yes, no"),
        ({"--record-file": "/nowhere/record.json"}, "No such file"),
        ({"URL": "http://collect.example.org"}, "must be https"),
        ({"URL": "http://127.0.0.1:9", "--timeout": "0.2"}, "cannot be reached"),
        ({"CAMPAIGN_ID": "x"}, "campaign_id must be"),
        ({"CAMPAIGN_ID": "A" * 43}, "unknown-campaign"),
        ({"--max-epsilon": "0.5"}, "above the cap of 0.5"),
        ({"--max-total-epsilon": "-1"}, "max_total_epsilon must be"),
        ({"--storage": "/nowhere/device.db"}, "storage cannot be opened"),
    ],
)
def test_what_is_wrong_is_one_line_without_anybodys_values_and_one_of_two_exit_codes(
    server, campaign, storage, capsys, changes, message
):
    path = Path(storage[1]).with_name("input.json")
    path.write_text(changes.get("INPUT", '{"record": {"age": "young"}, "label": "yes"}'), encoding="utf-8")
    given = {"--record-file": str(path), "--storage": storage[1], **changes}
    options = [part for name, value in given.items() if name.startswith("--") for part in (name, value)]
    code = WRONG_USAGE if message in WRONG else FAILED
    assert main(["contribute", given.get("URL", server.url), given.get("CAMPAIGN_ID", campaign.id), *options]) == code
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("ldp-client: ")
    assert told.err.count("\n") == 1
    assert message in told.err
    assert "SECRET" not in told.err
    assert not server.uploads


def test_a_prediction_without_a_model_is_an_error_and_offline_the_stored_one_serves(
    server, campaign, model, storage, capsys
):
    arguments = [campaign.id, "--record-file", str(Path(storage[1]).with_name("record.json")), *storage]
    assert main(["predict", server.url, *arguments]) == FAILED
    assert "no published model" in capsys.readouterr().err
    server.publish_model(campaign.id, model)
    for url in (server.url, "http://127.0.0.1:9"):
        assert main(["predict", url, *arguments]) == 0
    assert capsys.readouterr().out == "yes\nyes\n"


@pytest.mark.parametrize("option", ["--record", "--label"])
@pytest.mark.parametrize("command", ["contribute", "predict"])
def test_nothing_of_a_record_can_be_given_where_every_user_of_the_machine_sees_it(
    command, option, campaign, storage, capsys
):
    with pytest.raises(SystemExit):
        main([command, "http://127.0.0.1:9", campaign.id, *storage, option, "SECRET"])
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = capsys.readouterr().out
    assert f"{option} " not in told
