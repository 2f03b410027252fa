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
from ldp_aggregator.counting.arrivals import Arrivals
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.estimation.estimates import Estimates, estimate
from ldp_aggregator.estimation.rows import kind_in_words
from ldp_aggregator.estimation.simplex import MODES, NORM_SUB
from ldp_aggregator.learning.published import published_by
from ldp_aggregator.learning.relays import counted_twice, relayed
from ldp_aggregator.service.publishing import counts_to_publish, told_estimates
from ldp_aggregator.store import Store
from protocols import Campaign
from protocols.document.questions import TRIPLE


def add_commands(groups: Groups) -> None:
    parser = add_command(
        groups,
        "estimates",
        "print frequencies, variances and intervals of a campaign",
        _estimates,
        "ID",
        "ID --json",
        "ID --csv --post none",
    )
    add_store_options(parser)
    parser.add_argument("id", metavar="ID", help="the campaign's id")
    parser.add_argument("--post", choices=MODES, default=NORM_SUB, help="post-processing (default: %(default)s)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--csv", action="store_true", help="print CSV")


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
    if options.json:
        say_json(told_estimates(campaign, tally, arrivals, options.post))
        return
    estimates = estimate(campaign, tally, post=options.post)
    if options.csv:
        say(estimates.to_frame().to_csv(index=False).rstrip("\n"))
    else:
        _tell(estimates, tally, arrivals)


def _tell(estimates: Estimates, tally: Tally, arrivals: Arrivals) -> None:
    """Questions, guarantees, the pooled class prior and the moments of Gaussian features, with what one liar moves."""
    cells = estimates.to_frame().fillna({"feature": "", "value": "", "class": ""})
    asked = [estimates.campaign.questions[index] for index in cells["question"]]
    cells["feature"] = [
        f"{question.feature}, {question.other}" if kind == TRIPLE else name
        for question, kind, name in zip(asked, cells["kind"], cells["feature"], strict=True)
    ]
    cells["kind"] = cells["kind"].map(kind_in_words)
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
