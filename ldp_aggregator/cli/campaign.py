"""``ldp-aggregator campaign``: create, list, show, uploads, close, delete, and verify, which needs no store."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldp_aggregator.cli.common import (
    CommandError,
    act_on,
    add_command,
    add_explain,
    add_group,
    add_id,
    check_receivable,
    read_file,
    say_table,
    settings_of,
    tell_guarantees,
    with_recorded,
    with_store,
)
from ldp_aggregator.counting.tally import Tally, devices_counted
from ldp_aggregator.dashboard.campaign_facts import Numbers, facts_in
from ldp_aggregator.estimation.estimators import answers
from ldp_aggregator.guarantees import counted_twice, published_by, published_together, relay_guarantee, relayed
from ldp_aggregator.mechanisms import verify_thoroughly
from ldp_aggregator.service.archives import archive_of, goes_along
from ldp_aggregator.service.drafts import ANOTHER_KIND, check_kind, compile_draft
from ldp_aggregator.service.publishing import look_at_nodes
from ldp_aggregator.service.rights import uploads_act
from ldp_aggregator.service.verdicts import (
    HEALTH,
    LEARNED,
    LIES,
    MODEL,
    Facts,
    decide,
    kept_too_long,
    kept_words,
    model_row,
)
from ldp_aggregator.service.words import many
from ldp_aggregator.store import CampaignState, Store
from ldp_aggregator.store.contract import REFUSED, UNKNOWN, UPLOADING, PublishedModel, to_text, utc_now
from ldp_protocols import Campaign, DraftError, LdpError
from ldp_protocols.command_line import Groups, add_json, at_least, say, say_json, warn
from ldp_protocols.document import authored
from ldp_protocols.document.windows import Windows
from ldp_protocols.verification import NEGLIGIBLE_GAP, Verification

if TYPE_CHECKING:
    from ldp_aggregator.trainers.node_overview import NodeOverview

ANYBODY: Final = "anybody"


def add_commands(groups: Groups) -> None:
    commands = add_group(groups, "campaign", "create draft.toml", "list --json", "close ID")
    create = add_command(
        commands,
        "create",
        _create,
        "draft.toml",
        "draft.json --max-reports 100000 --uploads-need-token relay",
        text="compile a draft, publish it, print the campaign's id",
    )
    create.add_argument("draft", type=Path, metavar="DRAFT", help="the draft, .json or .toml")
    create.add_argument("--max-reports", type=at_least(1), metavar="N", help="close after this many reports")
    create.add_argument("--federated", action="store_true", help="take shares of nodes, and no reports of devices")
    create.add_argument(
        "--uploads-need-token",
        dest="upload_scope",
        choices=tuple(UPLOADING),
        metavar="SCOPE",
        help="take uploads with a token of this scope only: device or relay",
    )
    create.add_argument(
        "--elsewhere",
        action="store_true",
        help="another server holds the key of the draft's gateway, and opens answers",
    )
    add_json(add_command(commands, "list", _list, "", "--json", text="list the campaigns, oldest first"))
    text = "show a campaign: its state and its questions"
    show = add_command(commands, "show", _show, "ID", "ID --json", "ID --document", text=text)
    add_id(show)
    add_json(show)
    add_explain(show)
    show.add_argument("--document", action="store_true", help="print the document exactly as it is published")
    text = "take uploads only with a token of a scope, or from anybody; a running server notices within two seconds"
    uploads = add_command(commands, "uploads", _uploads, "ID relay", "ID anybody", text=text)
    add_id(uploads)
    uploads.add_argument("need", choices=(*UPLOADING, ANYBODY), metavar="NEED", help="device, relay or anybody")
    text = "accept no more reports; --undo takes that back, --seal drops the ids a day later, for good"
    close = add_command(commands, "close", _close, "ID", "ID --undo", "ID --seal", text=text)
    add_id(close)
    instead = close.add_argument_group("of a campaign that is closed").add_mutually_exclusive_group()
    for flag, text, command in (
        ("--undo", "take the closing back", _reopen),
        ("--seal", "drop the ids, for good, a day after it was closed; merge other regions' stores before", _seal),
        ("--seal-now", "drop them even if it was closed less than a day ago", partial(_seal, at_once=True)),
    ):
        instead.add_argument(flag, action="store_const", dest="command", const=command, help=text)
    text = "drop a closed campaign with its reports and models, for good; its id is never used again"
    delete = add_command(commands, "delete", _delete, "ID", text=text)
    add_id(delete)
    delete.add_argument("--leave-archive", action="store_true", help="leave its archived reports where they are")
    verify = add_command(
        commands,
        "verify",
        _verify,
        "document.json",
        "document.json --relay-batch 10000 --json",
        text="recompute the privacy loss of a document; exit code 1 if it breaks its promise",
        store=False,
    )
    verify.add_argument("document", type=Path, metavar="DOC", help="the document, exactly as it is published")
    verify.add_argument("--id", metavar="ID", help="the campaign's id, which must be the document's hash")
    verify.add_argument(
        "--relay-batch",
        type=at_least(1),
        metavar="N",
        help="also print the loss to the server behind a relay that mixes batches of N devices",
    )
    add_json(verify)


def _compile(path: Path) -> Campaign:
    ending, draft = path.suffix.lower(), read_file(path)
    try:
        return compile_draft(draft, toml=ending == ".toml")
    except DraftError as error:
        if ending in (".json", ".toml"):
            raise
        raise CommandError(f"{path} is no draft in JSON ({error}); one in TOML has a name that ends in .toml") from None


def _create(options: argparse.Namespace) -> None:
    campaign = _compile(options.draft)
    check_kind(campaign, federated=options.federated, max_reports=options.max_reports)
    if not options.elsewhere:
        check_receivable(campaign, settings_of(options))

    async def work(store: Store) -> bool:
        await store.create_campaign(
            campaign, max_reports=options.max_reports, federated=options.federated, uploads_need=options.upload_scope
        )
        return (await store.state(campaign.id)).federated

    is_federated = with_recorded(options, work, "create campaign", campaign.id, detail=campaign.title, create=True)
    if options.federated and not is_federated:
        raise CommandError(ANOTHER_KIND)
    say(campaign.id)


def _list(options: argparse.Namespace) -> None:
    states = [
        state.to_json(utc_now()) for state in with_store(options, lambda store: store.campaigns(), read_only=True)
    ]
    if options.json:
        say_json(states)
    else:
        names = ("id", "status", "reports", "shares", "model_version", "title")
        say_table(names, [[state[name] for name in names] for state in states])


def _show(options: argparse.Namespace) -> None:
    document = with_store(options, lambda store: store.document(options.id), read_only=True)
    if options.document:
        say(document.decode())
        return
    campaign = Campaign.parse(document, options.id)

    async def read(store: Store) -> tuple[Tally, CampaignState, PublishedModel | None]:
        # How they came is of all of the tally's.
        return await store.tally(options.id), await store.state(options.id), await store.model(options.id)

    tally, found, published_model = with_store(options, read, read_only=True)
    model = None if published_model is None or found.federated else model_row(published_model)
    state = found.to_json(utc_now())
    if found.federated:
        _show_federated(options, campaign, state)
        return
    published, behind = published_by([(campaign, tally)], [found.arrivals]), relayed(campaign, found.arrivals)
    if options.json:
        values: dict[str, Any] = {"realised_epsilon": campaign.realised_epsilon, "questions": len(campaign.questions)}
        if campaign.windows is not None:
            values["windows"] = campaign.windows.to_json() | {
                "devices": [devices_counted(campaign, one.n.tolist()) for one in tally.windows]
            }
        say_json(state | values | {"published": published.to_json(), "relayed": behind.to_json()})
        return
    _say_values(state)
    overdue = kept_too_long(campaign, found.life, utc_now(), archived=settings_of(options).archive is not None)
    if overdue is not None:
        say(f"kept:    {kept_words(overdue)}")
    if campaign.asks == authored.MODEL and campaign.privacy.release_every is None and campaign.privacy.crowd is None:
        learned = facts_in(Numbers(campaign, tally, tally, found.reports, utc_now()))
        _say_verdicts(Facts(state["status"], found.reports, model=model, **learned))
    say(f"epsilon: {campaign.privacy.epsilon} in total for one device; {campaign.realised_epsilon} realised")
    if campaign.privacy.crowd is not None:
        say(f"crowd:   {campaign.privacy.crowd}; that epsilon is lost only where relay and server work together")
    if campaign.windows is not None:
        _say_windows(campaign.windows, tally)
    twice = counted_twice([found.arrivals])
    tell_guarantees(campaign.privacy.epsilon, published, [behind], twice, explain=options.explain)
    say("")
    say_table(
        ("question", "kind", "feature", "mechanism", "cells", "epsilon", "of devices"),
        [
            (
                q.index,
                q.kind,
                ", ".join(filter(None, (q.feature, q.other))) or None,
                q.mechanism.name,
                q.domain_size,
                q.epsilon,
                f"{share:.1%}",
            )
            for q, share in zip(campaign.questions, answers(campaign, 1), strict=True)
        ],
    )


def _say_verdicts(facts: Facts) -> None:
    """Print the answers at the top of a campaign's page, as far as its counts and its model tell them."""
    for name, rules in (("learned", LEARNED), ("model", MODEL), ("counted", HEALTH), ("lies", LIES)):
        verdict = decide(rules, facts)
        say(f"{name}: {verdict.text}. {verdict.says}".replace("\u00a0", " "))


def _say_windows(windows: Windows, tally: Tally) -> None:
    """Print the windows of a series, and how many devices answered in each so far."""
    say(f"windows: {windows.count} of {windows.each}; a device answers once in its life, in one of them by lot")
    numbers = [devices_counted(tally.campaign, one.n.tolist()) for one in tally.windows]
    mean = sum(numbers) / max(1, sum(number > 0 for number in numbers))
    rows = [
        (windows.told(place), f"{number:,}", f"{number / mean:.0%}") for place, number in enumerate(numbers) if number
    ]
    say_table(("window", "devices", "of the mean"), rows)


def _show_federated(options: argparse.Namespace, campaign: Campaign, state: dict[str, Any]) -> None:
    """Tell who has sent a share, and when, and what all that was sent costs; nodes have no questions."""
    from ldp_aggregator.trainers.federation import default_groups, federated_guarantee  # scikit-learn takes a second.

    shares = with_store(options, lambda store: store.shares(options.id), read_only=True)
    members = () if shares is None else shares.members
    releases = {} if shares is None else dict(shares.releases)
    guarantee = federated_guarantee(campaign.privacy.epsilon, releases)
    seen, unlike = ({}, None) if shares is None else look_at_nodes(campaign, shares)
    received = {one.node: to_text(one.received) for one in members}
    if options.json:
        nodes = [
            {
                "node": node,
                "received": received.get(node),
                **asdict(sent),
                "epsilon": federated_guarantee(campaign.privacy.epsilon, {node: sent}).epsilon,
                **(seen[node].to_json() if node in seen else {}),
            }
            for node, sent in releases.items()
        ]
        values = {"epsilon": campaign.privacy.epsilon, "guarantee": guarantee.to_json(), "nodes": nodes}
        say_json(state | values | ({"warning": unlike} if unlike else {}))
        return
    _say_values(state)
    say(f"epsilon: {campaign.privacy.epsilon} for the rows of each node, a share")
    say(f"guarantee: {guarantee}")
    groups, federation = default_groups(campaign, len(members)), campaign.federation
    say(f"groups: {f'the median over {groups} groups of nodes' if groups > 1 else 'none: all shares are added up'}")
    if federation is not None and federation.replacements is not None:
        say(f"replacements: a node may replace its share {federation.replacements} times, as the document has it")
    classes = campaign.label.classes
    say_table(
        ("node", "received", "replacements", "other rows", "rows", *classes, "distance", "furthest in"),
        [
            (
                *(node, received.get(node, "withdrawn"), sent.replacements, sent.other_rows),
                *(_looked_at(seen[node]) if node in seen else [None] * (3 + len(classes))),
            )
            for node, sent in releases.items()
        ],
    )
    if members:
        say("rows and classes: what a share says, with its noise; distance: of a node's model from the others' median")
        say("where it is furthest, in standard errors. By chance seldom above 4; of several, look at the largest first")
    if unlike:
        warn(f"warning: {unlike}")


def _looked_at(node: NodeOverview) -> tuple[str | None, ...]:
    distance = None if node.distance is None else f"{node.distance:.1f}"
    return f"{node.rows:,}", *(f"{share:.3f}" for share in node.classes), distance, node.furthest


def _say_values(state: dict[str, Any]) -> None:
    for name, value in state.items():
        if value is not None:
            say(f"{name}: {value}")


def _uploads(options: argparse.Namespace) -> None:
    scope = None if options.need == ANYBODY else options.need
    act_on(options, uploads_act(scope), [options.id], lambda store: store.set_uploads_need(options.id, scope))
    say(f"uploads need a token of scope {scope}" if scope else "uploads need no token")


def _close(options: argparse.Namespace) -> None:
    state = act_on(options, "close campaign", [options.id], lambda store: store.close_campaign(options.id))
    say(f"closed with {many(state.shares, 'share') if state.federated else many(state.reports, 'report')}")


def _reopen(options: argparse.Namespace) -> None:
    state = act_on(options, "reopen campaign", [options.id], lambda store: store.reopen_campaign(options.id))
    closes = state.life.closes
    over = "" if closes is None or utc_now() < closes else f"; its document ends it at {to_text(closes)}"
    say(f"reopened with {many(state.reports, 'report')}{over}")


def _seal(options: argparse.Namespace, *, at_once: bool = False) -> None:
    settings = settings_of(options)

    async def seal(store: Store) -> CampaignState:
        archive = await archive_of(store, settings)
        if archive is not None:
            goes_along(store, archive)
        return await store.seal_campaign(options.id, at_once=at_once)

    state = act_on(options, "seal campaign", [options.id], seal)
    say(f"sealed with {many(state.reports, 'report')}; their ids are gone")


def _delete(options: argparse.Namespace) -> None:
    settings = settings_of(options)

    async def delete(store: Store) -> bool:
        archive = None if options.leave_archive else await archive_of(store, settings)
        if archive is not None:
            goes_along(store, archive)
        await store.delete_campaign(options.id)
        return archive is not None

    try:
        along = act_on(options, "delete campaign", [options.id], delete)
    except LdpError as error:
        if options.leave_archive or error.code in {UNKNOWN, *REFUSED}:
            raise
        raise CommandError(f"{error} (--leave-archive deletes the campaign and leaves its archived reports)") from error
    say(f"campaign {options.id} is deleted{', and its archived reports' if along else ''}")


CROWDS: Final = (1000, 10_000, 100_000, 1_000_000)
"""A document does not know how many will answer."""


def _verify(options: argparse.Namespace) -> int:
    verification = verify_thoroughly(Campaign.parse(read_file(options.document), options.id))
    every = verification.campaign.privacy.release_every
    crowds = [published_together([(verification.campaign, n)]) for n in (CROWDS if every is None else (every,))]
    # Only a relay knows how many devices it mixed; with an upload it vouches for the number in ``LDP-Relay-Batch``.
    relayed = relay_guarantee(verification.campaign, options.relay_batch) if options.relay_batch else None
    if options.json:
        values = {"published": [crowd.to_json() for crowd in crowds], "relayed": relayed and relayed.to_json()}
        say_json(verification.to_json() | values)
    else:
        _tell_verification(verification)
        say("\nWho sees only what is published learns of one device, by how many of them answer:")
        say_table(
            ("devices", "epsilon", "delta"),
            [(f"{crowd.reports:,}", f"{crowd.epsilon:.4g}", f"{crowd.delta:g}") for crowd in crowds],
        )
        for condition in crowds[0].conditions:
            say(f"if {condition}")
        if relayed:
            say(f"\nWho runs the server learns of one device: {relayed}")
    return 0 if verification.holds else 1


def _tell_verification(verification: Verification) -> None:
    campaign, values = verification.campaign, verification.to_json()
    say(f"campaign {campaign.id}")
    say(campaign.title)
    say_table(
        ("question", "asks", "mechanism", "cells", "epsilon", "worst loss", "gap", "proof", "holds"),
        [
            (
                row["question"],
                row["feature"] or ("the label" if row["kind"] == "label" else "the model"),
                row["mechanism"],
                row["domain_size"],
                row["epsilon"],
                f"{row['realised_epsilon']:.12g}",
                f"{row['gap']:.2g}",
                row["method"],
                "yes" if row["holds"] else "NO",
            )
            for row in values["questions"]
        ],
    )
    for check in verification.questions:
        if check.gap >= NEGLIGIBLE_GAP:
            say(f"question {check.question.index} stays {float(check.gap):.2g} below its epsilon: {check.note}")
    together = "the sum over what it answers" if campaign.privacy.answers == "all" else "the worst question it can draw"
    say(f"One device loses at most {values['realised_epsilon']:.12g} in all ({together}).")
    if campaign.privacy.crowd is not None:
        say(f"Its crowd reveals less: {campaign.privacy.crowd}.")
    verdict = "is kept" if verification.holds else "IS BROKEN"
    say(f"The promise of epsilon {campaign.privacy.epsilon} {verdict}.")
