"""``ldp-simulate data check FOLDER``: compare the benchmarks' tables in a folder with what was measured on."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ldp_aggregator.trainers.reading import TableError
from ldp_protocols.command_line import FAILED, Groups, add_json, say, say_json
from ldp_simulations.benchmarks import description_of, files_of

FITS: Final = "fits"
DIFFERS: Final = "differs"
MISSING: Final = "missing"

ABOUT_CHECK: Final = """\
Compare a folder's files with those on which the documentation's figures were measured.

Prints for each file whether it fits, differs or is missing, and of what is missing the source and its terms: nothing is
fetched. A table that is only packed in another way fits. Ends with 1 where a file does not fit. The folder is named by
LDP_BAYES_DATA for the commands and tests that read the tables. With --json one list with the same facts."""


def add_data(groups: Groups, text: str) -> None:
    parser = groups.add_parser("data", help=text, description="The benchmarks' tables.", examples=("check uci",))
    under = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = under.add_parser(
        "check", help="compare a folder with them", description=ABOUT_CHECK, examples=("uci", "uci --json")
    )
    check.add_argument("folder", type=Path, metavar="FOLDER", help="where the tables are")
    add_json(check)
    check.set_defaults(command=_check)


def state_of(path: Path, file: Mapping[str, Any]) -> str:
    """Tell whether a file fits, differs or is missing, by its SHA-256 or that of the table packed in it."""
    if not path.is_file():
        return MISSING
    try:
        with path.open("rb") as packed:
            if hashlib.file_digest(packed, "sha256").hexdigest() == file["sha256"]:
                return FITS
        with gzip.open(path) as table:
            same = hashlib.file_digest(table, "sha256").hexdigest() == file["table_sha256"]
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return DIFFERS
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from None
    return FITS if same else DIFFERS


def _check(options: argparse.Namespace) -> int | None:
    folder: Path = options.folder
    if not folder.is_dir():
        raise TableError(f"{folder}: no such folder")
    found = []
    for name, file in files_of():
        described = description_of(name)
        said = {"data_set": name, "source": described["source"], "terms": described["terms"]}
        found.append({"file": file["file"], "state": state_of(folder / file["file"], file), **said})
    if options.json:
        say_json(found)
    else:
        _print(found)
    return None if all(one["state"] == FITS for one in found) else FAILED


def _print(found: list[dict[str, Any]]) -> None:
    listed = set()
    for one in found:
        say(f"{one['state']:9}{one['file']}")
        if one["state"] != FITS and one["data_set"] not in listed:
            listed.add(one["data_set"])
            say(f"{'':9}  from:  {one['source']}")
            say(f"{'':9}  terms: {one['terms']}")
    say(f"{sum(one['state'] == FITS for one in found)} of {len(found)} files fit")
