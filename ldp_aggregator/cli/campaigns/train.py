"""``ldp-aggregator train``: a model from what was counted, published under the next version."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.cli.campaigns.winner import publish_winner
from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    say_table,
    share,
    shown_reach,
    tell_guarantees,
    with_store,
    write_file,
)
from ldp_aggregator.estimation.moments import DEFAULT_VARIANCE_FLOOR
from ldp_aggregator.estimation.simplex import POSTERIOR, TRAINING_MODES
from ldp_aggregator.learning.published import PublishedGuarantee
from ldp_aggregator.learning.relays import Relayed
from ldp_aggregator.service.acting import local_actor, recorded
from ldp_aggregator.service.publishing import TrainingOptions, UntrainableError, UselessModelError, publish_trained
from ldp_aggregator.store import PublishedModel, Store

_SHOWN: Final = {"likelihood": "P(value | class)", "mean": "mean", "variance": "variance"}


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "train",
        "train a model and publish it for the campaign's devices",
        _train,
        "ID --output model.json",
        "FIRST-ID SECOND-ID",
        "ID --evaluation EVALUATION-ID",
    )
    add_store_options(parser)
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="the campaign's id; several about the same features (rounds of a study) train one model",
    )
    parser.add_argument(
        "--evaluation",
        metavar="ID",
        help="train nothing: publish the winner of this evaluation round of these campaigns' models, with its accuracy",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the model to a file, too")
    parser.add_argument(
        "--post",
        choices=TRAINING_MODES,
        default=POSTERIOR,
        help="how tables are made of noisy counts: shrunk by the known noise, with weights for features that repeat "
        "each other; the nearest probabilities; or negative counts made 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="publish even a model that is not known to be above always saying the most frequent class",
    )
    parser.add_argument(
        "--prior",
        choices=("pooled", "label"),
        default="pooled",
        help="class prior from every question, or from the label question alone (default: %(default)s)",
    )
    parser.add_argument(
        "--variance-floor",
        type=share,
        default=DEFAULT_VARIANCE_FLOOR,
        metavar="SHARE",
        help="least variance of a Gaussian feature, as a share of (high - low) squared (default: %(default)s)",
    )


def _train(options: argparse.Namespace) -> None:
    if options.evaluation:
        publish_winner(options)
        return
    chosen = TrainingOptions(options.post, options.prior, options.variance_floor)

    async def work(store: Store) -> tuple[int, tuple[PublishedModel, ...]]:
        async with AsyncExitStack() as acts:
            for campaign_id in dict.fromkeys(options.ids):
                await store.state(campaign_id)
                await acts.enter_async_context(recorded(store, local_actor(), "publish model", campaign_id))
            return await publish_trained(store, options.ids, chosen, anyway=options.anyway)

    try:
        reports, models = with_store(options, work)
    except UselessModelError as error:
        raise CommandError(f"{error}. Nothing is published; --anyway publishes it") from None
    except UntrainableError as error:
        raise CommandError(str(error)) from None
    if options.output:
        write_file(options.output, models[0].document)
    versions = " and ".join(str(model.version) for model in models)
    say(f"model version {versions} from {reports} reports is published")
    training = json.loads(models[0].document)["training"]
    _tell_accuracy(training["predicted_accuracy"])
    behind = [Relayed.from_json(one) for one in training["relayed"]]
    published = PublishedGuarantee(**training["published"])
    tell_guarantees(training["guarantee"]["epsilon"], published, behind, training["counted_twice"])
    _tell_poisoning(training["poisoning"], training["poisoning_takes_as_given"])


def _tell_accuracy(predicted: dict[str, Any]) -> None:
    """What to expect of the model; only an evaluation round can say more."""
    say(
        f"predicted accuracy {predicted['low']:.3f} to {predicted['high']:.3f} (the best feature alone; all features, "
        f"if they know different things); always saying the most frequent class: {predicted['prior']:.3f}"
    )
    if not predicted["above_prior"]:
        say("with these reports the model is not known to be above always saying the most frequent class")


def _tell_poisoning(reaches: Sequence[dict[str, Any]], given: Sequence[str]) -> None:
    """What lying devices can have moved, parameter by parameter, the worst of its cells."""
    say("\nThe most that lying devices can have moved, whatever they sent (see docs/privacy.md):")
    names = ("prior", *((feature, key) for feature, keys in reaches[0]["features"].items() for key in keys))
    rows = [
        (
            "P(class)" if name == "prior" else f"{name[0]}: {_SHOWN[name[1]]}",
            *(shown_reach(one["prior"] if name == "prior" else one["features"][name[0]][name[1]]) for one in reaches),
        )
        for name in names
    ]
    say_table(("parameter", *(f"{one['liars']} of them" for one in reaches)), rows)
    if given:
        say(f"Taken as given: {', '.join(given)}.")
