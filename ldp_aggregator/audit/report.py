"""The result of an audit as a page to publish."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from ldp_aggregator.audit.floor import UNSEEN
from ldp_aggregator.audit.searching.events import CONFIDENCE
from ldp_aggregator.audit.verdict import CHECKS, Audit

_SHOWN: Final = 8


def markdown(result: Audit, document: str, client: str) -> str:
    """A conformance report in Markdown. ``client`` says what was audited, in the operator's words."""
    value: dict[str, Any] = json.loads(document)
    codes = {finding.code for finding in result.findings}
    verdict = "found nothing" if result.passed else "**failed**: " + ", ".join(sorted(codes))
    mechanisms = sorted({question["mechanism"] for question in value["questions"]})
    lines = [
        "# Audit of a client",
        "",
        f"The audit {verdict}.",
        "",
        "| | |",
        "|---|---|",
        f"| client | `{_cell(client)}` |",
        f"| campaign | {_cell(value['title'])}: {len(value['questions'])} questions, {', '.join(mechanisms)} |",
        f"| answers | {value['privacy'].get('answers', 'one')} |",
        f"| claim | epsilon {result.claim:g} |",
        f"| loss of the document's own probabilities | {result.stated:.4g} |",
        f"| loss at least (confidence {100 * CONFIDENCE:g} %) | {result.lower_bound:.4g}, "
        f"{100 * result.reached:.0f} % of the above |",
        f"| people | {len(result.people)}, of whom a lot drew {result.drawn} |",
        f"| uploads | {result.uploads}; {result.trials} of each person, an eighth of it of those drawn |",
        "",
        "## What was checked",
        "",
        "| code | what must hold | |",
        "|---|---|---|",
        *(
            f"| `{code}` | {promise} | {'**broken**' if code in codes else 'held'} |"
            for code, promise in CHECKS.items()
        ),
        "",
    ]
    if result.findings:
        lines += ["## What was found", "", *(f"* `{f.code}`: {_cell(f.text)}" for f in result.findings), ""]
    lines += [
        "## The most telling events",
        "",
        "| loss at least | allowed | of the | event | seen |",
        "|---|---|---|---|---|",
        *(
            f"| {e.bound:.4f} | {e.claim:.4g} | {e.scope} | {_cell(e.name)} | "
            f"{e.ones} of {e.one_trials}, {e.others} of {e.other_trials} |"
            for e in result.events[:_SHOWN]
            if math.isfinite(e.bound)
        ),
        "",
        "## What could have been found, and what could not",
        "",
        *(f"* {text}" for text in result.floor.sentences()),
        "",
        "No audit of this kind sees:",
        "",
        *(f"* {text}" for text in UNSEEN),
        "",
        "An audit proves leaks, never their absence.",
        "",
    ]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
