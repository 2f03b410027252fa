"""``ldp-aggregator train --evaluation``: the winner of an evaluation round is published, with its accuracy."""

from __future__ import annotations

import argparse
import json

from ldp_aggregator.cli.common import CommandError, say, say_table, shown_reach, tell_guarantees, with_store, write_file
from ldp_aggregator.learning.published import PublishedGuarantee
from ldp_aggregator.service.publishing import UntrainableError
from ldp_aggregator.service.rounds import publish_evaluated


def publish_winner(options: argparse.Namespace) -> None:
    """What ``train`` does with ``--evaluation``: nothing is trained."""
    try:
        evaluation, models = with_store(
            options, lambda store: publish_evaluated(store, options.ids, options.evaluation)
        )
    except UntrainableError as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, models[0].document)
    say_table(
        ("candidate", "voters", "accuracy", "low", "high", "per_liar"),
        [
            (
                one.name,
                one.n,
                *(f"{number:.4f}" for number in (one.accuracy, one.low, one.high)),
                shown_reach(one.per_liar),
            )
            for one in evaluation.scores
        ],
    )
    versions = " and ".join(str(model.version) for model in models)
    say(f"\n{evaluation.reason}")
    say(f"model version {versions}, {evaluation.winner.name}, is published with its accuracy:")
    say(f"from {evaluation.low:.4f} to {evaluation.high:.4f}, 95 % whichever candidate were chosen")
    training = json.loads(models[0].document)["training"]
    tell_guarantees(training["guarantee"]["epsilon"], PublishedGuarantee(**training["published"]))
