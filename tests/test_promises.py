"""The pages' promises as data: each sentence names the tests that hold it, and the numbers in it are the code's."""

import ast
import re
import tomllib
from datetime import timedelta
from functools import cache
from importlib import import_module

import pytest
from installing import REPOSITORY
from pydantic_core import PydanticUndefined

TESTS = REPOSITORY / "tests"
PROMISES = tomllib.loads((TESTS / "promises.toml").read_text(encoding="utf-8"))
EVERY = [(page, one) for page, listed in PROMISES.items() for one in listed]

WHOLE = {
    "SECURITY.md": ("## What the server does", r"(?<=[.;:]) (?=[A-Z])"),
    "docs/stability.md": ("what may change, and when", None),
    "docs/deployment.md": ("## What is promised", None),
    "CONTRIBUTING.md": ("**What the server promises", None),
    "docs/privacy.md": ("## Who learns what", r"(?<= \|) (?=[^|]*\|$)"),
}
"""Sections of which nothing may be left out: each page's, and what divides an item of its list or table further."""
NO_PROMISE = ("modules, pages, messages | may change", "keep it on loopback or in a private network")

WORDS = {"a": 1, "two": 2}
UNITS = {"seconds": timedelta(seconds=1), "hours": timedelta(hours=1), "day": timedelta(days=1), "MiB": 1 << 20}


@cache
def text_of(page):
    """A page's text with single spaces."""
    return " ".join((REPOSITORY / page).read_text(encoding="utf-8").split())


@cache
def defined(file):
    """The functions of a file of tests, by name."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def items_of(page):
    """What a section that has to be whole says: rows of its table, or sentences of its list."""
    heading, divider = WHOLE[page]
    section = (REPOSITORY / page).read_text(encoding="utf-8").partition(heading)[2]
    section = re.split(r"^(?:#+ |\*\*)", section, flags=re.MULTILINE)[0]
    rows = re.findall(r"^\|.*\|$", section, re.MULTILINE)[2:]
    bullets = [" ".join(one.split()) for one in re.findall(r"^\* (.*(?:\n  .*)*)", section, re.MULTILINE)]
    return [part for one in (*rows, *bullets) for part in (re.split(divider, one) if divider else [one])]


def test_every_promise_is_a_sentence_of_its_page():
    assert [one["says"] for page, one in EVERY if text_of(page).count(one["says"]) != 1] == []


def test_every_test_that_holds_a_promise_is_there_and_is_run():
    missing = []
    for _, one in EVERY:
        assert one["tests"], one["says"]
        for name in one["tests"]:
            file, _, test = name.partition("::")
            if file.endswith(".mjs"):
                if f'test("{test}"' not in (REPOSITORY / file).read_text(encoding="utf-8"):
                    missing.append(name)
                continue
            node = defined(file).get(test)
            marks = [] if node is None else list(map(ast.unparse, node.decorator_list))
            if node is None or any(re.match(r"pytest\.mark\.(?:skip\b|xfail)", one) for one in marks):
                missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", WHOLE)
def test_no_promise_of_a_page_is_without_a_test(page):
    held = [one["says"] for where, one in EVERY if where == page or page == "docs/deployment.md"]
    items = items_of(page)
    assert len(items) > 3
    bare = [item for item in items if not any(says in item for says in held)]
    assert [item for item in bare if not any(known in item for known in NO_PROMISE)] == []


def meant(words):
    """The number, or numbers, that a few words of a sentence say."""
    if " to " in words:
        low, _, rest = words.partition(" to ")
        return (int(low), int(rest.split()[0]))
    if not re.match(r"[\d,]+(?: |$)|[a-z]+ ", words):
        return words
    number, _, unit = words.partition(" ")
    value = WORDS[number] if number in WORDS else int(number.replace(",", ""))
    return value * UNITS[unit] if unit else value


def stated(place):
    """What the code has: of a constant its value, of a field its default."""
    module, _, name = place.partition(":")
    holder, _, attribute = name.rpartition(".")
    found = import_module(module)
    if not holder:
        return getattr(found, attribute)
    fields = getattr(getattr(found, holder), "model_fields", {})
    return fields[attribute].default if attribute in fields else getattr(getattr(found, holder), attribute)


def test_the_numbers_of_a_sentence_are_those_of_the_code():
    compared = 0
    for page, one in EVERY:
        for place, words in one.get("numbers", {}).items():
            assert re.search(rf"(?<!\w){re.escape(words)}(?!\w)", one["says"]), (page, words)
            value, promised = stated(place), meant(words)
            assert value is not PydanticUndefined
            if isinstance(promised, timedelta) and not isinstance(value, timedelta):
                value = timedelta(seconds=value)
            assert value == promised, (page, one["says"], place)
            compared += 1
    assert compared >= 14


def test_the_landing_script_ends_when_the_guide_says():
    (minutes,) = re.findall(r"after (\d+) minutes in all", text_of("CONTRIBUTING.md"))
    (most,) = re.findall(r"^MOST=(\d+)$", (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
    assert int(most) == 60 * int(minutes)
    (limit,) = re.findall(r"a test after (\w+) minutes", text_of("CONTRIBUTING.md"))
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert (limit, settings["tool"]["pytest"]["ini_options"]["timeout"]) == ("three", 180)
