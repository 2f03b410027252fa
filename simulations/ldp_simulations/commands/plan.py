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
from ldp_aggregator.learning.evaluation_round import foresee
from ldp_aggregator.learning.published import DEFAULT_DELTA, PublishedGuarantee, published_together
from ldp_aggregator.learning.series import foreseen_variances
from ldp_aggregator.trainers.reading import TableError
from ldp_protocols import Campaign, Question
from ldp_protocols.command_line import Groups, add_json, at_least, between, say, say_json, warn
from ldp_protocols.document.questions import LABEL, PAIR, RIGHT, SCORE, SIGN
from ldp_simulations.studies.planning import (
    RANKED,
    Array,
    Solution,
    Wish,
    accuracy_curve,
    alternatives,
    devices_for_error,
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
_LEAST_WIDTH: Final = 11
"""Of the column of mechanisms."""

RELATIVE_ERRORS: Final = (0.2, 0.1, 0.05)
_BY: Final = " by "

_SAME: Final = 0.005
"""Mechanisms whose variances differ by less than this share are as good as each other (``ss`` of size 1 is ``de``)."""

DESCRIPTION: Final = """\
Compute what a campaign will know, before anyone is asked.

Prints for every question the mechanism and how much worse the next best one is, the answers it can expect, the standard
error of its estimated joint probabilities (or class-wise sums) at the draft's epsilon and at half of it; and how many
devices it takes for a given error, every value and class being as likely as any other. With --pilot, a table like the
one that devices hold, the errors are those of its frequencies, and simulations say how many devices it takes to lose no
more than --loss of the accuracy without privacy. With --json one object with the same figures, and the standard error
of every single cell."""


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
        type=between(0, 1),
        metavar="A",
        help="on people held out of --pilot: the least epsilon, or the fewest devices",
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
    if campaign.evaluation is not None:
        plan["evaluation"] = asdict(foresee(campaign, devices))
    if campaign.windows is not None:
        plan["windows"] = _windows(plan["questions"], campaign.windows.count)
    plan["solution"] = None if solution is None else asdict(solution)
    if pilot is not None:
        curve = accuracy_curve(campaign, pilot, options.loss, repeats=REPEATS)
        plan["pilot"] = {
            "table": options.pilot,
            "loss": options.loss,
            "repeats": REPEATS,
            "devices_for_loss": curve.devices_for(options.loss),
            "devices_for_ranking": curve.devices_for_ranking,
            **asdict(curve),
        }
    if options.json:
        say_json(plan)
    else:
        _print(plan)


def _solution(options: argparse.Namespace, draft: Mapping[str, Any], pilot: Table | None) -> Solution | None:
    """Return what was looked for; None where epsilon and devices are given."""
    wish = Wish(options.published_epsilon, options.accuracy, options.colluding, REPEATS)
    if wish.published is None and wish.accuracy is None:
        if options.devices is None:
            raise argparse.ArgumentTypeError("give --devices, or what is wanted: --published-epsilon or --accuracy")
        return None
    if options.devices is not None and options.epsilon is not None:
        raise argparse.ArgumentTypeError("leave out --devices or --epsilon: what is wanted solves for one of them")
    if wish.accuracy is not None and pilot is None:
        raise argparse.ArgumentTypeError("--accuracy needs --pilot TABLE, people to measure it on")
    try:
        if options.devices is not None:
            return solve_epsilon(draft, options.devices, wish, pilot)
        epsilon = options.epsilon or draft["privacy"]["epsilon"]
        return solve_devices(Campaign.compile(with_epsilon(draft, epsilon)), wish, pilot)
    except ValueError as error:
        raise TableError(str(error)) from None


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
        "devices_for_relative_error": {
            f"{error:g}": {"epsilon": devices_for_error(campaign, error), "half": devices_for_error(half, error)}
            for error in RELATIVE_ERRORS
        },
    }


def _windows(questions: Sequence[Mapping[str, Any]], count: int) -> dict[str, Any]:
    """Return the standard errors of a window's average cell: from its answers alone, filtered and smoothed."""
    alone = [question["standard_error"] ** 2 * count for question in questions]
    levels = [foreseen_variances(_MOVE**2 / count, variance, count) for variance in alone]
    return {
        "count": count,
        "move": _MOVE,
        "alone": [math.sqrt(variance) for variance in alone],
        "filtered": [math.sqrt(filtered) for filtered, _ in levels],
        "smoothed": [math.sqrt(smoothed) for _, smoothed in levels],
    }


def _subject(campaign: Campaign, question: Question) -> str:
    if question.kind in (RIGHT, SCORE):
        return "whether the model is right" if question.kind == RIGHT else "what the model says, and the class"
    return question.feature or campaign.label.name


def _typical(errors: Array) -> float:
    """The root mean square over a question's cells."""
    return float(np.sqrt(np.mean(errors**2)))


def _print(plan: Mapping[str, Any]) -> None:
    asked = "one question" if plan["answers"] == "one" else "one question of every group"
    say(f"{plan['devices']:,} devices, each with a total loss of at most {plan['epsilon']:g}, answer {asked}")
    if plan["solution"] is not None:
        say(_solved(plan["solution"]))
    say(f"to who sees only what is published: {PublishedGuarantee(**plan['published'])}")
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
    for error, needed in plan["devices_for_relative_error"].items():
        say(
            f"for errors of {float(error):.0%} of an even share in the worst question: {needed['epsilon']:,} devices, "
            f"{needed['half']:,} at half the epsilon"
        )
    if "windows" in plan:
        _print_windows(plan)
    if "evaluation" in plan:
        _print_evaluation(plan["evaluation"])
    if "pilot" in plan:
        _print_pilot(plan["pilot"])


def _print_windows(plan: Mapping[str, Any]) -> None:
    told = plan["windows"]
    each = plan["devices"] / told["count"]
    say()
    say(f"each of {told['count']} windows has {each:,.0f} of the devices; where shares move by {told['move']:g}")
    say("(root mean square) from the first window to the last, the standard error of a window is")
    say(f"{'question':32} {'alone':>8} {'filtered':>8} {'smoothed':>8}")
    for question, *errors in zip(plan["questions"], told["alone"], told["filtered"], told["smoothed"], strict=True):
        say(f"{_in_words(question)[:32]:32} " + " ".join(f"{error:8.4f}" for error in errors))


def _in_words(question: Mapping[str, Any]) -> str:
    """Say what a row of the plan is about."""
    asked: str = " and ".join(filter(None, (question["feature"], question.get("other"))))
    return asked if question["kind"] in (LABEL, PAIR, RIGHT, SCORE) else f"{asked} ({question['kind']})"


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


def _solved(solution: Mapping[str, Any]) -> str:
    published, accuracy = solution["wish"]["published"], solution["wish"]["accuracy"]
    wanted = f"an accuracy of {accuracy:g}" if published is None else f"a published epsilon of at most {published:g}"
    if solution["solved"] == "devices":
        return f"for {wanted}, it takes {solution['devices']:,} devices"
    extreme = "least" if published is None else "largest"
    return f"for {wanted}, the {extreme} epsilon is {solution['epsilon']:g}"


def _print_evaluation(foreseen: Mapping[str, Any]) -> None:
    say("standard errors of what the round tells, as far as the model's own tables describe the people")
    errors = {"accuracy": foreseen["accuracy"], "area under the ROC curve": foreseen["area"]}
    errors |= {f"recall of {name}": error for name, error in foreseen["recall"].items()}
    for name, error in errors.items():
        if error is not None:
            say(f"  {name:28} {error:.4f}")


def _print_pilot(pilot: Mapping[str, Any]) -> None:
    say()
    rarest = pilot["rarest"]
    say(f"accuracy on people held out of {pilot['table']} ({pilot['repeats']} simulations at each point), and the area")
    say(f"under the ROC curve of {rarest}, its rarest class: how often one of it is ranked above one of another")
    say(
        f"  without privacy {pilot['non_private']:.4f}, area {pilot['area_non_private']:.3f}; "
        f"majority class {pilot['majority']:.4f}"
    )
    points = zip(pilot["devices"], pilot["accuracy"], pilot["standard_error"], pilot["area"], strict=True)
    for devices, reached, error, area in points:
        say(f"  {devices:14,} devices  {reached:.4f} +- {error:.4f}  area {area:.3f}")
    say(f"  to lose at most {pilot['loss']:g} against no privacy: {_about(pilot['devices_for_loss'])}")
    say(f"  to rank {rarest} by an area of {RANKED:g}: {_about(pilot['devices_for_ranking'])}")


def _about(devices: int | None) -> str:
    return "more devices than tried" if devices is None else f"about {float(f'{devices:.2g}'):,.0f} devices"
