"""Random campaigns, tampered documents, odd records and scripted words: another program gives the bytes of Python."""

import json
import random
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from random_campaigns import as_python, campaign, document, record
from recording_coins import RecordingCoins

from ldp_client import perturb
from ldp_client.draw import draw_questions, draw_window
from ldp_protocols import Campaign, LdpError, encode_upload
from ldp_protocols.campaign import document_id

RECORDS = 4


def compare(command: Sequence[str | Path], first: int, end: int) -> None:
    """Ask a program about the campaigns of these seeds; every single difference fails."""
    lines, wanted, asked = [], [], Counter[str]()
    for seed in range(first, end):
        rng = random.Random(f"campaign {seed}")
        source = campaign(rng)
        line, told = _of_python(document(rng, source), rng.randbytes(32), source, rng)
        if "refused" not in told:
            questions = json.loads(line["document"])["questions"]
            asked.update(questions[index]["kind"] for index in told["questions"])
            asked["late"] += told["window"] > 0
        lines.append(json.dumps(line))
        wanted.append(told)
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(wanted)
    wrong = [
        f"seed {first + at}: {found}"
        for at, (ours, theirs) in enumerate(zip(wanted, answers, strict=True))
        if (found := _difference(ours, theirs))
    ]
    assert wrong == []
    # A comparison that met no refusal, or nothing else, would show nothing.
    codes = Counter(told.get("refused", "accepted") for told in wanted)
    assert codes["accepted"] > len(wanted) / 4
    assert codes["invalid-document"] > len(wanted) / 10
    assert min(asked[kind] for kind in ("pair", "value", "right", "score", "late")) > len(wanted) / 50


def _of_python(text: str, secret: bytes, source: Campaign, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """The line for the other side, and what Python says to it."""
    line: dict[str, Any] = {"document": text, "secret": secret.hex(), "records": []}
    try:
        parsed = Campaign.parse(text.encode())
    except LdpError as error:
        return line, {"refused": error.code}
    answers: list[Any] = []
    for number in range(RECORDS):
        values, label = record(rng, source)
        coins = RecordingCoins((text, number))
        held = {name: as_python(value) for name, value in values.items()} if isinstance(values, dict) else values
        try:
            reports = perturb(parsed, held, as_python(label), secret=secret, coins=coins)
            answers.append([encode_upload(reports, parsed).hex(), len(coins.taken)])
        except LdpError as error:
            answers.append(error.code)
        line["records"].append([values, label, [f"{word:016x}" for word in coins.taken]])
    drawn = [question.index for question in draw_questions(parsed, secret)]
    return line, {
        "id": document_id(text.encode()),
        "epsilon": parsed.realised_epsilon,
        "closes": parsed.closes and parsed.closes.timestamp() * 1000,
        "window": draw_window(parsed, secret),
        "questions": drawn,
        "answers": answers,
    }


def _difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """What differs; the loss may be rounded up by a unit in the last place more."""
    ours, theirs = dict(ours), dict(theirs)
    losses = ours.pop("epsilon", 1.0), theirs.pop("epsilon", 1.0)
    if ours != theirs:
        return f"{ours} is not {theirs}"
    return None if 0 <= losses[1] / losses[0] - 1 < 1e-15 else f"a loss of {losses[0]} is not {losses[1]}"
