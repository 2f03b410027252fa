"""From drafts to campaigns: as their authors wrote them, in TOML or JSON, or as the columns of a table, one a line.

A column is its name, a colon, and what it can be: ``red | green`` (or ``red, green``), or ``young < medium < old``
(values in their order), or ``0 to 100`` (a number, modelled as Gaussian), or ``0 to 200000 in 8`` (a number in so many
bins of equal width). A header as it stands in a file, names with commas between them, is taken too; then every line
says what is still to be written. Values and bounds are public knowledge and never read off the data: a table itself is
not asked for.
"""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from collections.abc import Collection, Mapping
from datetime import date, datetime, timezone
from typing import Any, Final

from ldp_protocols import Campaign, DraftError
from ldp_protocols.document.authored import MODEL
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.features import describe_number, describe_values
from ldp_protocols.fields import parse_json

ANOTHER_KIND: Final = "this draft was published before and not as federated; change its title to publish another"

_RANGE: Final = re.compile(r"(?P<low>\S+)\s+to\s+(?P<high>\S+?)(?:\s+in\s+(?P<bins>\d{1,4}))?")
_IN_ORDER: Final = re.compile(r"\s<(?=\s)")
_HINT: Final = (
    'write "{0}: first value | second value" (" < " between values in their order) or "{0}: 0 to 100" or '
    '"{0}: 0 to 100 in 8"'
)


def compile_draft(text: bytes, *, toml: bool) -> Campaign:
    """Raises DraftError, which names the field and says what would be right."""
    return Campaign.compile(_parse_toml(text) if toml else text)


def parse_draft(text: bytes, *, toml: bool) -> dict[str, Any]:
    """A draft as its author wrote it, not checked yet. Raises DraftError."""
    draft = _parse_toml(text) if toml else parse_json(text, DraftError)
    if not isinstance(draft, dict):
        raise DraftError("draft", "must be an object, with label and features")
    return draft


def check_kind(campaign: Campaign, *, federated: bool, max_reports: int | None) -> None:
    """Refuse what a federated campaign cannot be, and a crowd of more than are counted. Raises DraftError."""
    crowd = campaign.privacy.crowd
    if crowd is not None and federated:
        raise DraftError("privacy.crowd", "is of answers of devices; a federated campaign has none")
    if crowd is not None and max_reports is not None and max_reports < crowd.devices:
        raise DraftError(
            "max_reports", f"is {max_reports:,}, and nothing is shown before {crowd.devices:,} have answered"
        )
    if federated and campaign.asks != MODEL:
        raise DraftError("asks", f'a federated campaign asks for a "{MODEL}", not for "{campaign.asks}"')
    if federated and campaign.windows is not None:
        raise DraftError("windows", "are for devices, each of which answers in one; a federated campaign has none")
    if federated and campaign.issuer is not None:
        raise DraftError("issuer", "is of answers of devices; a federated campaign has none, its nodes have tokens")
    if campaign.federation is not None and not federated:
        raise DraftError("federation", "is of nodes; make the campaign a federated one (--federated)")
    if federated and max_reports is not None:
        raise DraftError("max_reports", "a federated campaign takes shares of nodes and no reports; leave it out")


def gateway_line(gateway: Gateway) -> str:
    """The line that names a gateway at the head of a draft in TOML."""
    return f'gateway = {{ key = "{gateway.key}" }}'


def check_gateway(campaign: Campaign, gateways: Collection[Gateway]) -> None:
    """Refuse what is sealed to a key that is none of those ``held`` (the newest last): its answers would be lost.
    Raises DraftError.
    """
    keys = {(one.key_id, one.public_key) for one in gateways}
    if campaign.gateway is None or all((key.key_id, key.public_key) in keys for key in campaign.gateway.keys):
        return
    right = (
        f"the newest one's line is: {gateway_line(list(gateways)[-1])}"
        if gateways
        else "set gateway_key to the file that 'ldp-aggregator key create FILE --gateway' makes"
    )
    one = "one of its keys is" if campaign.gateway.later else "is"
    problem = (
        f"{one} none of the {len(gateways)} that the setting gateway_key holds here; nobody could open its answers"
    )
    raise DraftError(
        "gateway.key",
        f"{problem}; {right}; or say that another server holds it (--elsewhere, over HTTP elsewhere=true)",
    )


def _parse_toml(text: bytes) -> dict[str, Any]:
    try:
        draft: dict[str, Any] = tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise DraftError("draft", f"not TOML in UTF-8 ({error})") from None
    return {name: _plain(value) for name, value in draft.items()}


def _plain(value: Any) -> Any:
    """TOML has times of its own; a draft has them as text in UTC. A time without zone stays as it is and is refused."""
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (date, datetime)) else value


def spread_header(text: str) -> str:
    """Names with commas (or semicolons, or tabs) between them on one line become a line each; other text stays."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1 or ":" in lines[0]:
        return text
    mark = next((mark for mark in ("\t", ";", ",") if mark in lines[0]), None)
    if mark is None:
        return text
    return "\n".join(f"{name.strip()}: " for name in next(csv.reader([lines[0]], delimiter=mark)) if name.strip())


def draft_of(columns: str, label: str, title: str, epsilon: str, for_people: Mapping[str, str] | None = None) -> str:
    """The draft (JSON) that asks about these columns and learns ``label``; ``for_people`` are texts of
    :data:`~ldp_protocols.document.authored.FOR_PEOPLE`, empty ones left out. Raises ValueError.
    """
    found: dict[str, Any] = {}
    for line in columns.splitlines():
        if line.strip():
            name, what = read_column(line)
            if name in found:
                raise ValueError(f"the column {name} stands there twice")
            found[name] = what
    texts: dict[str, Any] = {name: text.strip() for name, text in (for_people or {}).items() if text.strip()}
    if "keep_days" in texts:
        texts["keep_days"] = _number(texts["keep_days"], "keep_days")
    return draft_from(found, label, title, _number(epsilon, "epsilon"), texts)


def draft_from(
    columns: Mapping[str, Mapping[str, Any]],
    label: str,
    title: str,
    epsilon: float,
    for_people: Mapping[str, Any] | None = None,
) -> str:
    """The draft of columns that are read already, by their names. Raises ValueError."""
    found = dict(columns)
    if not label.strip():
        raise ValueError(f"name the column to learn, one of {_names(found)}")
    if label.strip() not in found:
        raise ValueError(
            f"no line is about {label.strip()!r}, the column to learn; the lines are about {_names(found)}"
        )
    classes = found.pop(label.strip())
    if "values" not in classes:
        raise ValueError(f"{label.strip()} is what is learned, and needs its classes: {_HINT.format(label.strip())}")
    if "ordered" in classes:
        raise ValueError(f'{label.strip()} is what is learned, and classes have no order; write " | " between them')
    if not found:
        raise ValueError("at least one column beside the one to learn is needed")
    return json.dumps(
        {
            "version": 1,
            "title": title.strip() or f"What tells {label.strip()}?",
            **(for_people or {}),
            "label": {"name": label.strip(), "classes": classes["values"]},
            "features": [*found.values()],
            "privacy": {"epsilon": epsilon},
        },
        indent=2,
        ensure_ascii=False,
    )


def read_column(line: str) -> tuple[str, dict[str, Any]]:
    """A column's name and what it can be, as a draft has it. Raises ValueError."""
    name, _, what = (part.strip() for part in line.partition(":"))
    if not name:
        raise ValueError(f"the line {line.strip()!r} has no name before its colon")
    found = _RANGE.fullmatch(what)
    ordered = {} if "|" in what else {"ordered": True}
    values = [value.strip() for value in (_IN_ORDER.split(what) if ordered else what.split("|"))]
    if len(values) == 1 and found is None:  # Values may hold commas: these part them only where nothing else does.
        ordered, values = {}, [value.strip() for value in what.split(",")]
    if len(values) > 1:
        if not all(values):
            raise ValueError(f"{name} has an empty value between two others")
        return name, describe_values(name, values, **ordered)
    if found is None:
        raise ValueError(f"{name} does not say what it can be; {_HINT.format(name)}")
    bins = {} if found["bins"] is None else {"bins": int(found["bins"])}
    return name, describe_number(name, _number(found["low"], name), _number(found["high"], name), **bins)


def _number(text: str, name: str) -> float | int:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name}: {text!r} is not a number")
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def _names(found: Mapping[str, Any]) -> str:
    return ", ".join(found) or "nothing"
