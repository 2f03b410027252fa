"""``ldp-aggregator token``, ``log``: access to what is not for everybody, and who did what with it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import timedelta

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_group,
    add_store_options,
    say,
    say_json,
    say_table,
    with_store,
)
from ldp_aggregator.service.acting import local_actor, recorded
from ldp_aggregator.service.tokens import make_token
from ldp_aggregator.store import SCOPES, Store, StoredToken
from ldp_aggregator.store.clock import to_text, utc_now


def add_commands(groups: Groups) -> None:
    text = "create, list, revoke and rotate access tokens"
    commands = add_group(groups, "token", text, "create --scope collector --name reporting", "list --json")
    create = add_command(
        commands,
        "create",
        "make a token and print it; it cannot be shown again",
        _create,
        "--scope collector --name reporting --expires-in 90",
    )
    add_store_options(create)
    create.add_argument("--scope", required=True, choices=SCOPES, help="what the token opens")
    create.add_argument("--name", help="what to call it (default: its scope and the time)")
    create.add_argument("--expires-in", type=_days, metavar="DAYS", help="useless after so many days (default: never)")
    create.add_argument(
        "--campaign",
        action="append",
        dest="campaigns",
        metavar="ID",
        help="opens what is about this campaign only; may be given several times (default: all)",
    )
    listing = add_command(commands, "list", "list the tokens by name; their text is not kept", _list, "", "--json")
    add_store_options(listing)
    listing.add_argument("--json", action="store_true", help="print JSON")
    revoke = add_command(commands, "revoke", "make a token useless, at once", _revoke, "reporting")
    add_store_options(revoke)
    revoke.add_argument("name", metavar="NAME", help="the token's name")
    revoke.add_argument(
        "--withdraw", action="store_true", help="take its node's shares out of every campaign, too; they stay otherwise"
    )
    rotate = add_command(
        commands,
        "rotate",
        "make a new token of the same scope and campaigns in place of the old one; a node keeps its shares",
        _rotate,
        "reporting --name reporting-2 --overlap 7",
    )
    add_store_options(rotate)
    rotate.add_argument("name", metavar="NAME", help="the old token's name")
    rotate.add_argument("--name", dest="new_name", metavar="NEW", help="the new one's (default: scope and time)")
    rotate.add_argument("--expires-in", type=_days, metavar="DAYS", help="when the new one expires (default: never)")
    rotate.add_argument(
        "--overlap",
        type=_days,
        metavar="DAYS",
        help="both open for so long, until whoever holds the old one has the new one (default: the old one ends now)",
    )
    text = "list administrative acts, oldest first: over HTTP by the token's name, on the command line by the user's"
    log = add_command(groups, "log", text, _log, "--last 20", "--campaign ID --json")
    add_store_options(log)
    log.add_argument("--campaign", metavar="ID", help="only what was done to this campaign")
    log.add_argument("--last", type=int, metavar="N", help="only the last so many")
    log.add_argument("--json", action="store_true", help="print JSON")


def _create(options: argparse.Namespace) -> None:
    text, token = _make(options.name, options.scope, options.expires_in, options.campaigns)

    async def work(store: Store) -> None:
        for campaign_id in token.campaigns or ():
            await store.state(campaign_id)
        async with recorded(store, local_actor(), "create token", detail=_told(token)):
            await store.add_token(token)

    with_store(options, work, create=True)
    _show(text, token)


def _list(options: argparse.Namespace) -> None:
    tokens = [
        {
            "name": token.name,
            "scope": token.scope,
            "created": to_text(token.created),
            "expires": token.expires and to_text(token.expires),
            "revoked": token.revoked and to_text(token.revoked),
            "campaigns": token.campaigns and list(token.campaigns),
            "node": token.node if token.scope == "node" else None,
        }
        for token in with_store(options, lambda store: store.tokens(), read_only=True)
    ]
    if options.json:
        say_json(tokens)
        return
    names = ("name", "scope", "created", "expires", "revoked", "campaigns", "node")
    for token in tokens:
        token["campaigns"] = token["campaigns"] and " ".join(token["campaigns"])
    say_table(names, [tuple(token.values()) for token in tokens])


def _revoke(options: argparse.Namespace) -> None:
    async def work(store: Store) -> int:
        node = await _node_of(store, options.name) if options.withdraw else None
        detail = options.name + (", with its shares" if options.withdraw else "")
        async with recorded(store, local_actor(), "revoke token", detail=detail):
            revoked = await store.revoke_token(options.name)
            withdrawn = 0 if node is None else await store.withdraw_node(node)
            if not revoked and not withdrawn:
                raise CommandError(_no_token(options.name))
        return withdrawn

    withdrawn = with_store(options, work)
    say(f"token {options.name!r} is revoked" + (f", {withdrawn} shares are withdrawn" if options.withdraw else ""))


def _rotate(options: argparse.Namespace) -> None:
    async def work(store: Store) -> tuple[str, StoredToken]:
        now = utc_now()
        old = [token for token in await store.tokens() if token.name == options.name and token.is_in_use(now)]
        if not old:
            raise CommandError(_no_token(options.name))
        text, token = _make(options.new_name, old[0].scope, options.expires_in, old[0].campaigns)
        until = None if options.overlap is None else now + options.overlap
        detail = f"{options.name}, in its place {_told(token)}"
        async with recorded(store, local_actor(), "rotate token", detail=detail):
            if not await store.rotate_token(options.name, token, until=until):
                raise CommandError(_no_token(options.name))
        return text, token

    _show(*with_store(options, work))


def _log(options: argparse.Namespace) -> None:
    last = None if options.last is None else max(options.last, 0)
    found = with_store(options, lambda store: store.acts(campaign_id=options.campaign, last=last))
    acts = [act.to_json() for act in found]
    if options.json:
        say_json(acts)
    else:
        names = ("time", "actor", "act", "campaign", "detail", "outcome")
        say_table(names, [[act[name] for name in names] for act in acts])


def _make(
    name: str | None, scope: str, expires_in: timedelta | None, campaigns: Sequence[str] | None
) -> tuple[str, StoredToken]:
    now = utc_now()
    try:
        expires = None if expires_in is None else now + expires_in
        return make_token(name or f"{scope} {to_text(now)}", scope, now, expires=expires, campaigns=campaigns)
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None


async def _node_of(store: Store, name: str) -> str | None:
    return next((token.node for token in await store.tokens() if token.name == name), None)


def _told(token: StoredToken) -> str:
    """Say of a token what the log may have: everything but its secret."""
    told = f"{token.name}, scope {token.scope}"
    told += f", until {to_text(token.expires)}" if token.expires else ""
    return told + (f", for {' '.join(token.campaigns)}" if token.campaigns else "")


def _days(text: str) -> timedelta:
    try:
        days = timedelta(days=float(text))
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("must be a number of days") from None
    if days <= timedelta(0):
        raise argparse.ArgumentTypeError("must be above 0")
    return days


def _show(text: str, token: StoredToken) -> None:
    """The token alone on standard output, so that a script can keep it."""
    sys.stderr.write(f"token {token.name!r}, shown this once:\n")
    say(text)


def _no_token(name: str) -> str:
    return f"no token in use has the name {name!r}; 'ldp-aggregator token list' shows the names"
