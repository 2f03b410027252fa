"""Writes the tables of the reference that the code itself holds, as parts of pages, into a folder.

The keys of a draft are those for which compiling asks: their types and limits are what :class:`Fields` is called with.
What a key means stands in :data:`MEANINGS`; a key without a meaning, or a meaning without a key, is an error. Examples
are those of :func:`_drafts`, which compile.
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

from prometheus_client import Counter, Gauge, Histogram
from pydantic_core import PydanticUndefined

from ldp_aggregator.cli.program import make_parser as aggregator_parser
from ldp_aggregator.issuer.__main__ import make_parser as issuer_parser
from ldp_aggregator.relay.__main__ import make_parser as relay_parser
from ldp_aggregator.server import apps
from ldp_aggregator.server.api.routing import EVERYWHERE, GUARDED, WITH_BODY, Operation
from ldp_aggregator.server.metrics import OBSERVED, Metrics
from ldp_aggregator.server.problems import PROBLEMS, REPORT_CODES
from ldp_aggregator.service.settings import CONFIG_VARIABLE, DATABASE_FILE, PREFIX, Settings
from ldp_client import errors as client_errors
from ldp_client.__main__ import make_parser as client_parser
from ldp_protocols import DraftError
from ldp_protocols.command_line import parsers_under
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import Issuer
from ldp_protocols.drafting import MOST_LOCAL, compile_document
from ldp_protocols.fields import LONGEST_TEXT, Fields
from ldp_simulations.__main__ import make_parser as simulations_parser
from ldp_simulations.benchmarks import DATASETS

# --- drafts ---

_FEATURES: Final = [
    {"name": "walks", "kind": "categorical", "values": ["slowly", "fast"], "weight": 2, "missing": False}
    | {"ordered": True},
    {"name": "age", "kind": "continuous", "low": 0, "high": 110, "weight": 1, "missing": False},
    {"name": "height", "kind": "continuous", "low": 0, "high": 2, "bins": 4, "missing": False},
    {"name": "hours outside", "kind": "continuous", "edges": [0, 1, 4, 24], "missing": False},
]
_LABEL: Final = {"name": "fell", "classes": ["no", "yes"], "weight": 1}
_DRAFT: Final = {
    "version": 1,
    "title": "Who falls?",
    "purpose": "to warn in time",
    "operator": "Example Clinic",
    "contact": "privacy@example.org",
    "privacy_url": "https://example.org/privacy",
    "keep_days": 30,
    "label": _LABEL,
    "features": _FEATURES,
    "privacy": {"epsilon": 1.0},
    "study": "falls",
    "opens": "2027-01-01T00:00:00Z",
    "closes": "2028-01-01T00:00:00Z",
}
_ISSUER: Final = Issuer("tokens.example.org", 1 << 2047 | 1, 1, 1 << 2047 | 3).to_json()
_GATEWAY: Final = Gateway(1, (9).to_bytes(32, "little")).to_json()
_CROWD: Final = {"epsilon": 1, "delta": 1e-9, "devices": 20_000, "honest": 0.5}
_MODEL: Final = {
    "version": 1,
    "kind": "naive-bayes",
    "label": "fell",
    "classes": ["no", "yes"],
    "prior": [0.4, 0.6],
    "features": [
        {"name": "walks", "kind": "categorical", "values": ["slowly", "fast"], "likelihood": [[0.5, 0.1], [0.5, 0.9]]}
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
    whole = {**_FEATURES[3], "low": 0, "high": 24, "bins": 3}
    theta = {"epsilon": 1.0, "answers": "one", "discrete": "the", "continuous": "sign", "theta": 0.3}
    theta |= {"release_every": 5000}
    yield _DRAFT | {"features": [*_FEATURES[:3], whole], "privacy": theta, "asks": "model"}
    yield {name: one for name, one in _DRAFT.items() if name != "label"} | {"pairs": [["walks", "height"]]}
    windows = {"from": "2027-01-04T00:00:00Z", "length": "P7D", "count": 4}
    yield {name: one for name, one in _DRAFT.items() if name not in ("opens", "closes")} | {"windows": windows}
    yield _DRAFT | {"projection": _PROJECTION}
    fitted = {"fitted_on": "A" * 43, "fitted_study": "falls", "fitted_epsilon": 1}
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
    "version": "The version of the format.",
    "title": "The first line that people see.",
    "purpose": "What the answers are for, in words for people.",
    "operator": "Who answers for the campaign: a name and an address, shown to people.",
    "contact": "Where questions and complaints go, shown to people.",
    "privacy_url": "The privacy notice: an address of `https`, without `@`, shown to people.",
    "keep_days": "Days after the end until no single answer can be found, shown to people. A promise: a campaign that "
    "is then neither sealed nor deleted is `Kept too long`.",
    "label": "What the model predicts. Without it the campaign collects [statistics](../how-to/statistics.md).",
    "label.name": "Its name in records.",
    "label.classes": "Its classes.",
    "label.weight": "How often the class is asked alone, relative to the features; 0 never. Left out, one device in "
    "twenty, or as often as a feature.",
    "features": "The questions, one object each. All of it is public: never take it from private data.",
    "features[].name": "Its name in records.",
    "features[].kind": "Whether it is one of some values, or a number.",
    "features[].weight": "How often it is asked, relative to the others.",
    "features[].values": "Its values (categorical).",
    "features[].ordered": "Whether the values stand in their order: an estimator may then smooth over neighbours.",
    "features[].missing": "Whether a record may lack it; not needed if `missing` is one of the values.",
    "features[].low": "The least number; smaller ones count as it (continuous).",
    "features[].high": "The largest number; larger ones count as it (continuous).",
    "features[].bins": "The number of bins of equal width. Without it the numbers are modelled as Gaussian.",
    "features[].edges": "The edges of bins of unequal width, with both ends; in place of `low`, `high` and `bins`.",
    "privacy": "The privacy loss of one device, and how it is asked.",
    "privacy.epsilon": "The total loss of one device, whatever it answers. With a crowd it may be left out.",
    "privacy.answers": "One random question, or all of them with a part of epsilon each.",
    "privacy.discrete": "The [mechanism](../how-to/choose.md#mechanism) for values; `auto` takes the one of least "
    "variance.",
    "privacy.continuous": "The mechanism for numbers without bins.",
    "privacy.theta": "The threshold of `the`, above 0 and at most 1; left out, the best.",
    "privacy.release_every": "The number of new devices that must answer between two publications. Left out, any.",
    "privacy.crowd": "A [crowd's guarantee](../how-to/crowd.md).",
    "privacy.crowd.epsilon": "The most that a batch reveals about one device, unless relay and aggregator cooperate.",
    "privacy.crowd.delta": "The probability that it is more.",
    "privacy.crowd.devices": "The number of devices in a relay's batch.",
    "privacy.crowd.honest": "The share of them that follow the protocol.",
    "privacy.crowd.without_issuer": "Why the relay admits uploads without a person's token; in place of an issuer.",
    "privacy.crowd.expires": "Days after which a batch that is not full is dropped. Left out, it waits.",
    "privacy.most_local": "The largest local epsilon for the crowd's promise.",
    "study": "A name. A device answers one of all campaigns with the same study.",
    "windows": "A [series](../how-to/series.md): each device answers in one random window.",
    "windows.from": "When the first window opens.",
    "windows.length": "The length of a window: a number of weeks, days, hours or minutes (`P7D`, `PT1H`).",
    "windows.count": "The number of windows.",
    "opens": "When devices begin to answer. Left out, at once.",
    "closes": "When devices stop answering. Left out, when somebody closes the campaign.",
    "gateway": "The key to which devices [seal](../how-to/ohttp.md) their answers.",
    "gateway.key": "What `ldp-aggregator key create --gateway` prints; or several keys, with times between them from "
    "which devices use the next.",
    "projection": "[Reduces many numbers to few](../how-to/projections.md) on the device; `project` prints it.",
    "projection.method": "How it was fitted.",
    "projection.inputs": "Names of the input features.",
    "projection.mean": "Subtracted from each input.",
    "projection.scale": "Each input is then divided by it.",
    "projection.matrix": "A row of factors for each output.",
    "projection.outputs": "The questions in place of the inputs: objects like those of `features`.",
    "projection.fitted_on": "`public`, or the id of the private round that it was fitted on.",
    "projection.fitted_study": "The study of that round.",
    "projection.fitted_epsilon": "The total epsilon of that round.",
    "asks": "What the campaign collects. Without a label the default is `statistics`.",
    "issuer": "Gives each person [tokens](../how-to/tokens.md); an answer without one does not count.",
    "issuer.name": "The issuer's host.",
    "issuer.key": "Its key, as `ldp-issuer` prints it.",
    "issuer.relay_key": "Another key, for the tokens that the relay sees.",
    "issuer.tokens": "The number of tokens for each person.",
    "federation": "How shares of [nodes](../federation.md) are merged; for federated campaigns.",
    "federation.groups": "The model is the median over so many groups of nodes; 1 adds all up. Left out, the number of "
    "nodes decides.",
    "federation.replacements": "How often a node may replace its share. Left out, any number of times.",
    "evaluation": "The model in a [round that evaluates](../evaluation.md); `evaluate` prints it.",
    "evaluation.model": "The model, as `train` prints it.",
    "evaluation.edges": "Edges of bins of the log odds, one of them 0. Left out, they follow from the model.",
    "evaluation.weights": "The weights of two questions: whether the model is right, and its score.",
    "pairs": "Pairs of features that are asked together, in a campaign without a label.",
}

DEFAULTS: Final[Mapping[str, str]] = {
    "features[].missing": "true",
    "features[].ordered": "false",
    "issuer.tokens": "1",
    "privacy.most_local": f"{MOST_LOCAL}",
    "purpose": '""',
    "evaluation.weights": "[1, 1]",
}
"""Defaults that are not arguments of a method of :class:`Fields`."""

IN_DOCUMENT: Final[Mapping[str, str]] = {"privacy.most_local": "as `privacy.epsilon`", "pairs": "as its questions"}
"""How a key comes into the document, and so into the id; every other key stands there as it is."""


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
    stated = {key: f"`{default}`" for key, default in DEFAULTS.items()}
    return {key: (kind or "object", default or stated.get(key, "")) for key, (kind, default) in keys.items()}


def example(key: str) -> str:
    """The value of the first draft that has the key, shortened; of an object or a list of objects its keys say more."""
    for draft in _drafts():
        for one in _parents(draft, key):
            value = one.get(key.rpartition(".")[2])
            if value is not None:
                text = json.dumps(value, ensure_ascii=False)
                return "" if "{" in text else f"`{text if len(text) <= LONGEST_EXAMPLE else text[:24] + '...'}`"
    return ""


LONGEST_EXAMPLE: Final = 40
"""Characters; a key has hundreds."""


def drafts() -> Iterator[str]:
    """One row a key of a draft."""
    keys = draft_keys()
    if keys.keys() != MEANINGS.keys():
        apart = ", ".join(sorted(keys.keys() ^ MEANINGS.keys()))
        raise SystemExit(f"docs/site/reference.py: MEANINGS and the keys of drafts differ in {apart}")
    rows = (
        (
            f"`{key}`",
            kind,
            "needed" if _is_needed(key) else default or "none",
            IN_DOCUMENT.get(key, "yes"),
            example(key),
            told,
        )
        for key, told in MEANINGS.items()
        for kind, default in [keys[key]]
    )
    yield from _table(("key", "type", "default", "in the document", "example", "meaning"), rows)


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


UNITS: Final[Mapping[str, str]] = {
    "keep_closed_days": "days",
    "body_bytes": "bytes",
    "connections": "connections",
    "uploads_per_second": "uploads a second",
    "pause_seconds": "seconds",
}
"""What the numbers among the settings count."""


def settings() -> Iterator[str]:
    """One row a setting, and the two that stand in the environment alone."""
    rows = []
    properties = Settings.model_json_schema()["properties"]
    for name, field in Settings.model_fields.items():
        default = field.default
        shown = "unset" if default in (None, PydanticUndefined) else f"`{json.dumps(default, default=str)}`"
        rows.append((f"`{name}`", _schema_words(properties[name]), UNITS.get(name, ""), shown, field.description or ""))
    yield from _table(("setting", "type", "unit", "default", "meaning"), rows)
    yield f"In the environment each is `{PREFIX}` and its name in capitals. Two stand there alone:\n\n"
    yield f"* `{CONFIG_VARIABLE}` names the TOML file, unless `--config` does.\n"
    yield f"* `{DATABASE_FILE}` names a file that holds `database` and nothing else.\n"


def _schema_words(schema: Mapping[str, Any]) -> str:
    """A JSON schema of one value, in words."""
    if "anyOf" in schema:
        (schema,) = (one for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema:
        return f"one of {_named(schema['enum'])}"
    words = {"boolean": "true or false", "integer": "whole number", "number": "number", "array": "list of texts"}
    if schema.get("format") == "path":
        return "path"
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
    yield "Any request may also get these codes:\n\n"
    groups = {"every request": EVERYWHERE, "with a token": GUARDED, "with a body": WITH_BODY}
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
        yield f"## {title}\n\n{kind}, in Python; other clients use the same codes.\n\n"
        found: Mapping[str, str] = getattr(client_errors, name)
        yield from _table(("code", "meaning"), ((f"`{code}`", told) for code, told in sorted(found.items())))


def metrics() -> Iterator[str]:
    """One row a metric of the aggregator."""
    instruments = [one for one in vars(Metrics()).values() if isinstance(one, Counter | Gauge | Histogram)]
    found = {one._name: (one._type, one._documentation, one._labelnames) for one in instruments}
    found |= {name: ("gauge", text, (label,) if label else ()) for name, (text, label) in OBSERVED.items()}
    found["ldp_build_info"] = ("gauge", "What is running", ("version", "python", "sqlite"))
    rows = (
        (f"`{name}{'_total' * (kind == 'counter')}`", kind, _named(labels), text)
        for name, (kind, text, labels) in sorted(found.items())
    )
    yield from _table(("metric", "type", "labels", "what it says"), rows)


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


PARTS: Final = (commands, drafts, settings, http, codes, metrics, datasets, clients)
"""Each is written to the file of its name."""


def main(folder: Path) -> None:
    """Write all parts into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        (folder / f"{part.__name__}.md").write_text("".join(part()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
