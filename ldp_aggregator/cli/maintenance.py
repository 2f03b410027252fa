"""``ldp-aggregator status``, one screen of a running server: whether it is well, campaigns, rates, disk, its log; and
``backup``, ``restore``, ``merge``, ``fsck``: copies of a store, sums, what is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from ldp_aggregator.cli.common import CommandError, add_command, say_table, settings_of, with_recorded, with_store
from ldp_aggregator.service.rights import BACKED_UP, local_actor, recorded
from ldp_aggregator.service.server_health import RUNBOOK, ServerFacts, findings
from ldp_aggregator.service.settings import Settings
from ldp_aggregator.service.words import many, short_id, size
from ldp_aggregator.store import Act, Damage, SqliteStore, Store, StoreError, check_driver, open_store
from ldp_aggregator.store.backup import combine_stores, copy_store, restore_store
from ldp_aggregator.store.contract import CONFLICTING, CampaignState, Restored, utc_now
from ldp_aggregator.store.sqlite.database import TakenOut
from ldp_aggregator.store.sqlite.upgrade import take_back
from ldp_protocols.command_line import Groups, add_json, say, say_json
from ldp_protocols.errors import LdpError

if TYPE_CHECKING:
    from ldp_aggregator.archive.recount import Recount

SECONDS: Final = 5.0
"""To wait for an answer."""
BETWEEN: Final = 2.0
"""Seconds between the two looks that make a rate."""
MOST_CAMPAIGNS: Final = 15
"""On one screen; those with most reports."""


class Scrape:
    """Metrics at a moment; none before anything has answered."""

    def __init__(self, exposition: str = "") -> None:
        self.moment = time.monotonic()
        families = text_string_to_metric_families(exposition)
        self.samples = [sample for family in families for sample in family.samples]

    def values(self, name: str, **labels: str) -> list[float]:
        """The values of a metric, where its labels begin like this."""
        return [
            sample.value
            for sample in self.samples
            if sample.name == name and all(sample.labels[label].startswith(text) for label, text in labels.items())
        ]

    def facts(self, titles: Mapping[str, str]) -> ServerFacts:
        """The facts of a server, with the titles of its campaigns by their ids."""
        values = {(one.name, next(iter(one.labels.values()), "")): one.value for one in self.samples}
        return ServerFacts.of(values, time.time(), titles=titles)


def _status(options: argparse.Namespace) -> int:
    if options.log:
        _tell_acts(options)
        return 0
    if options.campaign or options.last is not None or options.json:
        raise argparse.ArgumentTypeError("--campaign, --last and --json are of --log")
    settings = settings_of(options)
    url = options.operations or "http://" + settings.listen_operations.replace("0.0.0.0:", "127.0.0.1:")
    if urlsplit(url).scheme not in ("http", "https"):
        raise argparse.ArgumentTypeError(f"--operations: {url!r} is no http:// address")
    wrong: list[str] = []
    first, last = Scrape(), Scrape()
    try:
        wrong += _not_ready(url)
        first = _look(url)
        time.sleep(BETWEEN)
        last = _look(url)
    except (OSError, ValueError) as error:
        wrong.append(f"nothing answers at {url}: {getattr(error, 'reason', error)}")
    campaigns: list[CampaignState] = []
    here, another = "", []
    try:
        campaigns, here = with_store(options, _campaigns_and_id, read_only=True)
        another = _another_store(last, here)
        wrong += another
    except StoreError as error:
        wrong.append(str(error))
    if not another:
        wrong += map(str, findings(last.facts({state.id: state.title for state in campaigns})))
    say(f"{url}: {'not healthy' if wrong else 'healthy'}")
    for reason in wrong:
        say(f"  {reason}")
    # Of another store's server nothing is told: its numbers beside these campaigns would be taken for theirs.
    lines = () if another else _lines(first, last)
    for line in (*lines, *([f"store     {here}"] if here else []), *_campaign_lines(campaigns)):
        say(line)
    return 1 if wrong else 0


async def _campaigns_and_id(store: Store) -> tuple[list[CampaignState], str]:
    return await store.campaigns(), (await store.origin()).generation


def _another_store(seen: Scrape, here: str) -> list[str]:
    """Say that what answers serves another store than the one whose campaigns are listed."""
    served = {sample.labels["store"] for sample in seen.samples if sample.name == "ldp_store_info"}
    if not served or here in served:
        return []
    remedy = "--config, --data or --database names this one, --operations asks that server"
    return [f"what answers serves the store {', '.join(sorted(served))}, and the campaigns are of {here}: {remedy}"]


def _not_ready(url: str) -> list[str]:
    try:
        with urlopen(url + "/readyz", timeout=SECONDS):  # noqa: S310 - http(s) alone, see above
            return []
    except HTTPError as refused:
        with refused:
            try:
                problem = json.loads(refused.read())
            except ValueError:
                problem = {}
        code = problem.get("code", str(refused.code))
        return [f"not ready: {code} ({problem.get('title', 'no aggregator')}); docs/runbook.md#{code}"]
    except URLError as error:
        raise OSError(str(error.reason)) from None


def _look(url: str) -> Scrape:
    with urlopen(url + "/metrics", timeout=SECONDS) as answer:  # noqa: S310 - http(s) alone, see above
        return Scrape(answer.read().decode())


def _lines(first: Scrape, last: Scrape) -> Iterator[str]:
    if not last.samples:
        return
    seconds = max(last.moment - first.moment, 0.001)

    def total(name: str, **labels: str) -> float:
        return sum(last.values(name, **labels))

    def rate(name: str, **labels: str) -> str:
        return f"{(total(name, **labels) - sum(first.values(name, **labels))) / seconds:,.1f}"

    taken = total("ldp_reports_total", outcome="counted")
    twice, conflicts = (total("ldp_reports_total", outcome=one) for one in ("duplicate", CONFLICTING))
    refused = total("ldp_reports_total") - taken - twice - conflicts
    others = (
        f"{twice:,.0f} sent twice (harmless)" if twice else "",
        f"{conflicts:,.0f} contradictory (see {RUNBOOK}conflictingreports)" if conflicts else "",
        f"{refused:,.0f} refused" if refused else "",
    )
    numbers = ", ".join(filter(None, (f"{taken:,.0f} counted", *others)))
    yield f"reports   {numbers} since the start; {rate('ldp_reports_total', outcome='counted')} a second now"
    failed = total("ldp_requests_total", status="5")
    yield f"requests  {rate('ldp_requests_total')} a second now; {failed:,.0f} answered with 5xx since the start"
    waiting = f"{total('ldp_queue_age_seconds'):.1f} s, {size(total('ldp_queue_bytes'))}"
    yield f"queue     {waiting}; connections {total('ldp_connections'):,.0f}"
    for free in last.values("ldp_free_bytes"):
        yield f"disk      {size(total('ldp_store_bytes'))} of the store, {size(free)} free"
    backups = last.values("ldp_last_backup_timestamp_seconds")
    yield f"backup    {_ago(max(backups)) if backups else 'none is in the log'}"


def _campaign_lines(campaigns: list[CampaignState]) -> Iterator[str]:
    now = utc_now()
    open_ones = sum(state.status(now) == "open" for state in campaigns)
    yield f"campaigns {open_ones} open of {len(campaigns)}"
    for state in sorted(campaigns, key=lambda one: -one.reports)[:MOST_CAMPAIGNS]:
        yield f"  {short_id(state.id)}  {state.status(now):8s} {state.reports:>13,d}  {state.title[:60]}"


def _ago(moment: float) -> str:
    hours = many(round((time.time() - moment) / 3600), "hour")
    return f"{datetime.fromtimestamp(moment, timezone.utc):%Y-%m-%d %H:%M} UTC, {hours} ago"


def _tell_acts(options: argparse.Namespace) -> None:
    last = None if options.last is None else max(options.last, 0)
    found = with_store(options, lambda store: store.acts(campaign_id=options.campaign, last=last))
    acts = [act.to_json() for act in found]
    if options.json:
        say_json(acts)
    else:
        names = ("time", "actor", "act", "campaign", "detail", "outcome")
        say_table(names, [[act[name] for name in names] for act in acts])


def add_commands(groups: Groups) -> None:
    status = add_command(groups, "status", _status, "--data /var/lib/ldp-aggregator", "--log --campaign ID --json")
    status.add_argument("--operations", metavar="URL", help="its operations listener, if not at the setting's address")
    log = status.add_argument_group(
        "what was done", "over HTTP under the token's name, on the command line under the user's"
    )
    log.add_argument("--log", action="store_true", help="list administrative acts instead, oldest first")
    log.add_argument("--campaign", metavar="ID", help="only acts on this campaign")
    log.add_argument("--last", type=int, metavar="N", help="only the last so many")
    add_json(log)
    fsck = add_command(groups, "fsck", _fsck, "", "--take-out-damaged", "--archive s3://archive/reports ID")
    fsck.add_argument(
        "--take-out-damaged",
        action="store_true",
        help="first take damaged runs of ids out, keep their sound pages, and say how many reports may now "
        "count twice; a server may run meanwhile",
    )
    archive = fsck.add_argument_group("instead: count the archived reports of a campaign again")
    archive.add_argument("campaign", nargs="?", metavar="ID", help="the campaign whose tally must be the same")
    archive.add_argument(
        "--archive", metavar="ARCHIVE", help="folder or address (s3://...) that the server archives to"
    )
    archive.add_argument("--engine", choices=("processes", "dask"), help="what counts (default: processes)")
    archive.add_argument(
        "--count-only", action="store_true", help="compare with no store: several servers write to this archive"
    )
    archive.add_argument("--json", action="store_true", help="print JSON: reports, duplicates, conflicts, all counts")
    merge = add_command(groups, "merge", _merge, "north south --output both", store=False)
    merge.add_argument("first", type=Path, metavar="A", help="a data folder")
    merge.add_argument("second", type=Path, metavar="B", help="another one")
    merge.add_argument("-o", "--output", type=Path, metavar="C", required=True, help="the new data folder")
    merge.add_argument(
        "--assume-disjoint",
        action="store_true",
        help="merge sealed campaigns, too: you vouch that no report is in both stores, since their ids are gone",
    )
    backup = add_command(groups, "backup", _backup, "/backups/monday", "--made-elsewhere")
    backup.add_argument("output", type=Path, nargs="?", metavar="FOLDER", help="the new data folder")
    backup.add_argument(
        "--made-elsewhere",
        action="store_true",
        help="copy nothing: record that PostgreSQL's tools have just made a backup, for the alert NoBackup",
    )
    examples = ("/backups/monday --data /var/lib/ldp-aggregator", "--in-place --database postgresql://localhost/ldp")
    restore = add_command(groups, "restore", _restore, *examples)
    restore.add_argument(
        "backup", type=Path, nargs="?", metavar="FOLDER", help="what 'backup' wrote; --data is the new one"
    )
    restore.add_argument(
        "--in-place",
        action="store_true",
        help="for PostgreSQL: treat the database itself, after pg_restore and before a server runs on it",
    )
    restore.add_argument(
        "--before-upgrade",
        action="store_true",
        help="undo the upgrade to this version; refused once something was written",
    )
    restore.add_argument(
        "--keep-shares",
        action="store_true",
        help="keep the shares of nodes: you know that none was withdrawn since the backup",
    )


def _fsck(options: argparse.Namespace) -> int:
    if options.archive is not None:
        return _recount(options)
    if options.campaign or options.engine or options.count_only or options.json:
        raise argparse.ArgumentTypeError("ID, --engine, --count-only and --json go with --archive")

    async def work(store: Store) -> tuple[int, list[Damage], str]:
        return len(await store.campaigns()), await store.check(), (await store.origin()).generation

    if options.take_out_damaged:
        _take_out(options)
    campaigns, findings, generation = with_store(options, work, read_only=True)
    for finding in findings:
        say(str(finding))
    if not findings:
        say(f"{many(campaigns, 'campaign')} checked: nothing is wrong.")
        say(f"This store is {generation}.")
    return 1 if findings else 0


def _take_out(options: argparse.Namespace) -> None:
    async def work(store: Store) -> list[TakenOut]:
        if not isinstance(store, SqliteStore):
            raise CommandError("a PostgreSQL store has no runs of ids: restore its tables with PostgreSQL's own tools")
        return await store.take_out_damaged()

    for one in with_recorded(options, work, "take out damaged runs"):
        lost = one.ids - one.saved
        say(f"{one.campaign}: {one.problem.partition(';')[0]}: taken out; {one.saved} of its {one.ids} ids were saved")
        if lost:
            say(
                f"{one.campaign}: {lost} reports stay counted without an id: one that is sent again counts once more "
                f"('counted twice, at most' says so from now on). A backup from before the damage has their ids."
            )


def _merge(options: argparse.Namespace) -> None:
    disjoint = ", assumed to be disjoint" if options.assume_disjoint else ""
    act = Act(local_actor(), "merge stores", detail=f"{options.first} and {options.second}{disjoint}")
    folders = (options.first, options.second, options.output)
    for one in combine_stores(*folders, assume_disjoint=options.assume_disjoint, act=act):
        twice = f", {one.overlap} of them counted twice: both stores had them" if one.overlap else ""
        unknown = f", at most {one.unchecked} counted twice: the ids are gone" if one.unchecked else ""
        say(f"{one.id} {one.count} reports or shares{twice}{unknown}")


def _backup(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    if (options.output is None) != options.made_elsewhere:
        raise argparse.ArgumentTypeError("backup takes the new folder, or --made-elsewhere for a database")
    if options.made_elsewhere:
        _note_backup(options, settings)
        return
    if settings.database is not None:
        raise CommandError(
            "the store is a PostgreSQL database, which this does not copy; use pg_dump or a base backup, and then "
            "backup --made-elsewhere (for the embedded store, leave LDP_AGGREGATOR_DATABASE and database unset)"
        )
    asyncio.run(_recorded_copy(settings.data, options.output))
    say(f"the store is copied to {options.output}")


def _note_backup(options: argparse.Namespace, settings: Settings) -> None:
    if settings.database is None:
        raise CommandError("the store is a folder, of which 'ldp-aggregator backup FOLDER' makes the backup")

    async def made(_: Store) -> None:
        """It is there already."""

    with_recorded(options, made, BACKED_UP, detail="made elsewhere")
    say("the backup is in the log")


async def _recorded_copy(data: Path, output: Path) -> None:
    """Copy a store, and log it there; one that takes no writes (a backup, a full disk) is copied all the same."""
    begun = False
    try:
        store = await open_store(data, create=False)
        try:
            async with recorded(store, local_actor(), BACKED_UP, detail=str(output)):
                begun = True
                copy_store(data, output)
        finally:
            await store.close()
    except (OSError, StoreError) as error:
        if begun:
            raise
        copy_store(data, output)
        say(f"this is in no log, since the store takes no entry: {error}")


def _restore(options: argparse.Namespace) -> None:
    settings = settings_of(options)
    if options.before_upgrade:
        if options.backup or options.in_place or options.keep_shares:
            raise argparse.ArgumentTypeError("--before-upgrade goes with --data or --database alone")
        asyncio.run(_take_back(settings))
        say("the store is what it was before the upgrade; go on with the release that made it")
        return
    if (options.backup is None) != options.in_place:
        raise argparse.ArgumentTypeError("restore takes the folder of a backup, or --in-place for a database")
    if (settings.database_address is None) == options.in_place:
        raise argparse.ArgumentTypeError(
            "--in-place is for a database; an embedded store is restored from its folder"
            if options.in_place
            else "the store is a PostgreSQL database: put it back with pg_restore, then run restore --in-place "
            "(for the embedded store, leave LDP_AGGREGATOR_DATABASE and database unset)"
        )
    if settings.database_address is None:
        restored = restore_store(options.backup, settings.data, keep_shares=options.keep_shares)
    else:
        restored = asyncio.run(_renew(settings.database_address, options.keep_shares))
    tokens, shares = many(restored.tokens, "token"), many(restored.shares, "share")
    say(f"the store is restored; revoked: {tokens}; dropped: {shares}; run fsck")


async def _take_back(settings: Settings) -> None:
    if settings.database_address is None:
        take_back(settings.data)
        return
    check_driver()
    from ldp_aggregator.store.postgres import PostgresStore

    store = await PostgresStore.open(settings.database_address)
    try:
        await store.take_back()
    finally:
        await store.close()


async def _renew(address: str, keep_shares: bool) -> Restored:
    check_driver()
    from ldp_aggregator.store.postgres import PostgresStore

    store = await PostgresStore.open(address)
    try:
        return await store.renew(keep_shares=keep_shares)
    finally:
        await store.close()


def _recount(options: argparse.Namespace) -> int:
    if not options.campaign or options.take_out_damaged:
        raise argparse.ArgumentTypeError("--archive goes with the ID of a campaign, and without --take-out-damaged")
    try:
        from ldp_aggregator.archive.recount import on_dask, on_processes, recount
    except ModuleNotFoundError as error:
        raise argparse.ArgumentTypeError(
            f"{error.name} is not installed; archives need pip install 'ldp-bayes[archive]'"
        ) from None
    tally = None
    if not options.count_only:
        tally = with_store(options, lambda store: store.tally(options.campaign), read_only=True)
    if options.engine == "dask" and find_spec("dask") is None:
        raise argparse.ArgumentTypeError("dask is not installed; this engine needs pip install 'ldp-bayes[dask]'")
    found = recount(options.archive, options.campaign, on_dask if options.engine == "dask" else on_processes)
    crowd = found.tally.campaign.privacy.crowd
    if crowd is not None and found.reports < crowd.devices:
        raise LdpError(
            "batch-too-small", f"{found.reports} reports wait for a crowd of {crowd.devices}; nothing is told"
        )
    equal = None if tally is None else found.tally == tally
    if options.json:
        say_json(_as_json(options.campaign, found, equal))
    else:
        _tell(found, equal)
    return 1 if equal is False else 0


def _tell(found: Recount, equal: bool | None) -> None:
    say(f"counted: {many(found.reports, 'report')}; {many(found.duplicates, 'row')} repeat one of them")
    if found.refused:
        say(f"{found.refused} rows no device can have sent; they are left out")
    if found.conflicts:
        say(f"{len(found.conflicts)} ids have more than one answer; none of them counts:")
        for one in found.conflicts:
            say(f"  {one.hex()}")
    if equal is not None:
        say("the store has the same tally, bit for bit" if equal else "the store has another tally")


def _as_json(campaign_id: str, found: Recount, equal: bool | None) -> dict[str, object]:
    questions = [
        {"question": number, "n": int(n), "counts": counts.tolist()}
        for number, (n, counts) in enumerate(zip(found.tally.n, found.tally.counts, strict=True))
    ]
    return {
        "campaign": campaign_id,
        "reports": found.reports,
        "duplicates": found.duplicates,
        "refused": found.refused,
        "conflicts": [one.hex() for one in found.conflicts],
        "equals_store": equal,
        "questions": questions,
    }
