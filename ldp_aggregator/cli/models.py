"""Commands on what a campaign learned: ``estimates`` with their uncertainty; ``train``, which publishes a model under
the next version; ``evaluate``, which drafts the round that measures a model.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.cli.common import (
    CommandError,
    act_on,
    add_command,
    add_explain,
    add_id,
    read_file,
    say_table,
    shown_reach,
    tell_guarantees,
    with_store,
    write_file,
)
from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.dashboard.drawing.evaluations import drawing
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB, POSTERIOR, TRAINING_MODES
from ldp_aggregator.guarantees import PublishedGuarantee, Relayed, counted_twice, published_by, relayed
from ldp_aggregator.learning.series import ALL_WINDOWS, INTERVALS_MEAN, NOW, series_rows
from ldp_aggregator.service.publishing import (
    USELESS,
    UntrainableError,
    counts_to_publish,
    draft_evaluation,
    needing_trainers,
    publish_evaluated,
    publish_trained,
    told_estimates,
)
from ldp_aggregator.service.verdicts import MODEL, Facts, decide, model_row
from ldp_aggregator.service.words import many
from ldp_aggregator.store import Store
from ldp_aggregator.store.contract import PublishedModel, utc_now
from ldp_protocols import Campaign
from ldp_protocols.command_line import Groups, add_json, at_least, say, say_json
from ldp_protocols.document.authored import MOST_BINS
from ldp_protocols.document.model import Model

if TYPE_CHECKING:
    from ldp_aggregator.evaluation.accuracy import Figure
    from ldp_aggregator.evaluation.figures import Evaluated


def add_commands(groups: Groups) -> None:
    estimates = add_command(
        groups,
        "estimates",
        _estimates,
        "ID",
        "ID --json",
        "ID --csv --post none",
        "ID --liars 100",
        "EVALUATION-ID --plot evaluation.svg",
        "SERIES-ID --smooth --csv",
    )
    add_id(estimates)
    estimates.add_argument("--window", type=at_least(1), metavar="W", help="of a series: this window alone, from 1")
    estimates.add_argument(
        "--smooth", action="store_true", help="of a series: every window alone, filtered (the present) and smoothed"
    )
    estimates.add_argument("--post", choices=MODES, default=NORM_SUB, help="post-processing (default: %(default)s)")
    estimates.add_argument(
        "--liars",
        type=at_least(1),
        metavar="M",
        help="also print how far so many false answers can have moved each figure",
    )
    form = estimates.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument("--csv", action="store_true", help="print CSV")
    estimates.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="of an evaluation round: draw recall, ROC curve and calibration"
    )
    train = add_command(
        groups, "train", _train, "ID --output model.json", "FIRST-ID SECOND-ID", "ID --evaluation EVALUATION-ID"
    )
    train.add_argument(
        "ids",
        nargs="+",
        metavar="ID",
        help="the campaign's id; several about the same features (rounds of a study) train one model",
    )
    train.add_argument(
        "--evaluation",
        metavar="ID",
        help="train nothing: publish the model of this evaluation round with the round's figures",
    )
    train.add_argument("--output", type=Path, metavar="FILE", help="write the model to a file, too")
    add_explain(train)
    train.add_argument(
        "--window",
        choices=(ALL_WINDOWS, NOW),
        default=ALL_WINDOWS,
        help="of a series: all windows alike, or the present by a filter over windows (default: %(default)s)",
    )
    train.add_argument(
        "--post",
        choices=TRAINING_MODES,
        default=POSTERIOR,
        help="how noisy counts become tables: shrunk by the known noise; the nearest probabilities; or negative "
        "counts set to 1 (default: %(default)s)",
    )
    train.add_argument(
        "--anyway",
        action="store_true",
        help="publish the model even if its features do not clearly tell the classes apart",
    )
    evaluate = add_command(
        groups,
        "evaluate",
        _evaluate,
        "ID --output evaluation.json",
        "ID --model regression.json --output evaluation.json",
    )
    evaluate.add_argument("ids", nargs="+", metavar="ID", help="the campaign's id; several as with train")
    evaluate.add_argument("--output", type=Path, required=True, metavar="DRAFT.json", help="where the draft goes")
    evaluate.add_argument(
        "--model",
        type=Path,
        metavar="FILE",
        help="a device model of this label and these features, also of another origin (default: train's)",
    )
    evaluate.add_argument(
        "--bins",
        type=int,
        choices=range(2, MOST_BINS + 1),
        default=MOST_BINS,
        metavar="N",
        help=f"bins of the model's score, 2 to {MOST_BINS}; fewer show less, but more precisely (default: %(default)s)",
    )


def _estimates(options: argparse.Namespace) -> None:
    async def read(store: Store) -> Campaign:
        campaign = Campaign.parse(await store.document(options.id), options.id)
        if (await store.state(campaign.id)).federated:
            raise CommandError(f"campaign {campaign.id} is federated: it has a model, and no estimates")
        return campaign

    campaign = with_store(options, read, read_only=True)
    # A release is kept: reading the estimates of a campaign that fixes releases may make one.
    releases = campaign.privacy.release_every is not None
    tally, arrivals = with_store(options, lambda store: counts_to_publish(store, campaign), read_only=not releases)
    if options.window or options.smooth:
        window = _window(campaign, tally, options.window)
        if options.smooth:
            _tell_series(options, campaign, tally, arrivals, window)
            return
        tally = tally.window(window or 0)
    evaluated = None
    if campaign.evaluation is not None:
        with needing_trainers():
            from ldp_aggregator.evaluation.figures import evaluate
        evaluated = evaluate(campaign, tally)
    if options.liars and evaluated is not None:
        raise CommandError(f"campaign {campaign.id} measures a model; --liars is about a campaign that asks for values")
    if options.plot:
        if evaluated is None:
            raise CommandError(f'campaign {campaign.id} has "asks": "{campaign.asks}"; --plot draws an evaluation')
        write_file(options.plot, str(drawing(evaluated.to_json())))
    if options.json:
        values = told_estimates(campaign, tally, arrivals, options.post)
        if options.liars:
            values["lies"] = estimate(campaign, tally).moved_by(options.liars)
        say_json(values | ({"evaluated": evaluated.to_json()} if evaluated else {}))
        return
    estimates = estimate(campaign, tally, post=options.post)
    if options.csv:
        say(estimates.to_frame().to_csv(index=False).rstrip("\n"))
    else:
        _tell_estimates(estimates, tally, arrivals)
        if options.liars:
            _tell_moved(estimates.moved_by(options.liars))
        if evaluated:
            say("")
            _tell_evaluated(evaluated)


def _window(campaign: Campaign, tally: Tally, number: int | None) -> int | None:
    """The window of this number, from 0; None where none was named."""
    if campaign.windows is None:
        raise CommandError(f"campaign {campaign.id} has no windows; leave out --window and --smooth")
    if number is not None and not (number <= campaign.windows.count and tally.window(number - 1).n.any()):
        window = campaign.windows.told(number - 1) if number <= campaign.windows.count else f"window {number}"
        raise CommandError(f"{window}: no answers of it are counted; the campaign has {campaign.windows.count} windows")
    return None if number is None else number - 1


def _tell_series(
    options: argparse.Namespace, campaign: Campaign, tally: Tally, arrivals: Arrivals, window: int | None
) -> None:
    """Print every window's estimates alone, filtered and smoothed, or those of one window."""
    rows = series_rows(campaign, tally, window)
    published = published_by([(campaign, tally)], [arrivals])
    if options.json:
        say_json({"campaign": campaign.id, "series": rows, "published": published.to_json()})
        return
    with needing_trainers():
        import pandas as pd
    frame = pd.DataFrame(rows)
    if options.csv:
        say(frame.to_csv(index=False).rstrip("\n"))
        return
    say(frame.drop(columns=["from", "question"]).to_string(index=False, na_rep="", float_format="{:.4f}".format))
    say(f"\n{INTERVALS_MEAN} Below jump_missed, a jump of one cell before the window may be missed.\n")
    twice = counted_twice([arrivals])
    tell_guarantees(campaign.privacy.epsilon, published, [relayed(campaign, arrivals)], twice, explain=True)


def _tell_estimates(estimates: Estimates, tally: Tally, arrivals: Arrivals) -> None:
    """Questions, guarantees, the pooled class prior and the moments of Gaussian features, with what one liar moves."""
    cells = estimates.to_frame().astype({"question": object, "n": object})
    texts = "question", "feature", "mechanism", "n", "value", "class", "other", "other_value"
    cells = cells.fillna({name: "" for name in texts if name in cells})
    say(cells.to_string(index=False, na_rep="", formatters={"per_liar": shown_reach}))
    values, classes = estimates.to_json(), estimates.campaign.label.classes
    say("")
    campaign = estimates.campaign
    published = published_by([(campaign, tally)], [arrivals])
    twice = counted_twice([arrivals])
    tell_guarantees(campaign.privacy.epsilon, published, [relayed(campaign, arrivals)], twice, explain=True)
    if not campaign.label:
        return
    if any(question.classes is not None for question in estimates.questions):
        say("\nP(class), pooled from every question that tells it")
        say_table(
            ("class", "estimate", "low", "high", "per_liar"),
            [
                (name, *(_number(row[key]) for key in ("estimate", "low", "high")), shown_reach(row["per_liar"]))
                for name, row in zip(classes, values["class_prior"], strict=True)
            ],
        )
    if values["moments"]:
        say("\nmean and variance of the numbers without bins")
        say_table(
            ("feature", "class", "mean", "per_liar", "variance"),
            [
                (
                    feature,
                    name,
                    _number(moments["mean"][c]),
                    shown_reach(moments["mean_per_liar"][c]),
                    _number(moments["variance"][c]),
                )
                for feature, moments in values["moments"].items()
                for c, name in enumerate(classes)
            ],
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


_NEVER: Final = 0.001
"""A share below which a class is said never."""


def _train(options: argparse.Namespace) -> None:
    if options.evaluation:
        _publish_with_evaluation(options)
        return
    try:
        reports, models = act_on(
            options,
            "publish model",
            options.ids,
            lambda store: publish_trained(
                store, options.ids, options.post, window=options.window, anyway=options.anyway
            ),
        )
    except UntrainableError as error:
        if error.code != USELESS:
            raise
        raise CommandError(f"{error}. Nothing is published; --anyway publishes it") from None
    if options.output:
        write_file(options.output, models[0].document)
    say(f"{_published(models)} from {many(reports, 'report')}.")
    training = json.loads(models[0].document)["training"]
    _tell_expected(training["expected"])
    _tell_guarantees(training, explain=options.explain)
    _tell_lies(training["lies"])


def _published(models: Sequence[PublishedModel]) -> str:
    versions = " and ".join(str(model.version) for model in models)
    return f"Model version {versions} is published" if len(models) == 1 else f"Model versions {versions} are published"


def _tell_guarantees(training: dict[str, Any], *, explain: bool) -> None:
    """Print what the model's document says that devices lose."""
    behind = [Relayed.from_json(one) for one in training["relayed"]]
    published = PublishedGuarantee(**training["published"])
    epsilon, twice = training["guarantee"]["epsilon"], training["counted_twice"]
    tell_guarantees(epsilon, published, behind, twice, explain=explain)


def _tell_expected(expected: dict[str, Any]) -> None:
    """Print what to expect of the model, as its page does; only an evaluation round knows more."""
    row = model_row(PublishedModel(0, json.dumps({"training": {"expected": expected}}), utc_now()))
    verdict = decide(MODEL, Facts("open", reports=1, width=0.0, model=row))
    say(f"{verdict.text}. {verdict.says} 'ldp-aggregator evaluate' measures it.".replace("\u00a0", " "))
    says = ", ".join(f"{name} {said:.1%}" for name, said in expected["says"].items())
    say(f"By its own tables the model says: {says}.")
    for name in (name for name, said in expected["says"].items() if said < _NEVER):
        say(f"Warning: it never says {name}.")


def _tell_lies(lies: dict[str, Any]) -> None:
    """Print what liars can have moved: a bound for the classes, for features what was found."""
    say(f"\nIf {lies['liars']:,} liars had taken part, one in a hundred (see docs/privacy.md):")
    rows = [("shares of the classes", f"at most {shown_reach(lies['classes'])}")]
    rows += [(name, f"at least {shown_reach(moved)}") for name, moved in lies["features"].items()]
    say_table(("what they move", "by"), rows)


def _tell_moved(moved: dict[str, Any]) -> None:
    """Print the most that so many liars can have moved what was estimated."""
    say(f"\nIf {moved['liars']:,} of the devices had lied, at most (see docs/privacy.md):")
    classes = [("shares of the classes", shown_reach(moved["classes"]))] if "classes" in moved else []
    rows = [(name, shown_reach(reach)) for name, reach in moved["features"].items()]
    say_table(("what they move", "by"), [*classes, *rows])


_CROWDS: Final = (1_000, 5_000, 20_000, 100_000)


def _evaluate(options: argparse.Namespace) -> None:
    model = None if options.model is None else Model.from_json(read_file(options.model))
    draft = with_store(options, lambda store: draft_evaluation(store, options.ids, model=model, bins=options.bins))
    campaign = Campaign.compile(draft)
    write_file(options.output, json.dumps(draft, ensure_ascii=False, indent=2) + "\n")
    say(f"the draft of an evaluation round is in {options.output}; what its answers would tell, ± one standard error:")
    with needing_trainers():
        from ldp_aggregator.evaluation.figures import foresee
    crowds = [foresee(campaign, devices) for devices in _CROWDS]
    names = list(crowds[0].recall)
    heads = ("devices", "accuracy", *(f"recall of {name}" for name in names), "area under ROC")
    rows = [
        (f"{one.devices:,}", f"± {one.accuracy:.3f}", *(_error(one.recall[name]) for name in names), _error(one.area))
        for one in crowds
    ]
    say_table(heads, rows)


def _error(value: float | None) -> str:
    return "not told" if value is None or value > 0.5 else f"± {value:.3f}"


def _publish_with_evaluation(options: argparse.Namespace) -> None:
    """Do what ``train`` does with ``--evaluation``: publish the round's model; nothing is trained."""
    evaluated, models = act_on(
        options,
        "publish model",
        (*options.ids, options.evaluation),
        lambda store: publish_evaluated(store, options.ids, options.evaluation),
    )
    if options.output:
        write_file(options.output, models[0].document)
    _tell_evaluated(evaluated)
    say(f"\n{_published(models)} with these figures.")
    _tell_guarantees(json.loads(models[0].document)["training"], explain=options.explain)


def _tell_evaluated(evaluated: Evaluated) -> None:
    """Print what an evaluation round tells, each figure with its 95 % interval."""
    say(f"Accuracy {_figure(evaluated.accuracy)}, told by {evaluated.devices:,} devices that were not trained on.")
    if evaluated.threshold:
        say(f"Its threshold is moved: {evaluated.reason}; at the model's own: {_figure(evaluated.as_trained)}.")
    elif evaluated.roc:
        say(f"It says {list(evaluated.classes)[1]} from 50 % on; no other limit is clearly better.")
    else:
        say(f"Its threshold stays: {evaluated.reason}.")
    if evaluated.slope != 1:
        say(f"Its log odds are multiplied by {evaluated.slope:g}: it was surer, or less sure, than it was right.")
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
        ("limit, in log odds", "false alarms", f"{second} found"),
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


def _figure(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not told"
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"
