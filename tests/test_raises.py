"""Whatever leaves a public function of ``protocols`` or ``ldp_client`` stands in its docstring.

What leaves is read off the sources (``escaping``), what is told off the docstrings: sentences that say what is raised,
sections ``Raises``, and what they refer to.
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from escaping import Program
from sources import Function, Key

import ldp_client
import ldp_client.errors
import ldp_client.relay
import protocols
import protocols.errors

ROOT = Path(__file__).resolve().parents[1]
PUBLIC_MODULES = (
    "ldp_client.aio",
    "ldp_client.network.shared",
    "ldp_client.network.stdlib",
    "ldp_client.network.transport",
    "ldp_client.relay.gateway",
    "ldp_client.storage.contract",
)
"""Public beside the names that the packages hand on."""

KEPT = frozenset(
    {
        ("ldp_client.network.proxies", "Proxies.__init__"),
        ("ldp_client.storage.contract", "scope_prefix"),
        ("protocols.document.schema", "ContinuousFeature.size"),
        ("protocols.exact.coins", "Coins.below"),
        ("protocols.exact.coins", "ScriptedCoins.words"),
        ("protocols.exact.rationals", "log_upper"),
        ("protocols.wire", "check_secret"),
        ("protocols.wire", "encode_upload"),
    }
)
"""What they raise is about arguments that their callers have checked, or made themselves."""

IMPOSSIBLE = {
    ("protocols.document.campaign", "Campaign.compile"): {"DocumentError"},
    ("ldp_client.relay.forwarding", "Relay.model"): {"DocumentError", "ModelError", "StorageError"},
}
"""A document that was compiled has been parsed once; a relay asks for no publisher's signature."""

TOLD_TWICE = {("DeviceCampaign.refusal", "StorageError"), ("DeviceCampaign.grant", "StorageError")}
"""By themselves, and as what ``fetch`` raises."""

ERRORS = {
    name: kind
    for module in (protocols.errors, ldp_client.errors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, protocols.LdpError)
}


_SECTION = re.compile(r"^\s*Raises\s*\n\s*-+\s*\n(.*?)(?=\n\s*\w+\s*\n\s*-{3,}|\Z)", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def program() -> Program:
    return Program(ROOT, "protocols", "ldp_client", apart=("ldp_client.testing", "ldp_client.command"), kept=KEPT)


def told(docstring: str) -> tuple[set[str], set[str]]:
    """The exceptions that a docstring says are raised, and the methods and classes that it refers to for more."""
    sentences = [one for one in re.split(r"(?<=[.:])\s+(?=[A-Z`])", " ".join(docstring.split())) if "aise" in one]
    text = " ".join([*sentences, *_SECTION.findall(docstring)])
    references = re.findall(r"See :(?:meth|class|func):`~?([\w.]+)`", " ".join(docstring.split()))
    references += re.findall(r"what\s+:(?:meth|class|func):`~?([\w.]+)`\s+(?:raises|would)", text)
    return set(re.findall(r"\b[A-Z]\w*(?:Error|Exception)\b", text)), set(references)


def public(program: Program) -> dict[Key, Function]:
    """Functions and methods that an app may call."""
    homes = {
        (getattr(package, name).__module__, getattr(package, name).__name__)
        for package in (ldp_client, ldp_client.relay, protocols)
        for name in package.__all__
        if hasattr(getattr(package, name), "__name__")
    }
    found = {}
    for function in program.functions.values():
        module, name = function.key
        first, _, method = name.partition(".")
        offered = (module in PUBLIC_MODULES or (module, first) in homes) and not first.startswith("_")
        if offered and (method == "__init__" or not method.startswith("_")):
            found[function.key] = function
    return found


def documented(
    program: Program, function: Function, seen: tuple[Key, ...] = (), *, deep: bool = True, without: str | None = None
) -> set[str]:
    """The errors that a function's docstring names, but for one, and, ``deep``, those that it refers to."""
    if function.key in seen:
        return set()
    module, name = function.key
    texts = [ast.get_docstring(program.functions[module, name.removesuffix(".setter")].node) or ""]
    if function.owner is not None and function.node.name == "__init__":
        texts += [ast.get_docstring(one.node) or "" for one in program.lineage(function.owner)]
    found: set[str] = set()
    for text in texts:
        names, references = told(text)
        found |= names - {without}
        for other in _meant(program, function, references) if deep else ():
            found |= documented(program, other, (*seen, function.key))
    return found


def _meant(program: Program, function: Function, references: set[str]) -> list[Function]:
    """``fetch`` is of the same class, ``Aggregator.model`` of another, ``Storage`` has one of the same name."""
    found = []
    for other in program.functions.values():
        owner, _, name = other.key[1].rpartition(".")
        own = function.owner is not None and owner == function.owner[1]
        for reference in references:
            of, _, last = reference.rpartition(".")
            if (last == name and (of.rpartition(".")[2] == owner or (not of and own))) or (
                last == owner and name == function.node.name
            ):
                found.append(other)
    return found


def is_told(error: type[BaseException], names: set[str]) -> bool:
    """By its own name, a base's, or, for a base that is raised for its kinds, by one of those."""
    of_kinds = {name for name, kind in ERRORS.items() if issubclass(kind, error)}
    return not names.isdisjoint({*of_kinds, *(base.__name__ for base in error.__mro__)})


def test_what_leaves_a_public_function_is_in_its_docstring(program: Program) -> None:
    untold = {}
    for key, function in public(program).items():
        names = documented(program, function) | IMPOSSIBLE.get(key, set())
        missing = sorted(one.__name__ for one in function.escapes if not is_told(one, names))
        if missing:
            untold[".".join(key)] = missing
    assert untold == {}


@pytest.mark.parametrize(
    ("function", "errors"),
    [
        ("ldp_client.campaign:DeviceCampaign.contribute", "ConsentError NotFetchedError QuotaError RecordError"),
        ("ldp_client.campaign:DeviceCampaign.contribute", "RefusedError StorageError"),
        ("ldp_client.campaign:DeviceCampaign.fetch", "DocumentError ServerError StorageError TransportError"),
        ("ldp_client.classifier:Classifier.fetch", "ConfigurationError ModelError ModelUnavailableError StorageError"),
        ("ldp_client.device:Device.erase", "StorageError"),
        ("ldp_client.device:Device.__init__", "ConfigurationError"),
        ("ldp_client.relay.forwarding:Relay.collect", "DocumentError QuotaError StorageError UploadError"),
        ("ldp_client.storage.sqlite:SqliteStorage.transaction", "StorageError"),
        ("ldp_client.network.stdlib:HttpTransport.send", "TransportError"),
        ("protocols.wire:decode_upload", "UploadError"),
    ],
)
def test_the_search_finds_what_is_known_to_leave(program: Program, function: str, errors: str) -> None:
    """It would find nothing where it understood nothing."""
    module, _, name = function.partition(":")
    assert set(errors.split()) <= {one.__name__ for one in program.functions[module, name].escapes}


@pytest.mark.parametrize("function", ["Device.run_once", "Device.status", "Device.on_result", "DeviceCampaign.status"])
def test_what_never_raises_is_seen_to_raise_nothing(program: Program, function: str) -> None:
    keys = [key for key in program.functions if key[1] == function]
    assert [program.functions[key].escapes for key in keys] == [set()]


def test_an_error_that_is_taken_out_of_a_docstring_is_missed(program: Program) -> None:
    """All of them, one by one, wherever an app calls."""
    tried, unseen = 0, set()
    for key, function in public(program).items():
        for error in function.escapes:
            if error.__name__ in documented(program, function, deep=False):
                tried += 1
                names = documented(program, function, without=error.__name__)
                unseen |= {(key[1], error.__name__)} if is_told(error, names) else set()
    assert tried > 60
    assert unseen == TOLD_TWICE


def test_every_error_of_the_packages_is_one_of_theirs(program: Program) -> None:
    """No bare ValueError, OSError or KeyError leaves what an app calls, but for two mistakes of whoever calls."""
    foreign = {
        key[1]: sorted(one.__name__ for one in function.escapes if not issubclass(one, protocols.LdpError))
        for key, function in public(program).items()
    }
    told_as_mistakes = {"Coins.below": ["ValueError"], "ScriptedCoins.words": ["LookupError"]}
    assert {name: kinds for name, kinds in foreign.items() if kinds} == told_as_mistakes


def test_every_error_has_a_home(program: Program) -> None:
    for name, kind in ERRORS.items():
        assert getattr(import_module(kind.__module__), name) is kind
