"""The common part of the commands: where the store is, how to open it, how to print."""

from __future__ import annotations

import argparse
import asyncio
import codecs
import math
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

from ldp_aggregator.guarantees import PublishedGuarantee, Relayed
from ldp_aggregator.service.rights import local_actor, recorded
from ldp_aggregator.service.settings import Settings, read_settings
from ldp_aggregator.service.signing import held_gateways
from ldp_aggregator.service.words import even_odds, many, short_id
from ldp_aggregator.store import Store, StoreError, open_store
from ldp_protocols import Campaign, DraftError
from ldp_protocols.command_line import Groups, say

if TYPE_CHECKING:
    from ldp_aggregator.trainers.reading import Reading

Result = TypeVar("Result")

ID_LETTERS: Final = 43
"""Letters of a whole id: 32 bytes in base64url."""

_NOTE: Final = "store: --config FILE, --data DIR or --database URL, anywhere on the line; see ldp-aggregator --help"


class CommandError(Exception):
    """A failure to tell in one line."""


ABOUT: Final = {
    "quickstart": "ask what is to be learned, make a campaign and a token for the dashboard, and serve",
    "serve": "serve campaigns and count reports until SIGTERM or Ctrl-C",
    "campaign": "create, list, show, verify, close and delete campaigns, and ask their uploads for tokens",
    "estimates": "print frequencies, variances and intervals of a campaign",
    "train": "train a model and publish it for the campaign's devices",
    "evaluate": "draft a round of the same study in which other devices measure how good a model is",
    "fit": "learn a private model from a table",
    "node": "take part in a federated campaign with a table of one's own",
    "project": "fit the projection (PCA, DCA) that a draft ships, on a PUBLIC table or on a private round",
    "token": "create, list, revoke and replace access tokens",
    "key": "make a publisher's key, on a machine of its own; sign with it; publish the signed directory",
    "status": "one screen of the server that runs on this store, or its log; exit code 1 if something is wrong",
    "fsck": "check that ids, counts and documents of a store agree, or a tally with an archive; exit code 1 if not",
    "merge": "add two embedded stores up into a new one, and say how many reports both had",
    "backup": "copy the embedded store as it is at one moment; the server may run meanwhile",
    "restore": "make a store of a backup; every token is revoked, and every share of a node dropped",
    "audit": "find a lower bound of a client's true privacy loss in its uploads; exit code 1 if it is above epsilon",
}
"""Each command's purpose, as ``--help`` lists them: to list them imports none."""


def add_command(
    groups: Groups,
    name: str,
    command: Callable[[argparse.Namespace], int | None],
    *examples: str,
    text: str = "",
    store: bool = True,
    note: str = _NOTE,
) -> Any:
    """A command under ``groups`` with help ``text`` (or :data:`ABOUT`'s) and ``examples`` of what may follow its name.
    One that opens no ``store`` refuses the options that say where it is, and has no ``note`` about them.
    """
    text = text or ABOUT[name]
    parser = groups.add_parser(name, help=text, description=text, examples=examples, note=note if store else "")
    parser.set_defaults(command=command, opens_store=store, mistake=parser.error)
    return parser


def add_group(groups: Groups, name: str, *examples: str) -> Groups:
    """A command that has commands of its own under it."""
    parser = groups.add_parser(name, help=ABOUT[name], description=ABOUT[name], examples=examples)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def add_store_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say where the store is; the configuration file and the environment say it too."""
    group = parser.add_argument_group("store of every command that opens one", "before the command or after it")
    for flag, kind, metavar, text in (
        ("--config", Path, "FILE", "TOML file of settings"),
        ("--data", Path, "DIR", "folder of the embedded store"),
        ("--database", _address, "URL", "postgresql:// address of the store, without password"),
    ):
        group.add_argument(flag, type=kind, metavar=metavar, help=text, default=argparse.SUPPRESS)


def add_id(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a campaign."""
    parser.add_argument("id", metavar="ID", help="the campaign's id, or its first letters")


_NAMING: Final = ("id", "ids", "evaluation", "campaign", "campaigns", "round")
"""The options that name campaigns, in whatever command."""
LEAST_LETTERS: Final = 4
"""Letters of an id that may stand for it."""


def complete_ids(options: argparse.Namespace) -> None:
    """Put the whole id where a command line has the first letters of one. Raises CommandError where several begin so;
    one that no campaign of this store has stays as it is, and the command says so.
    """
    given = {name: value for name in _NAMING if (value := getattr(options, name, None))}
    if all(
        len(one) >= ID_LETTERS for value in given.values() for one in ([value] if isinstance(value, str) else value)
    ):
        return
    try:
        states = with_store(options, lambda store: store.campaigns(), read_only=True)
    except (StoreError, OSError):
        return  # The command itself says what is wrong with the store.
    titles = {state.id: state.title for state in states}
    for name, value in given.items():
        whole = _whole(value, titles) if isinstance(value, str) else [_whole(one, titles) for one in value]
        setattr(options, name, whole)


def _whole(begin: str, titles: Mapping[str, str]) -> str:
    found = [name for name in titles if len(begin) >= LEAST_LETTERS and name.startswith(begin)]
    if len(found) > 1:
        named = "; ".join(f"{name} ({titles[name]})" for name in found)
        raise CommandError(f"{len(found)} campaigns have an id that begins with {begin}: {named}")
    return found[0] if found else begin


def add_explain(parser: argparse.ArgumentParser) -> None:
    """Add the flag of :func:`tell_guarantees`."""
    parser.add_argument("--explain", action="store_true", help="print every condition of the guarantee")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """The options that say how a CSV file is written, where the file does not; see :func:`reading_of`."""
    how = parser.add_argument_group("how a CSV file is written, where that cannot be seen")
    text = 'its first line is a row: columns are called "column 1", "column 2"'
    how.add_argument("--no-header", dest="header", action="store_false", help=text)
    how.add_argument("--encoding", type=_encoding, metavar="NAME", help="such as latin-1 (default: UTF-8, or UTF-16)")


def reading_of(options: argparse.Namespace) -> Reading:
    """The reading that the options of :func:`add_reading` ask for."""
    from ldp_aggregator.trainers.reading import Reading  # scikit-learn takes a second to import.

    return Reading(options.header, options.encoding)


def _encoding(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise argparse.ArgumentTypeError(f"{name!r} is no encoding; such as latin-1, cp1251, utf-16") from None


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings: flags over environment over file."""
    flags = {name: getattr(options, name, None) for name in Settings.model_fields}
    return read_settings(getattr(options, "config", None), flags)


def check_receivable(campaign: Campaign, settings: Settings) -> None:
    """Refuse to publish what no server with these settings could open the answers to. Raises DraftError, and
    DocumentError where the file of keys cannot be read.
    """
    from ldp_aggregator.service.drafts import check_gateway

    if campaign.gateway is not None and not settings.gateway_elsewhere:
        check_gateway(campaign, held_gateways(settings.gateway_key))


def with_store(
    options: argparse.Namespace,
    work: Callable[[Store], Awaitable[Result]],
    *,
    create: bool = False,
    read_only: bool = False,
) -> Result:
    """Run ``work`` on the store the options name, served or not; ``read_only`` never changes it: it may be a backup."""

    async def run() -> Result:
        settings = settings_of(options)
        store = await open_store(settings.data, settings.database_address, create=create, read_only=read_only)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def with_recorded(
    options: argparse.Namespace,
    work: Callable[[Store], Awaitable[Result]],
    act: str,
    campaign_id: str | None = None,
    *,
    detail: str = "",
    create: bool = False,
) -> Result:
    """:func:`with_store` for an administrative act: it is written down first, and then how it ended."""

    async def recorded_work(store: Store) -> Result:
        async with recorded(store, local_actor(), act, campaign_id, detail):
            return await work(store)

    return with_store(options, recorded_work, create=create)


def act_on(
    options: argparse.Namespace, act: str, campaign_ids: Iterable[str], work: Callable[[Store], Awaitable[Result]]
) -> Result:
    """:func:`with_recorded` for an act on campaigns: it stands in the log of each that exists, and in no other."""

    async def acted(store: Store) -> Result:
        async with AsyncExitStack() as acts:
            for campaign_id in dict.fromkeys(campaign_ids):
                await store.state(campaign_id)
                await acts.enter_async_context(recorded(store, local_actor(), act, campaign_id))
            return await work(store)

    return with_store(options, acted)


def say_table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Columns as wide as what stands in them."""
    lines = [[str(head) for head in heads], *([("" if cell is None else str(cell)) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def shown_reach(reach: float | None) -> str:
    """Say how far lies can move a number; "unbounded" where nothing bounds it."""
    return "unbounded" if reach is None or math.isinf(reach) else f"{reach:.3g}"


def write_file(path: Path, text: str) -> None:
    """Write the whole file or leave what was there: a new file takes its place only when it is complete."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}") from None


def read_draft(path: Path) -> dict[str, Any]:
    """A draft as its author wrote it, in TOML or JSON. Raises CommandError, which names the file."""
    from ldp_aggregator.service.drafts import parse_draft

    try:
        return parse_draft(read_file(path), toml=path.suffix.lower() == ".toml")
    except DraftError as error:
        raise CommandError(f"{path}: {error}") from None


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}") from None


def tell_guarantees(
    local: float,
    published: PublishedGuarantee,
    behind: Sequence[Relayed] = (),
    twice: Mapping[str, int] | None = None,
    *,
    explain: bool = False,
) -> None:
    """Say how sure anybody can become of a person, and by which epsilon; with ``explain`` under which conditions.

    The local guarantee has none; beside it stand the ones of what is published and behind relays.
    """
    sure = f"at most {even_odds(local)} sure"
    say(f"\nWho intercepts an answer is {sure} of it, where 50 % is a coin: epsilon = {local:g}.")
    say(f"Readers of the results are at most {_sure(published)}.")
    for one in behind:
        of = f" of campaign {short_id(one.campaign)}" if len(behind) > 1 else ""
        bound = f"{sure}: {one.why_not}" if one.guarantee is None else f"at most {_sure(one.guarantee)}"
        say(f"Who runs the server is, of one device{of}, {bound}.")
    if twice and twice["at_most"]:
        repeated = many(twice["known"], "report")
        say(f"Counted twice, by stores that were merged: {repeated}, {twice['at_most']:,} at most.")
    if not explain:
        say("These have conditions; --explain tells them.")
        return
    for what, guarantee in (("results", published), *(("server", one.guarantee) for one in behind)):
        if guarantee is not None:
            say(f"  {what}: {guarantee.relation}")
            for condition in guarantee.conditions:
                say(f"  {what}: if {condition}")


def _sure(guarantee: PublishedGuarantee) -> str:
    loss = f"epsilon = {guarantee.epsilon:.4g}" + (f", delta = {guarantee.delta:g}" if guarantee.delta else "")
    return f"{even_odds(guarantee.epsilon or 0.0)} sure: {loss}, one of {many(guarantee.reports, 'device')}"


def _address(text: str) -> str:
    """Other users of a machine read command lines; a password belongs into the environment or the file."""
    if urlsplit(text).password:
        raise argparse.ArgumentTypeError(
            "no password here: set LDP_AGGREGATOR_DATABASE, or database in the configuration file, or PGPASSFILE"
        )
    return text
