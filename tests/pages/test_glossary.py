"""The glossary: enough words, each used by a page; the site shows meanings as tooltips, never in code."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FEWEST = 33


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("hooks", DOCS / "site" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def meanings(hooks):
    return hooks.glossary((DOCS / "glossary.md").read_text(encoding="utf-8"))


def test_the_glossary_has_words_enough_and_a_row_for_each(meanings):
    rows = re.findall(r"^\* ", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(meanings) == len(rows) >= FEWEST


def test_every_word_of_the_glossary_is_used_by_another_page(meanings):
    pages = (page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md") if page.name != "glossary.md")
    text = " ".join(" ".join(pages).lower().split())
    assert [word for word in meanings if word.lower() not in text] == []


def test_a_meaning_is_plain_text(meanings):
    assert not [meaning for meaning in meanings.values() if re.search(r"[<>`*]|\]\(", meaning)]


def test_only_the_first_of_a_word_outside_of_code_headings_and_links_is_explained(hooks):
    html = (
        "<h1>Relay</h1><p><code>relay</code> <a href='relay'>relay</a></p><pre><code>a relay</code></pre>"
        "<p>Relays, a relay, relaying</p><img alt='relay'>"
    )
    told = hooks.explained(html, {"relay": 'a "server"'})
    assert told == html.replace("<p>Relays,", '<p><abbr title="a &quot;server&quot;">Relays</abbr>,')
    assert hooks.explained(html, {"lay": "x"}) == html


def test_the_longer_of_two_words_is_explained(hooks):
    words = hooks.glossary("* **token**: short\n* **admin token**: long, [a link](x.md)\n")
    assert hooks.explained("<p>An admin token</p>", words) == '<p>An <abbr title="long, a link">admin token</abbr></p>'
