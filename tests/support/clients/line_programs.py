"""What every client that is asked by lines must do, in whatever language it is written."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from drafts import draft, text

from ldp_aggregator.audit import audit, command_client, command_stopwatch, command_talk
from ldp_aggregator.cli.audit import single_question
from ldp_protocols import Campaign, decode_upload


def ask(command: Sequence[str], *lines: dict[str, Any]) -> list[str]:
    """Return what the program answers to these lines."""
    asked = "".join(json.dumps(line) + "\n" for line in lines)
    done = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def answers_every_line(command: Sequence[str]) -> None:
    """A line that must be refused is answered with its code, and the next one is answered too."""
    campaign = Campaign.compile(draft(text("u", "1", "2", missing=True)))
    document, record = campaign.document.decode(), {"u": "1"}
    answered = ask(
        command,
        {"document": document, "record": record, "label": "perhaps"},
        {"record": record, "label": "a"},
        {"record": [], "label": "a"},
        {"document": "{}", "record": record, "label": "a"},
        {"document": document.replace('"epsilon":1', '"epsilon":0.5'), "record": record, "label": "a"},
        {"record": record, "label": "b", "device": "1"},
        {"record": {}, "odd": {"u": "unreadable"}, "label": "a", "device": "1"},
    )
    codes = [answer for answer in answered if answer.startswith("!")]
    assert codes == ["!undeclared-label", "!not-a-record", "!invalid-document", "!loss-above-epsilon"]
    assert answered[5] == answered[6], "a device is asked again, and sends the same bytes"
    for answer in (answered[1], answered[5]):
        (block,) = decode_upload(bytes.fromhex(answer), campaign)
        assert block.count == 1


def passes_the_audit(command: Sequence[str], mechanism: str, domain: int, trials: int) -> None:
    """The coins are the system's: a sound client fails with probability ``wrong``."""
    document, stopwatch = single_question(mechanism, domain, 2.0), command_stopwatch(command)
    talk = command_talk(command)
    found = audit(document, command_client(command), trials, at_once=True, stopwatch=stopwatch, talk=talk, wrong=1e-7)
    assert found.findings == ()
    assert 1 < found.lower_bound <= 2
