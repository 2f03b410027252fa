"""Writes the tables of the reference that the code itself holds, as parts of pages, into a folder.

The keys of a draft are those for which compiling asks: their types and limits are what :class:`Fields` is called with.
What a key means stands in :data:`MEANINGS`; a key without a meaning, or a meaning without a key, is an error.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

os.environ["COLUMNS"] = "86"

from pydantic_core import PydanticUndefined

from ldp_aggregator.cli.program import make_parser as aggregator_parser
from ldp_aggregator.issuer.__main__ import make_parser as issuer_parser
from ldp_aggregator.relay.__main__ import make_parser as relay_parser
from ldp_aggregator.server import apps
from ldp_aggregator.server.api.routing import EVERYWHERE, GUARDED, WITH_BODY, Operation
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service.settings import CONFIG_VARIABLE, DATABASE_FILE, PREFIX, Settings
from ldp_client import errors as client_errors
from ldp_client.__main__ import make_parser as client_parser
from ldp_protocols import DraftError
from ldp_protocols.command_line import parsers_under
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import Issuer
from ldp_protocols.drafting import compile_document
from ldp_protocols.fields import LONGEST_TEXT, Fields
from ldp_simulations.__main__ import make_parser as simulations_parser
from ldp_simulations.benchmarks import DATASETS

# --- drafts ---

_FEATURES: Final = [
    {"name": "colour", "kind": "categorical", "values": ["red", "green"], "weight": 1, "missing": False}
    | {"ordered": True},
    {"name": "age", "kind": "continuous", "low": 0, "high": 100, "weight": 1, "missing": False},
    {"name": "height", "kind": "continuous", "low": 0, "high": 2, "bins": 4, "missing": False},
    {"name": "work", "kind": "continuous", "edges": [0, 20, 40], "missing": False},
]
_LABEL: Final = {"name": "class", "classes": ["no", "yes"], "weight": 1}
_DRAFT: Final = {
    "version": 1,
    "title": "Keys",
    "purpose": "",
    "operator": "Example Clinic",
    "contact": "privacy@example.org",
    "privacy_url": "https://example.org/privacy",
    "keep_days": 30,
    "label": _LABEL,
    "features": _FEATURES,
    "privacy": {"epsilon": 1.0},
    "study": "s",
    "opens": "2027-01-01T00:00:00Z",
    "closes": "2028-01-01T00:00:00Z",
}
_ISSUER: Final = Issuer("tokens.example.org", 1 << 2047 | 1, 1, 1 << 2047 | 3).to_json()
_GATEWAY: Final = Gateway(1, (9).to_bytes(32, "little")).to_json()
_CROWD: Final = {"epsilon": 1, "delta": 1e-9, "devices": 20_000, "honest": 0.5}
_MODEL: Final = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "class",
    "classes": ["no", "yes"],
    "prior": [0.4, 0.6],
    "features": [
        {"name": "colour", "kind": "categorical", "values": ["red", "green"], "likelihood": [[0.5, 0.1], [0.5, 0.9]]}
    ],
}
_PROJECTION: Final = {
    "method": "pca",
    "inputs": ["age"],
    "mean": [50],
    "scale": [25],
    "matrix": [[1]],
    "fitted_on": "public",
    "outputs": [{"name": "first", "kind": "continuous", "low": -3, "high": 3, "missing": False}],
}


def _drafts() -> Iterator[dict[str, Any]]:
    """Drafts that together have every object that a draft may have."""
    yield _DRAFT
    whole = {**_FEATURES[3], "low": 0, "high": 40, "bins": 2}
    theta = {"epsilon": 1.0, "discrete": "the", "theta": 0.3}
    yield _DRAFT | {"features": [*_FEATURES[:3], whole], "privacy": theta, "asks": "model"}
    yield {name: one for name, one in _DRAFT.items() if name != "label"} | {"pairs": [["colour", "height"]]}
    windows = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 4}
    yield {name: one for name, one in _DRAFT.items() if name not in ("opens", "closes")} | {"windows": windows}
    yield _DRAFT | {"projection": _PROJECTION}
    fitted = {"fitted_on": "A" * 43, "fitted_study": "s", "fitted_epsilon": 1}
    yield _DRAFT | {"projection": _PROJECTION | fitted}
    yield _DRAFT | {"federation": {"groups": 3, "replacements": 2}}
    crowd = {"privacy": {"crowd": _CROWD, "most_local": 4}, "features": _FEATURES[:1], "gateway": _GATEWAY}
    yield _DRAFT | crowd | {"issuer": _ISSUER}
    known = {"epsilon": 4, "crowd": {**_CROWD, "without_issuer": "the relay knows its people", "expires": 30}}
    yield _DRAFT | crowd | {"privacy": known}
    yield _DRAFT | {"issuer": {name: one for name, one in _ISSUER.items() if name != "relay_key"}}
    weights = [1, 1]  # Of whether the model is right, and of its score.
    yield _DRAFT | {"asks": "score", "evaluation": {"model": _MODEL, "edges": [-1, 0, 1], "weights": weights}}


MEANINGS: Final[Mapping[str, str]] = {
    "version": "Of the format.",
    "title": "What people are shown first.",
    "purpose": "What people are told the answers are for.",
    "operator": "Who answers for the campaign: a name and an address, shown to people.",
    "contact": "Where questions and complaints go, shown to people.",
    "privacy_url": "The privacy notice: an address of `https`, without `@`, shown to people.",
    "keep_days": "Days after the end until no single answer can be found, shown to people. A promise: a campaign that "
    "is then neither sealed nor deleted is `Kept too long`.",
    "label": "What a model learns to tell. Without it the campaign is of [statistics](../how-to/statistics.md).",
    "label.name": "Its name.",
    "label.classes": "What it can be.",
    "label.weight": "How often it is asked alone, beside the features; 0 never. Left out, one device in twenty, or as "
    "often as a feature.",
    "features": "What people are asked, one object each. All of it is public, and never read off the data.",
    "features[].name": "Its name in records.",
    "features[].kind": "One of some values, or a number.",
    "features[].weight": "How often it is asked, beside the others.",
    "features[].values": "What it can be (categorical).",
    "features[].ordered": "Whether the values stand in their order: an estimator may then liken neighbours.",
    "features[].missing": "Whether a record may lack it; true where left out, unless `missing` is one of the values.",
    "features[].low": "The least number; smaller ones count as it (continuous).",
    "features[].high": "The largest number; larger ones count as it (continuous).",
    "features[].bins": "Into how many bins of equal width the numbers fall. Without it they are modelled as Gaussian.",
    "features[].edges": "The edges of bins that are not equally wide, both ends among them. `low`, `high` and `bins` "
    "follow from them.",
    "privacy": "What one device loses, and how it is asked.",
    "privacy.epsilon": "The total loss of one device, whatever it answers. It may be left out with a crowd.",
    "privacy.answers": "One question by lot, or all of them with a part of epsilon each.",
    "privacy.discrete": "The [mechanism](../how-to/choose.md#mechanism) for values; `auto` takes the one of least "
    "variance.",
    "privacy.continuous": "The mechanism for numbers without bins.",
    "privacy.theta": "The threshold of `the`, above 0 and at most 1; left out, the best.",
    "privacy.release_every": "How many devices have to answer between one publication and the next.",
    "privacy.crowd": "A [crowd's guarantee](../how-to/crowd.md).",
    "privacy.crowd.epsilon": "What is learned of one device at most, where relay and aggregator keep apart.",
    "privacy.crowd.delta": "With which probability it may be more.",
    "privacy.crowd.devices": "How many devices a relay mixes in a batch.",
    "privacy.crowd.honest": "The share of them that is what it seems to be.",
    "privacy.crowd.without_issuer": "Why the relay admits uploads without a token of a person; in place of an issuer.",
    "privacy.crowd.expires": "Days after which a batch that is not full is given up; left out, it waits.",
    "privacy.most_local": "The largest epsilon that compiling may take to keep the crowd's promise. "
    "The document has what it took, as `privacy.epsilon`.",
    "study": "A name. Of all campaigns of one study a device answers one.",
    "windows": "A [series](../how-to/series.md): each device answers in one window, drawn by lot.",
    "windows.from": "When the first window opens.",
    "windows.length": "How long each is: a number of weeks, days, hours or minutes (`P7D`, `PT1H`).",
    "windows.count": "How many there are.",
    "opens": "From when on devices answer; left out, at once.",
    "closes": "Until when devices answer; left out, until somebody closes it.",
    "gateway": "To whom answers are [sealed](../how-to/ohttp.md).",
    "gateway.key": "What `ldp-aggregator key create --gateway` prints; or several keys, and between two the time from "
    "which the second one is used.",
    "projection": "Many numbers are [reduced to few](../how-to/projections.md) on the device; `project` prints it.",
    "projection.method": "How it was fitted.",
    "projection.inputs": "Names of the features that go in.",
    "projection.mean": "What is taken off each input.",
    "projection.scale": "What each input is divided by after that.",
    "projection.matrix": "A row of factors for each output.",
    "projection.outputs": "What is asked in place of the inputs: objects like those of `features`.",
    "projection.fitted_on": "`public`, or the id of the private round that it was fitted on.",
    "projection.fitted_study": "That round's study.",
    "projection.fitted_epsilon": "That round's total epsilon.",
    "asks": "What the campaign is for; `model` with a label and `statistics` without, unless said.",
    "issuer": "Who gives each person [tokens](../how-to/tokens.md), without which no answer counts.",
    "issuer.name": "The issuer's host.",
    "issuer.key": "Its key, as `ldp-issuer` prints it.",
    "issuer.relay_key": "The key of the tokens that the relay is shown; another one.",
    "issuer.tokens": "How many tokens a person gets.",
    "federation": "How shares of [nodes](../federation.md) are merged; for federated campaigns.",
    "federation.groups": "The model is the median over so many groups of nodes; 1 merges all. Left out, the number of "
    "nodes decides.",
    "federation.replacements": "How often a node may replace its share; left out, any number of times.",
    "evaluation": "What is asked about in a [round that evaluates](../evaluation.md); `evaluate` prints it.",
    "evaluation.model": "The model, as `train` prints it.",
    "evaluation.edges": "Edges of bins of the log odds, one of them 0; left out, they follow from the model.",
    "evaluation.weights": "How often it is asked whether the model is right, and its score.",
    "pairs": "Pairs of names of features that are asked together, in a campaign without a label. The document has "
    "them as questions alone.",
}


def _count(number: int) -> str:
    return f"{number:,}"


def _named(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


_KINDS: Final[Mapping[str, Callable[..., str]]] = {
    "text": lambda longest=LONGEST_TEXT, **_: f"text, at most {_count(longest)} characters",
    "switch": lambda: "true or false",
    "choice": lambda choices, **_: f"one of {_named(choices)}",
    "number": lambda: "number",
    "integer": lambda least, most, **_: (
        f"whole number, {_count(least)}" + (f" to {_count(most)}" if most > least else "")
    ),
    "texts": lambda least, most: f"{_count(least)} to {_count(most)} texts" if most > least else f"{least} texts",
    "numbers": lambda *_: "numbers",
    "row": lambda *_: "numbers",
    "sequence": lambda least, most, **_: f"list of {_count(least)}" + (f" to {_count(most)}" if most > least else ""),
    "address": lambda: f"address of `https`, at most {_count(LONGEST_TEXT)} characters",
    "instant": lambda: "time in UTC, such as `2027-01-01T00:00:00Z`",
}
"""What a call of a method of :class:`Fields` says of a key: of its arguments behind the name."""


@contextmanager
def _recorded() -> Iterator[dict[str, tuple[str, str]]]:
    """Keys of drafts, in the order in which compiling asks for them, with type and default."""
    found: dict[str, tuple[str, str]] = {}
    methods = {name: getattr(Fields, name) for name in (*_KINDS, "raw")}

    def recording(kind: str) -> Callable[..., Any]:
        def method(self: Fields, name: str, *given: Any, **named: Any) -> Any:
            place = re.sub(r"\[\d+\]", "[]", self.place(name))
            if self._refuse is DraftError and found.get(place, ("", ""))[0] == "":
                default = named.get("default")
                told = "" if default in (None, "") else f"`{default}`"
                found[place] = (_KINDS[kind](*given, **named) if kind in _KINDS else "", told)
            return methods[kind](self, name, *given, **named)

        return method

    for name in methods:
        setattr(Fields, name, recording(name))
    try:
        yield found
    finally:
        for name, method in methods.items():
            setattr(Fields, name, method)


def _parents(draft: Mapping[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """The objects of a draft in which a key may stand."""
    found: list[Any] = [draft]
    for name in key.split(".")[:-1]:
        held = [one[name.removesuffix("[]")] for one in found if one.get(name.removesuffix("[]"))]
        found = [one for many in held for one in many] if name.endswith("[]") else held
    yield from found


def _is_needed(key: str) -> bool:
    """Tell whether every draft is refused without the key. A feature that never had it says nothing of it."""
    name, seen = key.rpartition(".")[2], False
    for draft in map(deepcopy, _drafts()):
        parents = list(_parents(draft, key))
        had = [one.pop(name, None) is not None for one in parents]
        seen = seen or any(had)
        if not parents or (not any(had) and key.startswith("features[]")):
            continue
        try:
            compile_document(draft)
        except DraftError:
            continue
        return False
    if not seen:
        raise SystemExit(f"docs/site/reference.py: no draft of _drafts has {key}")
    return True


def draft_keys() -> dict[str, tuple[str, str]]:
    """Every key of a draft, with its type and its default."""
    with _recorded() as found:
        for draft in _drafts():
            compile_document(deepcopy(draft))
    hidden = ("projection.outputs[]", "features[].several")
    keys = {key: told for key, told in found.items() if not key.startswith(hidden) and not key.endswith("[]")}
    return {key: (kind or "object", default) for key, (kind, default) in keys.items()}


def drafts() -> Iterator[str]:
    """One row a key of a draft."""
    keys = draft_keys()
    if keys.keys() != MEANINGS.keys():
        apart = ", ".join(sorted(keys.keys() ^ MEANINGS.keys()))
        raise SystemExit(f"docs/site/reference.py: MEANINGS and the keys of drafts differ in {apart}")
    rows = ((f"`{key}`", *keys[key], "yes" if _is_needed(key) else "", told) for key, told in MEANINGS.items())
    yield from _table(("key", "what it is", "default", "needed", "meaning"), rows)


# --- everything else ---


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |\n"
    yield "|" + "---|" * len(list(heads)) + "\n"
    for row in rows:
        cells = (" ".join(cell.split()).replace("|", "&#124;") for cell in row)
        yield f"| {' | '.join(cells)} |\n"
    yield "\n"


FOLDED: Final = '<details markdown="1"><summary>Arguments and examples</summary>'
"""The help of a command is behind a click: a page of all would be forty screens long."""


def commands() -> Iterator[str]:
    """The help of every command of the five programs."""
    for make in (aggregator_parser, client_parser, simulations_parser, issuer_parser, relay_parser):
        for depth, parser in enumerate(parsers_under(make())):
            level = "##" if depth == 0 else "###"
            yield f"{level} `{parser.prog}`\n\n{(parser.description or '').strip()}\n\n"
            yield f"{FOLDED}\n\n```text\n{parser.format_help().rstrip()}\n```\n\n</details>\n\n"


def settings() -> Iterator[str]:
    """One row a setting, and the two that stand in the environment alone."""
    rows = []
    properties = Settings.model_json_schema()["properties"]
    for name, field in Settings.model_fields.items():
        default = field.default
        shown = "" if default in (None, (), PydanticUndefined) else f"`{json.dumps(default, default=str)}`"
        rows.append((f"`{name}`", _schema_words(properties[name]), shown, field.description or ""))
    yield from _table(("setting", "what it is", "default", "meaning"), rows)
    yield f"In the environment each is `{PREFIX}` and its name in capitals. Two stand there alone:\n\n"
    yield f"* `{CONFIG_VARIABLE}` names the TOML file, where `--config` does not.\n"
    yield f"* `{DATABASE_FILE}` names a file that holds `database` and nothing else.\n"


def _schema_words(schema: Mapping[str, Any]) -> str:
    """A JSON schema of one value, in words."""
    if "anyOf" in schema:
        (schema,) = (one for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return f"one of {_named(schema['enum'])}"
    words = {"boolean": "true or false", "integer": "whole number", "number": "number", "array": "list of texts"}
    bounds = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    told = [f"{bounds[name]} {schema[name]:,}" for name in bounds if name in schema]
    return ", ".join([words.get(schema["type"], "text"), *told])


def http() -> Iterator[str]:
    """One table a listener, one row an operation."""
    listeners = {"Public": apps.PUBLIC, "Admin": apps.ADMIN, "Operations": apps.OPERATIONS}
    for name, operations in listeners.items():
        yield f"## {name} listener\n\n"
        heads = ("request", "token with scope", "parameters and body", "answers", "what it does")
        yield from _table(heads, map(_operation, operations))
    yield "## Codes\n\n"
    yield "Beside the codes of its own, below, a request may meet\n\n"
    groups = {"anywhere": EVERYWHERE, "where a token is asked for": GUARDED, "where there is a body": WITH_BODY}
    yield "".join(f"* {place}: {_named(codes)}\n" for place, codes in groups.items()) + "\n"
    rows = (
        (f"`{one.method} {one.path}`", _named(sorted(set(one.codes) - set(EVERYWHERE))))
        for operations in listeners.values()
        for one in operations
        if one.codes
    )
    yield from _table(("request", "codes of its own"), rows)


def _operation(one: Operation) -> tuple[str, ...]:
    scopes = _named(one.scopes) + (" (optional)" if one.optional_scopes else "")
    asks = [
        f"`{name}`: {_schema_words(schema) if 'type' in schema or 'enum' in schema else 'text'}"
        for name, schema in (one.query or {}).items()
    ]
    asks += [f"body `{media}`" for media in one.bodies]
    answers = [f"{status}" + (f" `{content[0]}`" if content else "") for status, content in one.answers.items()]
    return f"`{one.method} {one.path}`", scopes, "; ".join(asks), "; ".join(answers), one.to_json()["summary"]


def codes() -> Iterator[str]:
    """Every code of the server, of single reports, and of the client."""
    yield "## Of a request\n\n"
    rows = ((f"`{code}`", str(kind.status), kind.title) for code, kind in sorted(PROBLEMS.items()))
    yield from _table(("code", "status", "meaning"), rows)
    yield "## Of a single report\n\nIn the list `rejected` of an answer 200; the rest of the upload was counted.\n\n"
    yield from _table(("code", "meaning"), ((f"`{code}`", told) for code, told in sorted(REPORT_CODES.items())))
    told_by = {
        "REFUSALS": ("Why a device does not answer", "`RefusedError`"),
        "UNSEALABLE": ("Why a device cannot seal", "`RefusedError`"),
        "STORAGE_PROBLEMS": ("Why a device's storage cannot be used", "`StorageError`"),
        "TRANSPORT_PROBLEMS": ("Why nothing usable was answered", "`TransportError`"),
    }
    for name, (title, kind) in told_by.items():
        yield f"## {title}\n\n{kind}, in Python; the other clients have the same codes where they have the case.\n\n"
        found: Mapping[str, str] = getattr(client_errors, name)
        yield from _table(("code", "meaning"), ((f"`{code}`", told) for code, told in sorted(found.items())))


def datasets() -> Iterator[str]:
    """One row a data set: where it is from, its terms, its files."""
    rows = (
        (name, one["source"], one["terms"], _named(file["file"] for file in one["files"]))
        for name, one in DATASETS.items()
    )
    yield from _table(("name", "source", "terms, as published", "files"), rows)


def clients() -> Iterator[str]:
    """One row a concept: in each client the file, and the names that it has there."""
    with (Path(__file__).parent / "clients.csv").open(encoding="utf-8", newline="") as file:
        heads, *rows = csv.reader(file)
    yield from _table(heads, ((concept, *(_code(cell) for cell in cells)) for concept, *cells in rows))


def _code(names: str) -> str:
    return " ".join(f"`{name}`" for name in names.split())


PARTS: Final = (commands, drafts, settings, http, codes, datasets, clients)
"""Each is written to the file of its name."""


def main(folder: Path) -> None:
    """Write all parts into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        (folder / f"{part.__name__}.md").write_text("".join(part()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
