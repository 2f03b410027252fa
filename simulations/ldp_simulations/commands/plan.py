"""``ldp-simulate plan``: what a campaign will know with so many devices, and how many it takes."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from ldp_aggregator.cli.common import add_reading, reading_of
from ldp_aggregator.estimation.estimators import answers
from ldp_aggregator.evaluation.figures import foresee
from ldp_aggregator.guarantees import DEFAULT_DELTA, PublishedGuarantee, published_together
from ldp_aggregator.learning.series import MISSED, foreseen_variances
from ldp_aggregator.trainers.reading import TableError
from ldp_protocols import Campaign, Question
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json, warn
from ldp_protocols.document.questions import LABEL, PAIR, RIGHT, SCORE, SIGN
from ldp_simulations.studies.pilots import (
    LOST_BY_MANY_BINS,
    MANY_BINS,
    MEASURES,
    RANKED,
    Array,
    Binned,
    Curve,
    accuracy_curve,
    compare_bins,
)
from ldp_simulations.studies.planning import (
    Solution,
    Wish,
    alternatives,
    cliff,
    devices_for_error,
    devices_within,
    solve_devices,
    solve_epsilon,
    standard_errors,
)
from ldp_simulations.tables import TABLE_HELP, Table, read_draft, source_with_schema, with_epsilon

DEFAULT_LOSS: Final = 0.02
_MOVE: Final = 0.05
"""Root mean square of a share's change from the first window to the last, where errors of windows are foreseen."""
_WEEKLY: Final = {"from": "2027-01-04T00:00:00Z", "length": "P7D"}
"""Windows of a draft that has none; when they are changes no error."""
REPEATS: Final = 10
"""Simulations of the pilot at each number of devices."""
_SHOWN: Final = 3
"""Names of features in a note."""
_LEAST_WIDTH: Final = 11
"""Letters of the column of mechanisms."""

RELATIVE_ERRORS: Final = (0.2, 0.1, 0.05)
POINTS: Final = (5.0, 2.0, 1.0)
"""Hundredths, to within which a share may be wanted: half the width of its 95 % interval."""
_BY: Final = " by "

_SAME: Final = 0.005
"""Mechanisms whose variances differ by less than this share are as good as each other (``ss`` of size 1 is ``de``)."""

DESCRIPTION: Final = """\
Compute what a campaign will know, before anyone is asked.

Prints how many devices it takes, or what was solved for; for every question the mechanism and how much worse the next
best one is, the answers it can expect, the standard error of its estimated joint probabilities (or class-wise sums) at
the draft's epsilon and at half of it; how many devices a given error takes, every value and class being as likely as
any other; and last what is published, and on which conditions. With --pilot, a table like the one that devices hold,
the errors are those of its frequencies, and simulations say how many devices it takes to lose no more than --loss of
the accuracy without privacy, how often a model is called better, and what other numbers of bins, or none, are worth.
With --json one object with the same figures, and the standard error of every single cell."""


def add_plan(groups: Groups, text: str) -> None:
    parser = groups.add_parser(
        "plan",
        help=text,
        description=DESCRIPTION,
        examples=(
            "--schema draft.toml --devices 100000",
            "--schema draft.toml --devices 100000 --published-epsilon 0.1 --json",
        ),
    )
    parser.set_defaults(command=_run)
    parser.add_argument("--schema", type=Path, required=True, metavar="DRAFT", help="the draft, .json or .toml")
    parser.add_argument("--epsilon", type=between(0, 64), metavar="E", help="total loss of a device, not the draft's")
    parser.add_argument("--devices", type=at_least(1), metavar="N", help="devices that will answer")
    wanted = parser.add_argument_group(
        "what is wanted",
        "instead of --devices or --epsilon: with devices, epsilon is solved for; without, the devices at that epsilon",
    ).add_mutually_exclusive_group()
    wanted.add_argument(
        "--published-epsilon",
        type=between(0, 64),
        metavar="E",
        help="loss of a device to who sees only what is published: the largest epsilon, or the fewest devices",
    )
    wanted.add_argument(
        "--accuracy",
        type=_measure,
        metavar="[MEASURE=]A",
        help="on people held out of --pilot: the least epsilon, or the fewest devices; MEASURE is accuracy, balanced "
        "(its mean over the classes), area (under the ROC curve of the rarest class) or called (share of campaigns "
        "whose features are said to tell something)",
    )
    parser.add_argument(
        "--colluding", type=at_least(0), default=0, metavar="C", help="of the devices, hiding nobody (%(default)s)"
    )
    parser.add_argument(
        "--windows",
        type=at_least(2),
        metavar="T",
        help="ask in so many windows, each device in one of them: the error of a window, alone and smoothed",
    )
    parser.add_argument("--pilot", metavar="TABLE", help=TABLE_HELP)
    parser.add_argument(
        "--loss", type=between(0, 1), default=DEFAULT_LOSS, metavar="L", help="of accuracy (default: %(default)g)"
    )
    add_json(parser)
    add_reading(parser)


def _measure(text: str) -> tuple[str, float]:
    """A measure and how much of it is wanted; of the accuracy where none is named."""
    name, _, target = text.rpartition("=")
    if name and name not in MEASURES:
        raise argparse.ArgumentTypeError(f"must be a number, or one of {', '.join(MEASURES)} = a number, not {text!r}")
    return name or "accuracy", between(0, 1)(target)


def _run(options: argparse.Namespace) -> None:
    draft, pilot = read_draft(options.schema), None
    if options.windows:
        windows = {**_WEEKLY, **(draft.get("windows") or {}), "count": options.windows}
        draft = {**draft, "opens": None, "closes": None, "windows": windows}
    if options.pilot:
        source = source_with_schema(options.pilot, options.schema, reading_of(options))
        pilot = source.people
        for note in source.notes:
            warn(f"note: {note}")
    solution = _solution(options, draft, pilot)
    epsilon = options.epsilon or draft["privacy"]["epsilon"] if solution is None else solution.epsilon
    devices: int = options.devices if solution is None else solution.devices
    campaign = Campaign.compile(with_epsilon(draft, epsilon))
    half = Campaign.compile(with_epsilon(draft, campaign.privacy.epsilon / 2))
    plan = make_plan(campaign, half, devices, pilot)
    crowd = devices if campaign.windows is None else devices // campaign.windows.count
    plan["published"] = published_together([(campaign, crowd)], DEFAULT_DELTA, options.colluding).to_json()
    if campaign.privacy.crowd is not None:
        try:
            found = cliff(campaign, draft, RELATIVE_ERRORS[0])
        except ValueError as problem:
            raise TableError(str(problem)) from None
        needed = {"devices_needed": found.devices, "devices_locally": found.devices_locally}
        plan["crowd"] = campaign.privacy.crowd.to_json() | {"cliff": found.honest} | needed
    if campaign.evaluation is not None:
        plan["evaluation"] = asdict(foresee(campaign, devices))
    if campaign.windows is not None:
        plan["windows"] = _windows(plan["questions"], campaign.windows.count)
    plan["solution"] = None if solution is None else asdict(solution)
    plan["notes"] = []
    if pilot is not None and campaign.label:
        curve = accuracy_curve(campaign, pilot, options.loss, repeats=REPEATS)
        binned = compare_bins(with_epsilon(draft, epsilon), devices, pilot, REPEATS)
        plan["pilot"] = {
            "table": options.pilot,
            "loss": options.loss,
            "repeats": REPEATS,
            "devices_for_loss": curve.devices_for(options.loss),
            "devices_for_ranking": curve.devices_reaching("area", RANKED),
            **curve.to_json(),
            "bins": [asdict(one) for one in binned],
        }
        plan["notes"] = [*_of_majority(curve), *_of_bins(binned)]
    elif campaign.label and (
        many := [feature.name for feature in campaign.features if feature.number and feature.size >= MANY_BINS]
    ):
        lost, error = LOST_BY_MANY_BINS
        plan["notes"] = [
            f"{_shown(many)}: {MANY_BINS} bins lost {lost:g} +- {error:g} of accuracy against 8 on 16 tables (20,000 "
            "devices, epsilon 1); --pilot says what they lose on yours"
        ]
    if options.json:
        say_json(plan)
    else:
        _print(plan)


def _solution(options: argparse.Namespace, draft: Mapping[str, Any], pilot: Table | None) -> Solution | None:
    """The quantity that was looked for; None where epsilon and devices are given."""
    measure, target = options.accuracy or ("accuracy", None)
    if target is not None and not draft.get("label"):
        raise argparse.ArgumentTypeError("--accuracy is of a model, which a draft without a label has not")
    crowd = (draft["privacy"].get("crowd") or {}).get("devices")
    if crowd is not None:
        if options.epsilon or options.published_epsilon or (options.accuracy and options.devices):
            raise argparse.ArgumentTypeError(
                "the draft's crowd says what is published, and its local epsilon follows: give --devices, or --accuracy"
            )
        if options.accuracy is None:
            options.devices = options.devices or crowd
    wish = Wish(options.published_epsilon, target, measure, options.colluding, REPEATS)
    if wish.published is None and wish.target is None:
        if options.devices is None:
            raise argparse.ArgumentTypeError("give --devices, or what is wanted: --published-epsilon or --accuracy")
        return None
    if options.devices is not None and options.epsilon is not None:
        raise argparse.ArgumentTypeError("leave out --devices or --epsilon: what is wanted solves for one of them")
    if wish.target is not None and pilot is None:
        raise argparse.ArgumentTypeError("--accuracy needs --pilot TABLE, people to measure it on")
    try:
        if options.devices is not None:
            return solve_epsilon(draft, options.devices, wish, pilot)
        epsilon = options.epsilon or draft["privacy"]["epsilon"]
        return solve_devices(Campaign.compile(with_epsilon(draft, epsilon)), wish, pilot)
    except ValueError as error:
        raise TableError(str(error)) from None


def _shown(names: Sequence[str]) -> str:
    """Name the first few."""
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _of_majority(curve: Curve) -> list[str]:
    """Warn of Naive Bayes that is not above the majority class even without noise."""
    if curve.is_above_majority:
        return []
    return [
        f"without noise Naive Bayes is right for {curve.non_private.accuracy:.4f} of the people held out, and always "
        f"saying {curve.frequent} for {curve.majority:.4f}: with ever more devices this model ends there. It may rank "
        "people all the same (the area); or ask about other features"
    ]


def _of_bins(binned: Sequence[Binned]) -> list[str]:
    """Tell the number of bins that is better than the draft's by more than chance, and what the draft loses."""
    better = max((one for one in binned if one.is_better), key=lambda one: one.gain, default=None)
    if better is None:
        return []
    return [f"the draft loses {better.gain:.3f} +- {better.gain_error:.3f} of accuracy against {better.words}"]


def make_plan(campaign: Campaign, half: Campaign, devices: int, pilot: Table | None) -> dict[str, Any]:
    """The plan as ``--json`` gives it; ``half`` is the same campaign at half its epsilon."""
    expected = answers(campaign, devices)
    errors, at_half = standard_errors(campaign, devices, pilot), standard_errors(half, devices, pilot)
    classes = len(campaign.label.classes)
    return {
        "title": campaign.title,
        "epsilon": campaign.privacy.epsilon,
        "realised_epsilon": campaign.realised_epsilon,
        "answers": campaign.privacy.answers,
        "devices": devices,
        "questions": [
            {
                "kind": question.kind,
                "feature": _subject(campaign, question),
                **({"other": question.other} if question.other else {}),
                # ``sign`` is an encoding; the mechanism that carries it stands behind it.
                "mechanism": f"{SIGN}{_BY}" * (question.encoding == SIGN) + question.mechanism.name,
                "cells": question.domain_size,
                "answers": expected[question.index],
                "noise_variance": dict(sorted(alternatives(question, classes).items(), key=lambda pair: pair[1])),
                "standard_error": _typical(errors[question.index]),
                "standard_error_at_half_epsilon": _typical(at_half[question.index]),
                "standard_errors": errors[question.index].tolist(),
            }
            for question in campaign.questions
        ],
        **(
            {}
            if campaign.label
            else {
                "devices_for_points": {
                    f"{points:g}": {"epsilon": devices_within(campaign, points), "half": devices_within(half, points)}
                    for points in POINTS
                }
            }
        ),
        "devices_for_relative_error": {
            f"{error:g}": {"epsilon": devices_for_error(campaign, error), "half": devices_for_error(half, error)}
            for error in RELATIVE_ERRORS
        },
    }


def _windows(questions: Sequence[Mapping[str, Any]], count: int) -> dict[str, Any]:
    """The standard errors of a window's average cell: from its answers alone, filtered and smoothed; and what
    jump into it may be missed.
    """
    alone = [question["standard_error"] ** 2 * count for question in questions]
    levels = [foreseen_variances(_MOVE**2 / count, variance, count) for variance in alone]
    return {
        "count": count,
        "move": _MOVE,
        "alone": [math.sqrt(variance) for variance in alone],
        "filtered": [math.sqrt(filtered) for filtered, _ in levels],
        "smoothed": [math.sqrt(smoothed) for _, smoothed in levels],
        "missed": [MISSED * math.sqrt(own + before) for own, (before, _) in zip(alone, levels, strict=True)],
    }


def _subject(campaign: Campaign, question: Question) -> str:
    if question.kind in (RIGHT, SCORE):
        return "whether the model is right" if question.kind == RIGHT else "what the model says, and the class"
    return question.feature or campaign.label.name


def _typical(errors: Array) -> float:
    """The root mean square over a question's cells."""
    return float(np.sqrt(np.mean(errors**2)))


def _print(plan: Mapping[str, Any]) -> None:
    answers = "one question" if plan["answers"] == "one" else "one question of every group"
    say(_headline(plan))
    say(f"{plan['devices']:,} devices, each with a total loss of at most {plan['epsilon']:g}, answer {answers}")
    for note in plan["notes"]:
        say(f"note: {note}")
    say()
    wide = max(_LEAST_WIDTH, *(len(question["mechanism"]) for question in plan["questions"]))
    say(f"{'question':32} {'mechanism':{wide}} {'cells':>5} {'answers':>9} {'error':>8} {'at half':>8}  why")
    for question in plan["questions"]:
        say(
            f"{_in_words(question)[:32]:32} {question['mechanism']:{wide}} {question['cells']:5} "
            f"{question['answers']:9,.0f} {question['standard_error']:8.4f} "
            f"{question['standard_error_at_half_epsilon']:8.4f}  {_reason(question)}"
        )
    say()
    say("error: standard error of one estimated probability (or class-wise mean), root mean square over the cells")
    say("at half: the same at half the epsilon")
    for error, needed in plan["devices_for_relative_error"].items() if "devices_for_points" not in plan else ():
        say(
            f"for errors of {float(error):.0%} of an even share in the worst question: {needed['epsilon']:,} devices, "
            f"{needed['half']:,} at half the epsilon"
        )
    for points, needed in plan.get("devices_for_points", {}).items():
        say(
            f"for every share to within {points} points (95 %): {needed['epsilon']:,} devices, {needed['half']:,} at "
            "half the epsilon"
        )
    if "crowd" in plan:
        _print_crowd(plan)
    if "windows" in plan:
        _print_windows(plan)
    if "evaluation" in plan:
        _print_evaluation(plan["evaluation"])
    if "pilot" in plan:
        _print_pilot(plan["pilot"], plan["devices"])
    say()
    say(f"to who sees only what is published: {PublishedGuarantee(**plan['published'])}")


def _print_crowd(plan: Mapping[str, Any]) -> None:
    crowd = plan["crowd"]
    say()
    say(f"behind the relay, {crowd['devices']:,} in a batch, an answer's epsilon of {plan['epsilon']:g} counts for")
    say("  " + ", ".join(f"{epsilon:.3g} where {share:.0%} are honest" for share, epsilon in crowd["cliff"]))
    say(f"(delta {crowd['delta']:g}); {crowd['epsilon']:g} is promised, for {crowd['honest']:.0%}")
    needed = f"{crowd['devices_needed']:,} devices so, {crowd['devices_locally']:,} at a local epsilon"
    say(f"for errors of {RELATIVE_ERRORS[0]:.0%}: {needed} of {crowd['epsilon']:g}")


def _print_windows(plan: Mapping[str, Any]) -> None:
    windows = plan["windows"]
    each = plan["devices"] / windows["count"]
    say()
    say(f"each of {windows['count']} windows has {each:,.0f} of the devices; where shares move by {windows['move']:g}")
    say("(root mean square) from the first window to the last, the standard error of a window is; a jump of one cell")
    say("into a window may be missed where it is smaller than the last column")
    say(f"{'question':32} {'alone':>8} {'filtered':>8} {'smoothed':>8} {'jump':>8}")
    columns = (windows[name] for name in ("alone", "filtered", "smoothed", "missed"))
    for question, *errors in zip(plan["questions"], *columns, strict=True):
        say(f"{_in_words(question)[:32]:32} " + " ".join(f"{error:8.4f}" for error in errors))


def _in_words(question: Mapping[str, Any]) -> str:
    """Say what a row of the plan is about."""
    feature: str = " and ".join(filter(None, (question["feature"], question.get("other"))))
    return feature if question["kind"] in (LABEL, PAIR, RIGHT, SCORE) else f"{feature} ({question['kind']})"


def _reason(question: Mapping[str, Any]) -> str:
    """Say how much more noise the next best mechanism would add, or how much less the best one."""
    table = question["noise_variance"]
    if len(table) == 1:
        return "nothing else tells that a value is missing"
    chosen = question["mechanism"].split(_BY)[0]
    ratios = {name: variance / table[chosen] for name, variance in table.items()}
    best = min(ratios, key=lambda name: ratios[name])
    if ratios[best] < 1 - _SAME:
        return f"{best} would have {1 - ratios[best]:.0%} less noise; the draft wants {chosen}"
    worse = {name: ratio for name, ratio in ratios.items() if ratio > 1 + _SAME}
    if not worse:
        return "every other mechanism has the same noise"
    following = min(worse, key=lambda name: worse[name])
    return f"least noise; {following} would have {worse[following]:.2f} times as much"


def _headline(plan: Mapping[str, Any]) -> str:
    """Say the number that a plan is for: what was solved for, or the devices that it takes."""
    solution, pilot, epsilon = plan["solution"], plan.get("pilot"), plan["epsilon"]
    if solution is not None:
        wish = Wish(**solution["wish"])
        if solution["solved"] == "devices":
            return f"{solution['devices']:,} devices at epsilon {epsilon:g} for {wish}"
        extreme = "most" if wish.target is None else "least"
        return f"epsilon {epsilon:g} at {extreme} with {solution['devices']:,} devices for {wish}"
    if pilot is not None:
        return f"{_about(pilot['devices_for_loss'])} at epsilon {epsilon:g} {_of_loss(pilot)}"
    error, needed = next(iter(plan["devices_for_relative_error"].items()))
    return (
        f"{needed['epsilon']:,} devices at epsilon {epsilon:g} for errors of {float(error):.0%} of an even share in "
        "the worst question"
    )


def _of_loss(pilot: Mapping[str, Any]) -> str:
    least = (
        "" if pilot["non_private"] - pilot["loss"] > pilot["majority"] else " and nothing against the majority class"
    )
    return f"to lose at most {pilot['loss']:g} against no privacy{least}"


def _print_evaluation(foreseen: Mapping[str, Any]) -> None:
    say("standard errors of what the round tells, as far as the model's own tables describe the people")
    errors = {"accuracy": foreseen["accuracy"], "area under the ROC curve": foreseen["area"]}
    errors |= {f"recall of {name}": error for name, error in foreseen["recall"].items()}
    for name, error in errors.items():
        if error is not None:
            say(f"  {name:28} {error:.4f}")


def _print_pilot(pilot: Mapping[str, Any], devices: int) -> None:
    say()
    rarest = pilot["rarest"]
    say(f"on people held out of {pilot['table']} ({pilot['repeats']} simulations at each point): accuracy; balanced,")
    say(f"the mean over the classes; area, under the ROC curve of {rarest}, its rarest class (how often one of it is")
    say("ranked above one of another); called, how often the features are said to tell something")
    say(f"  {'':22} {'accuracy':>8} {'+-':>6} {'balanced':>9} {'area':>6} {'called':>7}")
    say(
        f"  {'without privacy':22} {pilot['non_private']:8.4f} {'':6} {pilot['balanced_non_private']:9.4f} "
        f"{pilot['area_non_private']:6.3f}"
    )
    say(f"  {'always ' + pilot['most_frequent'][:15]:22} {pilot['majority']:8.4f}")
    names = ("devices", "accuracy", "standard_error", "balanced", "area", "called")
    for number, reached, error, balanced, area, called in zip(*(pilot[name] for name in names), strict=True):
        say(f"  {number:14,} devices {reached:8.4f} {error:6.4f} {balanced:9.4f} {area:6.3f} {called:7.0%}")
    say(f"  {_of_loss(pilot)}: {_about(pilot['devices_for_loss'])}")
    say(f"  to rank {rarest} by an area of {RANKED:g}: {_about(pilot['devices_for_ranking'])}")
    if pilot["bins"]:
        say()
        say(f"accuracy with {devices:,} devices where all numbers have")
    for one in (Binned(**values) for values in pilot["bins"]):
        beside = "as the draft" if one.drafted else f"{one.gain:+.4f} +- {one.gain_error:.4f} to the draft"
        say(f"  {one.words:12} {one.accuracy:8.4f} +- {one.standard_error:.4f}  {beside}")


def _about(devices: int | None) -> str:
    return "more devices than tried" if devices is None else f"about {float(f'{devices:.2g}'):,.0f} devices"
