"""``ldp-aggregator token``: access to what is not for everybody."""

from __future__ import annotations

import argparse
import sys

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    add_command,
    add_store_options,
    say,
    say_json,
    say_table,
    with_store,
)
from ldp_aggregator.service.tokens import make_token
from ldp_aggregator.store import SCOPES, Store, StoredToken
from ldp_aggregator.store.clock import to_text, utc_now


def add_commands(groups: Groups) -> None:
    text = "create, list, revoke and rotate access tokens"
    commands = groups.add_parser("token", help=text, description=text).add_subparsers(
        title="commands", metavar="COMMAND", required=True
    )
    create = add_command(commands, "create", "make a token and print it; it cannot be shown again", _create)
    add_store_options(create)
    create.add_argument("--scope", required=True, choices=SCOPES, help="what the token opens")
    create.add_argument("--name", help="what to call it (default: its scope and the time)")
    listing = add_command(commands, "list", "list the tokens by name; their text is not kept", _list)
    add_store_options(listing)
    listing.add_argument("--json", action="store_true", help="print JSON")
    revoke = add_command(commands, "revoke", "make a token useless, at once", _revoke)
    add_store_options(revoke)
    revoke.add_argument("name", metavar="NAME", help="the token's name")
    revoke.add_argument(
        "--withdraw", action="store_true", help="take its node's shares out of every campaign, too; they stay otherwise"
    )
    rotate = add_command(
        commands,
        "rotate",
        "make a new token of the same scope in place of the old one; a node keeps its shares",
        _rotate,
    )
    add_store_options(rotate)
    rotate.add_argument("name", metavar="NAME", help="the old token's name")
    rotate.add_argument("--name", dest="new_name", metavar="NEW", help="the new one's (default: scope and time)")


def _create(options: argparse.Namespace) -> None:
    text, token = _make(options.name, options.scope)
    with_store(options, lambda store: store.add_token(token), create=True)
    _show(text, token)


def _list(options: argparse.Namespace) -> None:
    tokens = [
        {
            "name": token.name,
            "scope": token.scope,
            "created": to_text(token.created),
            "revoked": token.revoked and to_text(token.revoked),
        }
        for token in with_store(options, lambda store: store.tokens(), read_only=True)
    ]
    if options.json:
        say_json(tokens)
    else:
        say_table(("name", "scope", "created", "revoked"), [tuple(token.values()) for token in tokens])


def _revoke(options: argparse.Namespace) -> None:
    async def work(store: Store) -> int:
        revoked = await store.revoke_token(options.name)
        withdrawn = await store.withdraw_node(options.name) if options.withdraw else 0
        if not revoked and not withdrawn:
            raise CommandError(_no_token(options.name))
        return withdrawn

    withdrawn = with_store(options, work)
    say(f"token {options.name!r} is revoked" + (f", {withdrawn} shares are withdrawn" if options.withdraw else ""))


def _rotate(options: argparse.Namespace) -> None:
    async def work(store: Store) -> tuple[str, StoredToken]:
        old = [token for token in await store.tokens() if token.name == options.name and token.revoked is None]
        if not old:
            raise CommandError(_no_token(options.name))
        text, token = _make(options.new_name, old[0].scope)
        if not await store.rotate_token(options.name, token):
            raise CommandError(_no_token(options.name))
        return text, token

    _show(*with_store(options, work))


def _make(name: str | None, scope: str) -> tuple[str, StoredToken]:
    now = utc_now()
    try:
        return make_token(name or f"{scope} {to_text(now)}", scope, now)
    except ValueError as error:
        raise CommandError(str(error)) from None


def _show(text: str, token: StoredToken) -> None:
    """The token alone on standard output, so that a script can keep it."""
    sys.stderr.write(f"token {token.name!r}, shown this once:\n")
    say(text)


def _no_token(name: str) -> str:
    return f"no token in use has the name {name!r}; 'ldp-aggregator token list' shows the names"
