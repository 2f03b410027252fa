"""``ldp-aggregator evaluate``: the draft of a round that tells how good a model is, and what such a round has told."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.cli.common import (
    ABOUT,
    act_on,
    add_command,
    read_file,
    say_table,
    tell_guarantees,
    with_store,
    write_file,
)
from ldp_aggregator.dashboard.drawing.evaluations import drawing
from ldp_aggregator.learning.published import PublishedGuarantee, Relayed
from ldp_aggregator.service.publishing import draft_evaluation, needing_trainers, publish_evaluated
from protocols import Campaign
from protocols.document.authored import MOST_BINS
from protocols.model import Model
from protocols.shell import Groups, say

if TYPE_CHECKING:
    from ldp_aggregator.learning.evaluation import Evaluated, Figure, Foreseen

_CROWDS: Final = (1_000, 5_000, 20_000, 100_000)


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "evaluate",
        ABOUT["evaluate"],
        _evaluate,
        "ID --output evaluation.json",
        "ID --model regression.json --output evaluation.json",
    )
    parser.add_argument("ids", nargs="+", metavar="ID", help="the campaign's id; several as with train")
    parser.add_argument("--output", type=Path, required=True, metavar="DRAFT.json", help="where the draft goes")
    parser.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="a device model of this label and these features, also one from elsewhere (default: the one train makes)",
    )
    parser.add_argument(
        "--bins",
        type=int,
        choices=range(2, MOST_BINS + 1),
        default=MOST_BINS,
        metavar="N",
        help=f"of the model's score, 2 to {MOST_BINS}; fewer tell less, and know it better (default: %(default)s)",
    )


def _evaluate(options: argparse.Namespace) -> None:
    model = None if options.model is None else Model.from_json(read_file(options.model))
    draft = with_store(options, lambda store: draft_evaluation(store, options.ids, model=model, bins=options.bins))
    campaign = Campaign.compile(draft)
    write_file(options.output, json.dumps(draft, ensure_ascii=False, indent=2) + "\n")
    say(f"the draft of an evaluation round is in {options.output}; what its answers would tell, ± one standard error:")
    with needing_trainers():
        from ldp_aggregator.learning.evaluation import foresee
    _tell_foreseen([foresee(campaign, devices) for devices in _CROWDS])


def _tell_foreseen(crowds: list[Foreseen]) -> None:
    names = list(crowds[0].recall)
    heads = ("devices", "accuracy", *(f"recall of {name}" for name in names), "area under ROC")
    rows = [
        (
            f"{one.devices:,}",
            f"± {one.accuracy:.3f}",
            *(_error(one.recall[name]) for name in names),
            _error(one.area),
        )
        for one in crowds
    ]
    say_table(heads, rows)


def _error(value: float | None) -> str:
    return "not told" if value is None or value > 0.5 else f"± {value:.3f}"


def publish_with_evaluation(options: argparse.Namespace) -> None:
    """Do what ``train`` does with ``--evaluation``: publish the round's model; nothing is trained."""
    evaluated, models = act_on(
        options,
        "publish model",
        (*options.ids, options.evaluation),
        lambda store: publish_evaluated(store, options.ids, options.evaluation),
    )
    if options.output:
        write_file(options.output, models[0].document)
    tell_evaluated(evaluated)
    versions = " and ".join(str(model.version) for model in models)
    say(f"\nmodel version {versions} is published with these figures")
    training: dict[str, Any] = json.loads(models[0].document)["training"]
    behind = [Relayed.from_json(one) for one in training["relayed"]]
    published = PublishedGuarantee(**training["published"])
    tell_guarantees(training["guarantee"]["epsilon"], published, behind, training["counted_twice"])


def tell_evaluated(evaluated: Evaluated) -> None:
    """Print what an evaluation round tells, each figure with its 95 % interval."""
    say(f"accuracy {_figure(evaluated.accuracy)}, told by {evaluated.devices:,} devices that were not trained on")
    if evaluated.threshold:
        say(f"the threshold is moved: {evaluated.reason}; at the model's own: {_figure(evaluated.as_trained)}")
    else:
        say(f"the threshold stays: {evaluated.reason}")
    say("")
    say_table(
        ("class", "share of people", "recall", "precision"),
        [
            (name, *map(_figure, (evaluated.classes[name], evaluated.recall[name], evaluated.precision[name])))
            for name in evaluated.classes
        ],
    )
    if evaluated.confusion:
        say("\nshare of people by the class said (rows) and their own (columns)")
        rows = zip(evaluated.classes, evaluated.confusion, strict=True)
        say_table(("", *evaluated.classes), [(name, *map(_figure, row)) for name, row in rows])
    if evaluated.area is None:
        return
    second = list(evaluated.classes)[1]
    say(f"\narea under the ROC curve {_figure(evaluated.area)}")
    say_table(
        ("log odds above", f"of others said {second}", f"of {second} said so"),
        [
            (f"{one['threshold']:g}", _figure(one["false_positive"]), _figure(one["true_positive"]))
            for one in evaluated.roc
        ],
    )
    say("")
    say_table(
        (f"claims {second} with", "share of people", f"of these {second}"),
        [
            (f"{one['claims'][0]:.3f} to {one['claims'][1]:.3f}", _figure(one["share"]), _figure(one["measured"]))
            for one in evaluated.calibration
        ],
    )


def plot_evaluated(evaluated: Evaluated, path: Path) -> None:
    """Draw what an evaluation round tells into an SVG file."""
    write_file(path, str(drawing(evaluated.to_json())))


def _figure(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not told"
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"
