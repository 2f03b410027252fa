"""``ldp-aggregator key`` and ``sign``: offline, with no store; and ``directory``, which publishes what was signed."""

from __future__ import annotations

import argparse
import hashlib
from datetime import timedelta
from pathlib import Path

from ldp_aggregator.cli.common import (
    CommandError,
    Groups,
    UsageError,
    add_command,
    add_group,
    add_store_options,
    read_file,
    say,
    with_recorded,
    with_store,
    write_file,
)
from ldp_aggregator.service.signing import described, make_key, public_key, read_seed, sign_directory
from ldp_aggregator.store.clock import utc_now
from protocols.document.directory import read_directory
from protocols.model import Model

_ID_CHARACTERS = 43


def add_commands(groups: Groups) -> None:
    text = "a publisher's key, which belongs on a machine of its own; sign with it; publish what was signed"
    commands = add_group(groups, "key", text, "create publisher.key", "show publisher.key")
    text = "make a key in a new file, print the public key for the app"
    create = add_command(commands, "create", text, _create, "publisher.key")
    create.add_argument("file", type=Path, metavar="FILE", help="the new file; its owner alone can read it")
    show = add_command(commands, "show", "print the public key of a key file", _show, "publisher.key")
    show.add_argument("file", type=Path, metavar="FILE", help="the key")
    text = "sign which campaigns are open for the app, and their models"
    example = "publisher.key --version 7 --expires-in 60 --campaign ID=model.json --output directory.json"
    sign = add_command(commands, "sign", text, _sign, example)
    sign.add_argument("file", type=Path, metavar="FILE", help="the key")
    sign.add_argument("--version", type=int, required=True, metavar="N", help="above every one signed before")
    sign.add_argument("--expires-in", type=float, required=True, metavar="DAYS", help="devices stop believing it then")
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
    publish = add_command(commands, "publish", text, _publish, "KEY directory.json")
    add_store_options(publish)
    publish.add_argument("key", metavar="KEY", help="the public key")
    publish.add_argument("directory", type=Path, metavar="FILE", help="what was signed")
    published = add_command(commands, "published", "show the directory that devices are given", _published, "KEY")
    add_store_options(published)
    published.add_argument("key", metavar="KEY", help="the public key")


def _create(options: argparse.Namespace) -> None:
    say(make_key(options.file))


def _show(options: argparse.Namespace) -> None:
    say(public_key(read_seed(options.file)))


def _sign(options: argparse.Namespace) -> None:
    campaigns = dict(_named(text) for text in options.campaigns)
    if len(campaigns) != len(options.campaigns):
        raise UsageError("a campaign is named twice")
    try:
        expires = utc_now() + timedelta(days=options.expires_in)
    except (OverflowError, ValueError):
        raise UsageError("--expires-in must be a number of days") from None
    if expires <= utc_now():
        raise UsageError("--expires-in must be above 0")
    seed = read_seed(options.file)
    document = sign_directory(seed, options.version, expires, campaigns)
    write_file(options.output, document.decode())
    say(f"signed with {public_key(seed)}: {described(read_directory(document, public_key(seed)))}")


def _publish(options: argparse.Namespace) -> None:
    document = read_file(options.directory)
    directory = read_directory(document, options.key)
    with_recorded(
        options,
        lambda store: store.put_directory(options.key, directory.version, document),
        "publish directory",
        detail=f"{options.key} {described(directory)}",
    )
    say(f"published: {described(directory)}")


def _published(options: argparse.Namespace) -> None:
    document = with_store(options, lambda store: store.directory(options.key))
    if document is None:
        raise CommandError(f"nothing that {options.key} has signed is in this store")
    say(described(read_directory(document, options.key)))


def _named(text: str) -> tuple[str, str | None]:
    """A campaign's id and its model's SHA-256, the hash of the very bytes that devices are given."""
    campaign_id, given, path = text.partition("=")
    if len(campaign_id) != _ID_CHARACTERS:
        raise UsageError(f"{campaign_id!r} is no campaign's id, which has {_ID_CHARACTERS} characters")
    if not given:
        return campaign_id, None
    document = read_file(Path(path))
    Model.from_json(document)
    return campaign_id, hashlib.sha256(document).hexdigest()
