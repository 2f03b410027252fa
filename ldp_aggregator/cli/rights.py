"""``ldp-aggregator token`` opens what is not for everybody, ``key`` is the publisher's, or the gateway's."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from ldp_aggregator.cli.common import (
    CommandError,
    add_command,
    add_group,
    read_file,
    say_table,
    with_recorded,
    with_store,
    write_file,
)
from ldp_aggregator.service.drafts import gateway_line
from ldp_aggregator.service.rights import local_actor, make_token, recorded
from ldp_aggregator.service.signing import (
    append_gateway_key,
    described,
    held_gateways,
    make_gateway_key,
    make_key,
    public_key,
    read_seed,
    sign_directory,
)
from ldp_aggregator.store import SCOPES, Store, StoredToken
from ldp_aggregator.store.contract import to_text, utc_now
from ldp_protocols.command_line import Groups, add_json, say, say_json
from ldp_protocols.document.directory import read_directory
from ldp_protocols.document.model import Model


def add_commands(groups: Groups) -> None:
    commands = add_group(groups, "token", "create --scope collector --name reporting", "list --json")
    text = "make a token and print it; it cannot be shown again"
    create = add_command(
        commands,
        "create",
        _create,
        "--scope collector --name reporting --expires-in 90",
        "--in-place-of reporting --name reporting-2 --overlap 7",
        text=text,
    )
    create.add_argument("--scope", choices=SCOPES, help="what the token opens")
    create.add_argument("--name", help="what to call it (default: its scope and the time)")
    create.add_argument("--expires-in", type=_days, metavar="DAYS", help="useless after so many days (default: never)")
    create.add_argument(
        "--campaign",
        action="append",
        dest="campaigns",
        metavar="ID",
        help="for this campaign only; may be given several times (default: all)",
    )
    create.add_argument(
        "--in-place-of", metavar="OLD", help="the token to replace; the new one takes its scope, campaigns and shares"
    )
    create.add_argument(
        "--overlap",
        type=_days,
        metavar="DAYS",
        help="both tokens work for so long, while their holders change over (default: the old one ends now)",
    )
    add_json(add_command(commands, "list", _list, "", "--json", text="list the tokens by name; their text is not kept"))
    revoke = add_command(commands, "revoke", _revoke, "reporting", text="make a token useless, at once")
    revoke.add_argument("name", metavar="NAME", help="the token's name")
    revoke.add_argument(
        "--withdraw", action="store_true", help="take its node's shares out of every campaign, too; they stay otherwise"
    )
    keys = add_group(groups, "key", "create publisher.key")
    text = "make a key in a new file, or leave an existing one; print the public key for the app"
    examples = ("publisher.key", "gateway.key --gateway", "gateway.key --gateway --append")
    create_key = add_command(keys, "create", _create_key, *examples, text=text, store=False)
    create_key.add_argument("file", type=Path, metavar="FILE", help="the key; its owner alone can read it")
    create_key.add_argument(
        "--gateway", action="store_true", help="a key to which devices seal uploads; prints the line for a draft's head"
    )
    create_key.add_argument("--append", action="store_true", help="with --gateway: add another key to the file")
    text = "sign which campaigns are open for the app, and their models"
    example = "publisher.key --version 7 --expires-in 60 --campaign ID=model.json --output directory.json"
    sign = add_command(keys, "sign", _sign_directory, example, text=text, store=False)
    sign.add_argument("file", type=Path, metavar="FILE", help="the key")
    sign.add_argument("--version", type=int, required=True, metavar="N", help="above every one signed before")
    sign.add_argument("--expires-in", type=_days, required=True, metavar="DAYS", help="devices stop accepting it then")
    sign.add_argument(
        "--campaign",
        action="append",
        default=[],
        dest="campaigns",
        metavar="ID[=MODEL.json]",
        help="a campaign that is open, and the file of its model once there is one; may be given several times",
    )
    sign.add_argument("--output", type=Path, required=True, metavar="FILE", help="the directory to publish")
    text = "put a signed directory into the store, for devices to fetch"
    publish = add_command(keys, "publish", _publish_directory, "KEY directory.json", text=text)
    publish.add_argument("key", metavar="KEY", help="the public key")
    publish.add_argument("directory", type=Path, metavar="FILE", help="what was signed")


def _create(options: argparse.Namespace) -> None:
    if options.in_place_of is not None:
        if options.scope or options.campaigns:
            raise argparse.ArgumentTypeError(
                "--in-place-of takes scope and campaigns of the old token: leave --scope and --campaign out"
            )
        _replace(options)
        return
    if options.scope is None:
        raise argparse.ArgumentTypeError(f"--scope says what the token opens: {', '.join(SCOPES)}")
    if options.overlap is not None:
        raise argparse.ArgumentTypeError("--overlap is about an old token: name it with --in-place-of")
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
        named = [token for token in await store.tokens() if token.name == options.name]
        detail = options.name + (", with its shares" if options.withdraw else "")
        async with recorded(store, local_actor(), "revoke token", detail=detail):
            revoked = await store.revoke_token(options.name)
            withdrawn = await store.withdraw_node(named[0].node) if named and options.withdraw else 0
            if not revoked and not withdrawn:
                raise CommandError(_no_token(options.name))
        return withdrawn

    withdrawn = with_store(options, work)
    say(f"token {options.name!r} is revoked" + (f", {withdrawn} shares are withdrawn" if options.withdraw else ""))


def _replace(options: argparse.Namespace) -> None:
    async def work(store: Store) -> tuple[str, StoredToken]:
        now = utc_now()
        old = [token for token in await store.tokens() if token.name == options.in_place_of and token.is_in_use(now)]
        if not old:
            raise CommandError(_no_token(options.in_place_of))
        text, token = _make(options.name, old[0].scope, options.expires_in, old[0].campaigns)
        until = None if options.overlap is None else now + options.overlap
        detail = f"{options.in_place_of}, in its place {_told(token)}"
        async with recorded(store, local_actor(), "rotate token", detail=detail):
            if not await store.rotate_token(options.in_place_of, token, until=until):
                raise CommandError(_no_token(options.in_place_of))
        return text, token

    _show(*with_store(options, work))


def _make(
    name: str | None, scope: str, expires_in: timedelta | None, campaigns: Sequence[str] | None
) -> tuple[str, StoredToken]:
    now = utc_now()
    try:
        expires = None if expires_in is None else now + expires_in
        return make_token(name or f"{scope} {to_text(now)}", scope, now, expires=expires, campaigns=campaigns)
    except (ValueError, OverflowError) as error:
        raise CommandError(str(error)) from None


def _told(token: StoredToken) -> str:
    """Say of a token what the log may have: everything but its secret."""
    words = f"{token.name}, scope {token.scope}"
    words += f", until {to_text(token.expires)}" if token.expires else ""
    return words + (f", for {' '.join(token.campaigns)}" if token.campaigns else "")


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


_ID_CHARACTERS = 43


def _create_key(options: argparse.Namespace) -> None:
    """The public side alone on standard output, so that a script can keep it: a gateway's as a draft has it."""
    if options.append and not options.gateway:
        raise argparse.ArgumentTypeError("--append goes with --gateway; a publisher's file has one key")
    try:
        if options.append and options.file.exists():
            public = gateway_line(append_gateway_key(options.file))
            sys.stderr.write("back the file up, and send a running server SIGHUP: it opens with this key then\n")
        else:
            public = gateway_line(make_gateway_key(options.file)) if options.gateway else make_key(options.file)
    except FileExistsError:
        if options.gateway:
            public = gateway_line(held_gateways(options.file)[-1])
        else:
            public = public_key(read_seed(options.file))
        sys.stderr.write(f"{options.file} is there, and stays as it is; its public key:\n")
    say(public)


def _sign_directory(options: argparse.Namespace) -> None:
    campaigns = dict(_campaign_and_model(text) for text in options.campaigns)
    if len(campaigns) != len(options.campaigns):
        raise argparse.ArgumentTypeError("a campaign is named twice")
    seed = read_seed(options.file)
    document = sign_directory(seed, options.version, utc_now() + options.expires_in, campaigns)
    write_file(options.output, document.decode())
    say(f"signed with {public_key(seed)}: {described(read_directory(document, public_key(seed)))}")


def _publish_directory(options: argparse.Namespace) -> None:
    document = read_file(options.directory)
    directory = read_directory(document, options.key)
    with_recorded(
        options,
        lambda store: store.put_directory(options.key, directory.version, document),
        "publish directory",
        detail=f"{options.key} {described(directory)}",
    )
    say(f"published: {described(directory)}")


def _campaign_and_model(text: str) -> tuple[str, str | None]:
    """A campaign's id and its model's SHA-256, the hash of the very bytes that devices are given."""
    campaign_id, given, path = text.partition("=")
    if len(campaign_id) != _ID_CHARACTERS:
        raise argparse.ArgumentTypeError(f"{campaign_id!r} is no campaign's id, which has {_ID_CHARACTERS} characters")
    if not given:
        return campaign_id, None
    document = read_file(Path(path))
    Model.from_json(document)
    return campaign_id, hashlib.sha256(document).hexdigest()
