"""``ldp-aggregator campaign verify``: recompute a document's privacy loss, without a store and without trust."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ldp_aggregator.cli.common import add_command, read_file, say_table
from ldp_aggregator.learning.published import PublishedGuarantee, published_together, relay_guarantee
from ldp_aggregator.mechanisms import verify_thoroughly
from protocols import Campaign
from protocols.document.verification import NEGLIGIBLE_GAP, Verification
from protocols.shell import Groups, add_json, at_least, say, say_json

CROWDS: Final = (1000, 10_000, 100_000, 1_000_000)
"""A document does not know how many will answer."""


def add_verify(commands: Groups) -> None:
    parser = add_command(
        commands,
        "verify",
        "recompute the privacy loss of a document; exit code 1 where it breaks its promise",
        _verify,
        "document.json",
        "document.json --relay-batch 10000 --json",
        store=False,
    )
    parser.add_argument("document", type=Path, metavar="DOC", help="the document, exactly as it is published")
    parser.add_argument("--id", metavar="ID", help="the campaign's id, which must be the document's hash")
    parser.add_argument(
        "--relay-batch",
        type=at_least(1),
        metavar="N",
        help="say what is left of the loss to who runs the server, behind a relay that mixes batches of N devices",
    )
    add_json(parser)


def _verify(options: argparse.Namespace) -> int:
    verification = verify_thoroughly(Campaign.parse(read_file(options.document), options.id))
    every = verification.campaign.privacy.release_every
    crowds = [published_together([(verification.campaign, n)]) for n in (CROWDS if every is None else (every,))]
    # Only a relay knows how many devices it mixed; with an upload it vouches for the number in ``LDP-Relay-Batch``.
    relayed = relay_guarantee(verification.campaign, options.relay_batch) if options.relay_batch else None
    if options.json:
        told = {"published": [crowd.to_json() for crowd in crowds], "relayed": relayed and relayed.to_json()}
        say_json(verification.to_json() | told)
    else:
        _tell(verification)
        _tell_published(crowds)
        if relayed:
            say(f"\nWho runs the server learns of one device: {relayed}")
    return 0 if verification.holds else 1


def _tell(verification: Verification) -> None:
    campaign, told = verification.campaign, verification.to_json()
    say(f"campaign {campaign.id}")
    say(campaign.title)
    say_table(
        ("question", "asks", "mechanism", "cells", "epsilon", "worst loss", "gap", "proof", "holds"),
        [
            (
                row["question"],
                row["feature"] or ("the label" if row["kind"] == "label" else "the model"),
                row["mechanism"],
                row["domain_size"],
                row["epsilon"],
                f"{row['realised_epsilon']:.12g}",
                f"{row['gap']:.2g}",
                row["method"],
                "yes" if row["holds"] else "NO",
            )
            for row in told["questions"]
        ],
    )
    for check in verification.questions:
        if check.gap >= NEGLIGIBLE_GAP:
            say(f"question {check.question.index} stays {float(check.gap):.2g} below its epsilon: {check.note}")
    together = "the sum over what it answers" if campaign.privacy.answers == "all" else "the worst question it can draw"
    say(f"One device loses at most {told['realised_epsilon']:.12g} in all ({together}).")
    kept = "is kept" if verification.holds else "IS BROKEN"
    say(f"The promise of epsilon {campaign.privacy.epsilon} {kept}.")


def _tell_published(crowds: Sequence[PublishedGuarantee]) -> None:
    """Return what is left of the loss where only what is published is seen."""
    say("\nWho sees only what is published learns of one device, by how many of them answer:")
    say_table(
        ("devices", "epsilon", "delta"),
        [(f"{crowd.reports:,}", f"{crowd.epsilon:.4g}", f"{crowd.delta:g}") for crowd in crowds],
    )
    for condition in crowds[0].conditions:
        say(f"if {condition}")
