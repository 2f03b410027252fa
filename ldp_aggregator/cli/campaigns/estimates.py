"""``ldp-aggregator estimates``: what was learned so far, with its uncertainty."""

from __future__ import annotations

import argparse

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    say_json,
    say_table,
    shown_reach,
    tell_guarantees,
    with_store,
)
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.learning.published import PublishedGuarantee, published_by
from ldp_aggregator.service.publishing import tally_to_publish
from ldp_aggregator.store import Store
from protocols import Campaign


def add_commands(groups: Groups) -> None:
    parser = add_command(groups, "estimates", "print frequencies, variances and intervals of a campaign", _estimates)
    add_store_options(parser)
    parser.add_argument("id", metavar="ID", help="the campaign's id")
    parser.add_argument("--post", choices=MODES, default=NORM_SUB, help="post-processing (default: %(default)s)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")


def _estimates(options: argparse.Namespace) -> None:
    async def work(store: Store) -> tuple[Estimates, PublishedGuarantee]:
        campaign = Campaign.parse(await store.document(options.id), options.id)
        if (await store.state(campaign.id)).federated:
            raise CommandError(f"campaign {campaign.id} is federated: it has a model, and no estimates")
        tally = await tally_to_publish(store, campaign)
        return estimate(campaign, tally, post=options.post), published_by([(campaign, tally)])

    estimates, published = with_store(options, work)
    if options.json:
        say_json({**estimates.to_json(), "published": published.to_json()})
    elif options.csv:
        say(estimates.to_frame().to_csv(index=False).rstrip("\n"))
    else:
        _tell(estimates, published)


def _tell(estimates: Estimates, published: PublishedGuarantee) -> None:
    """Questions, guarantees, the pooled class prior and the moments of Gaussian features, with what one liar moves."""
    say(estimates.to_frame().to_string(index=False, formatters={"per_liar": shown_reach}))
    told, classes = estimates.to_json(), estimates.campaign.label.classes
    say("")
    tell_guarantees(estimates.campaign.privacy.epsilon, published)
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
            ("feature", "class", "mean", "per_liar", "variance", "per_liar"),
            [
                (
                    feature,
                    name,
                    _number(moments["mean"][c]),
                    shown_reach(moments["mean_per_liar"][c]),
                    _number(moments["variance"][c]),
                    shown_reach(moments["variance_per_liar"][c]),
                )
                for feature, moments in told["moments"].items()
                for c, name in enumerate(classes)
            ],
        )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
