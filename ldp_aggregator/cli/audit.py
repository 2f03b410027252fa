"""``ldp-aggregator audit``: measure what a client really tells, on the bytes it sends."""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
from pathlib import Path
from typing import Final

from ldp_aggregator.audit import Audit, audit, command_client, command_stopwatch, command_talk
from ldp_aggregator.audit.searching.events import CONFIDENCE
from ldp_aggregator.audit.verdict import markdown
from ldp_aggregator.cli.common import CommandError, add_command, read_file, say_table, write_file
from ldp_protocols import Campaign
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json
from ldp_protocols.document.authored import continuous_choices, discrete_choices
from ldp_protocols.features import describe_number

TRIALS: Final = 20_000
REFERENCE: Final = (sys.executable, "-m", "ldp_client.lines")
"""The client of this distribution, in a process of its own."""

_MECHANISMS: Final = tuple(dict.fromkeys((*discrete_choices(), *continuous_choices())))
_SHOWN: Final = 8


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "audit",
        _audit,
        "--mechanism oue --domain 8 --epsilon 1",
        "--document document.json --command './device --audit' --json",
        store=False,
    )
    parser.add_argument("--mechanism", choices=_MECHANISMS, default="auto", help="default: %(default)s")
    parser.add_argument("--domain", type=int, default=8, metavar="D", help="cells, for mechanisms of values classes")
    parser.add_argument("--epsilon", type=between(0, math.inf), default=1.0, metavar="E", help="default: %(default)s")
    parser.add_argument("--document", type=Path, metavar="DOC", help="audit this campaign document instead")
    parser.add_argument(
        "--command", type=shlex.split, default=REFERENCE, dest="program", help="the client; see docs/audit.md"
    )
    parser.add_argument(
        "--trials", type=at_least(1), default=TRIALS, metavar="N", help="per person; default: %(default)s"
    )
    add_json(parser)
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a report to publish")


def _audit(options: argparse.Namespace) -> int:
    document = (
        read_file(options.document).decode()
        if options.document
        else single_question(options.mechanism, options.domain, options.epsilon)
    )
    Campaign.parse(document.encode())
    try:
        client, stopwatch = command_client(options.program), command_stopwatch(options.program)
        talk = command_talk(options.program)
        result = audit(document, client, options.trials, at_once=True, stopwatch=stopwatch, talk=talk)
    except ChildProcessError as error:
        raise CommandError(str(error)) from None
    if options.markdown is not None:
        write_file(options.markdown, markdown(result, document, shlex.join(options.program)))
    if options.json:
        say_json(result.to_json())
    else:
        _tell(result)
    return 0 if result.passed else 1


def single_question(mechanism: str, domain: int, epsilon: float) -> str:
    """The document of a campaign that asks one question: a label of ``domain`` classes, or a value with that label."""
    of_values = mechanism not in discrete_choices()
    draft = {
        "version": 1,
        "title": f"Audit of {mechanism}",
        "label": {"name": "label", "classes": [f"c{number}" for number in range(domain)]},
        "features": [describe_number("value", 0, 1, missing=False)],
        "privacy": {"epsilon": epsilon, "continuous" if of_values else "discrete": mechanism},
    }
    document = json.loads(Campaign.compile(draft).document)
    kind = "value" if of_values else "label"
    document["questions"] = [question for question in document["questions"] if question["kind"] == kind]
    return json.dumps(document, separators=(",", ":"))


def _tell(result: Audit) -> None:
    say_table(
        ("bound", "claim", "seen", "of", "seen", "of", "event"),
        [
            (f"{e.bound:.4f}", f"{e.claim:.4g}", e.ones, e.one_trials, e.others, e.other_trials, e.name)
            for e in result.events[:_SHOWN]
        ],
    )
    often = len(result.people) - result.drawn
    say(f"{often} people were asked {result.trials} times each, and devices of theirs again;")
    say(f"{result.drawn} people, drawn by lot, an eighth as often.")
    say(f"The true loss is at least {result.lower_bound:.4f} (confidence {100 * CONFIDENCE:g} %);")
    say(f"the claim is {result.claim:g}, the document's own probabilities lose {result.stated:.4f}.")
    for sentence in result.floor.sentences():
        say(sentence)
    for finding in result.findings:
        say(f"{finding.code}: {finding.text}")
    say("The audit found nothing." if result.passed else "The audit FAILED.")
