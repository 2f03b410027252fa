"""``ldp-aggregator train``: a model from what was counted, published under the next version."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.cli.campaigns.evaluate import publish_with_evaluation
from ldp_aggregator.cli.common import (
    ABOUT,
    CommandError,
    act_on,
    add_command,
    say_table,
    shown_reach,
    tell_guarantees,
    write_file,
)
from ldp_aggregator.estimation.simplex import POSTERIOR, TRAINING_MODES
from ldp_aggregator.learning.published import PublishedGuarantee, Relayed
from ldp_aggregator.service.publishing import UselessModelError, publish_trained
from protocols.shell import Groups, say

_NEVER: Final = 0.001
"""A share below which a class is said never."""


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "train",
        ABOUT["train"],
        _train,
        "ID --output model.json",
        "FIRST-ID SECOND-ID",
        "ID --evaluation EVALUATION-ID",
    )
    parser.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="the campaign's id; several about the same features (rounds of a study) train one model",
    )
    parser.add_argument(
        "--evaluation",
        metavar="ID",
        help="train nothing: publish the model of this evaluation round with what the round tells of it",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the model to a file, too")
    parser.add_argument(
        "--post",
        choices=TRAINING_MODES,
        default=POSTERIOR,
        help="how tables are made of noisy counts: shrunk by the known noise; the nearest probabilities; or negative "
        "counts made 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="publish even a model that is not known to be above always saying the most frequent class",
    )


def _train(options: argparse.Namespace) -> None:
    if options.evaluation:
        publish_with_evaluation(options)
        return

    try:
        reports, models = act_on(
            options,
            "publish model",
            options.ids,
            lambda store: publish_trained(store, options.ids, options.post, anyway=options.anyway),
        )
    except UselessModelError as error:
        raise CommandError(f"{error}. Nothing is published; --anyway publishes it") from None
    if options.output:
        write_file(options.output, models[0].document)
    versions = " and ".join(str(model.version) for model in models)
    say(f"model version {versions} from {reports} reports is published")
    training = json.loads(models[0].document)["training"]
    _tell_expected(training["expected"])
    behind = [Relayed.from_json(one) for one in training["relayed"]]
    published = PublishedGuarantee(**training["published"])
    tell_guarantees(training["guarantee"]["epsilon"], published, behind, training["counted_twice"])
    _tell_lies(training["lies"])


def _tell_expected(expected: dict[str, Any]) -> None:
    """Print what to expect of the model; only an evaluation round knows more."""
    say(f"always saying the most frequent class is right for {expected['majority']:.3f} of the people")
    best = expected["best_feature"]
    if best:
        say(
            f"the best feature alone, {best['feature']}, reaches {best['accuracy']:.3f} (95 %: {best['low']:.3f} to "
            f"{best['high']:.3f})"
        )
    say(f"all features would reach {expected['independent']:.3f} if they knew different things; evaluate tells")
    says = ", ".join(f"{name} {said:.1%}" for name, said in expected["says"].items())
    say(f"by its own tables the model says: {says}")
    for name in (name for name, said in expected["says"].items() if said < _NEVER):
        say(f"warning: it never says {name}")
    if not expected["above_majority"]:
        say("with these reports the model is not known to be better than always saying the most frequent class")


def _tell_lies(lies: dict[str, Any]) -> None:
    """Print what lying devices can have moved: a bound for the classes, for features what was found."""
    say(f"\nIf {lies['liars']:,} devices, one in a hundred, had lied (see docs/privacy.md):")
    rows = [("shares of the classes", f"at most {shown_reach(lies['classes'])}")]
    rows += [(name, f"at least {shown_reach(moved)}") for name, moved in lies["features"].items()]
    say_table(("what they move", "by"), rows)
