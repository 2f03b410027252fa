"""``ldp-aggregator estimates``: what was learned so far, with its uncertainty."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ldp_aggregator.cli.campaigns.evaluate import plot_evaluated, tell_evaluated
from ldp_aggregator.cli.common import (
    ABOUT,
    CommandError,
    add_command,
    add_id,
    say_table,
    shown_reach,
    tell_guarantees,
    with_store,
)
from ldp_aggregator.counting.tally import Arrivals, Tally
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.learning.published import counted_twice, published_by, relayed
from ldp_aggregator.service.publishing import counts_to_publish, needing_trainers, told_estimates
from ldp_aggregator.store import Store
from protocols import Campaign
from protocols.shell import Groups, add_json, say, say_json

if TYPE_CHECKING:
    from ldp_aggregator.learning.evaluation import Evaluated


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "estimates",
        ABOUT["estimates"],
        _estimates,
        "ID",
        "ID --json",
        "ID --csv --post none",
        "EVALUATION-ID --plot evaluation.svg",
    )
    add_id(parser)
    parser.add_argument("--post", choices=MODES, default=NORM_SUB, help="post-processing (default: %(default)s)")
    form = parser.add_mutually_exclusive_group()
    add_json(form)
    form.add_argument("--csv", action="store_true", help="print CSV")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="of an evaluation round: draw recall, ROC curve and calibration"
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
    evaluated = _evaluated(campaign, tally)
    if options.plot:
        if evaluated is None:
            raise CommandError(f'campaign {campaign.id} has "asks": "{campaign.asks}"; --plot draws an evaluation')
        plot_evaluated(evaluated, options.plot)
    if options.json:
        told = told_estimates(campaign, tally, arrivals, options.post)
        say_json(told | ({"evaluated": evaluated.to_json()} if evaluated else {}))
        return
    estimates = estimate(campaign, tally, post=options.post)
    if options.csv:
        say(estimates.to_frame().to_csv(index=False).rstrip("\n"))
    else:
        _tell(estimates, tally, arrivals)
        if evaluated:
            say("")
            tell_evaluated(evaluated)


def _evaluated(campaign: Campaign, tally: Tally) -> Evaluated | None:
    if campaign.evaluation is None:
        return None
    with needing_trainers():
        from ldp_aggregator.learning.evaluation import evaluate

    return evaluate(campaign, tally)


def _tell(estimates: Estimates, tally: Tally, arrivals: Arrivals) -> None:
    """Questions, guarantees, the pooled class prior and the moments of Gaussian features, with what one liar moves."""
    cells = estimates.to_frame().fillna({"feature": "", "value": "", "class": ""})
    say(cells.to_string(index=False, na_rep="", formatters={"per_liar": shown_reach}))
    told, classes = estimates.to_json(), estimates.campaign.label.classes
    say("")
    campaign = estimates.campaign
    published = published_by([(campaign, tally)], [arrivals])
    tell_guarantees(campaign.privacy.epsilon, published, [relayed(campaign, arrivals)], counted_twice([arrivals]))
    if any(question.classes is not None for question in estimates.questions):
        say("\nP(class), pooled from every question that tells it")
        say_table(
            ("class", "estimate", "low", "high", "per_liar"),
            [
                (name, *(_number(row[key]) for key in ("estimate", "low", "high")), shown_reach(row["per_liar"]))
                for name, row in zip(classes, told["class_prior"], strict=True)
            ],
        )
    if told["moments"]:
        say("\nmean and variance of the continuous features without bins")
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
                for feature, moments in told["moments"].items()
                for c, name in enumerate(classes)
            ],
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
