"""``ldp-aggregator train --evaluation``: the winner of an evaluation round is published, with its accuracy."""

from __future__ import annotations

import argparse
import json
from contextlib import AsyncExitStack

from ldp_aggregator.cli.common import CommandError, say, say_table, shown_reach, tell_guarantees, with_store, write_file
from ldp_aggregator.learning.published import PublishedGuarantee
from ldp_aggregator.learning.relays import Relayed
from ldp_aggregator.learning.rounds.evaluation import Evaluation
from ldp_aggregator.service.acting import local_actor, recorded
from ldp_aggregator.service.publishing import UntrainableError
from ldp_aggregator.service.rounds import publish_evaluated
from ldp_aggregator.store import PublishedModel, Store


def publish_winner(options: argparse.Namespace) -> None:
    """What ``train`` does with ``--evaluation``: nothing is trained."""

    async def work(store: Store) -> tuple[Evaluation, tuple[PublishedModel, ...]]:
        async with AsyncExitStack() as acts:
            for campaign_id in dict.fromkeys((*options.ids, options.evaluation)):
                await store.state(campaign_id)
                await acts.enter_async_context(recorded(store, local_actor(), "publish model", campaign_id))
            return await publish_evaluated(store, options.ids, options.evaluation)

    try:
        evaluation, models = with_store(options, work)
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
    behind = [Relayed.from_json(one) for one in training["relayed"]]
    published = PublishedGuarantee(**training["published"])
    tell_guarantees(training["guarantee"]["epsilon"], published, behind, training["counted_twice"])
