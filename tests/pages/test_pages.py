"""Every command and every code block of the pages runs, in the order in which a reader meets them."""

import math
import re
import shutil
from fractions import Fraction

import pytest
from blocks import OUTPUT, PAGES, ROOT, blocks_of, says
from forked import programs
from session import Session
from stages import EXAMPLE, STAGES

from ldp_client import Device
from ldp_client.testing import FakeServer
from ldp_protocols.drafting import make_discrete

RUN = ("sh", "python", "js")
FEWEST_RUN = 0.85
EXAMPLES_RUN = "tests/examples"
WITH_STARTS = ("README.md", "deploy/client-wheel/README.md", "docs/client.md", "docs/how-to/backend.md")
LANGUAGES = ["Python", "JavaScript", "Kotlin", "Swift"]
CHOOSING = (ROOT / "docs" / "how-to" / "choose.md").read_text(encoding="utf-8")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
CELLS = (2, 3, 4, 6, 8, 12, 20, 32, 64, 128)
NOT_BEST = ("oue", "sue", "the", "she")


WITH_BLOCKS = [page for page in PAGES if any(block.reason is None for block in blocks_of(page))]


@pytest.mark.parametrize("started", ["forked", pytest.param("new", marks=pytest.mark.long)])
@pytest.mark.parametrize("page", WITH_BLOCKS)
def test_every_block_of_a_page_runs_and_prints_what_the_page_says(page, started, tmp_path, monkeypatch):
    """In interpreters that have imported already and, at length, in new ones."""
    blocks = [block for block in blocks_of(page) if block.reason is None and not block.included]
    if not has_node() and any(block.language == "js" or re.search(r"^node ", block.text, re.M) for block in blocks):
        blocks = without_node(blocks)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with Session(tmp_path, *([str(programs())] if started == "forked" else [])) as session:
        stage = (STAGES[page](session) if page in STAGES else None) or iter(())
        next(stage, None)
        printed = None
        for block in blocks:
            if block.language == OUTPUT:
                assert printed is not None, f"{block.place}: nothing before it has printed anything"
                assert says(printed, block.text), f"{block.place} says\n{block.text}\nand there was\n{printed}"
            else:
                printed = session.run(block)
        next(stage, None)


def has_node():
    return shutil.which("node") is not None and (ROOT / "javascript" / "dist" / "index.js").is_file()


def without_node(blocks):
    """A page's blocks, but for those in JavaScript; a page that needs Node for others, too, is skipped."""
    others = [block for block in blocks if block.language != "js"]
    if not any(block.language == "python" for block in others) or any(
        re.search(r"^node ", block.text, re.MULTILINE) for block in others
    ):
        pytest.skip("node or javascript/dist is missing; make javascript builds it")
    return others


def test_every_block_runs_or_says_why_not_and_few_do_not():
    blocks = [block for page in PAGES for block in blocks_of(page)]
    unknown = [block.place for block in blocks if not block.title and block.language not in (*RUN, OUTPUT)]
    assert [place for place in unknown if place not in {block.place for block in blocks if block.reason}] == []
    code = [block for block in blocks if block.language in RUN]
    assert sum(block.reason is None for block in code) >= FEWEST_RUN * len(code)


def test_no_fence_is_missed():
    """One that is written otherwise would not run, and nobody would notice."""
    for page in PAGES:
        fences = re.findall(r"^ *(?:```|~~~)", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks_of(page)), page


def test_every_choice_of_a_language_has_all_four_in_one_order():
    """The theme shows the same language in every place where a reader may choose."""
    for page in PAGES:
        content = (ROOT / page).read_text(encoding="utf-8")
        labels = re.findall(r'^=== "([^"]+)"$', content, re.MULTILINE)
        assert labels == LANGUAGES * (len(labels) // len(LANGUAGES)), page
    guide = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
    assert guide.count(f'=== "{LANGUAGES[0]}"') > 5


def test_every_page_there_is_is_read():
    ignored = ("CHANGELOG.md",)
    found = {
        str(page.relative_to(ROOT))
        for page in ROOT.rglob("*.md")
        if not {"node_modules", "build", "dist"} & set(page.parts) and not any(p.startswith(".") for p in page.parts)
    }
    assert found - {*PAGES, *ignored} == set()
    assert set(STAGES) <= set(PAGES)


def test_examples_that_a_page_includes_are_run_by_the_tests_of_examples():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / EXAMPLES_RUN).glob("*.py"))
    included = [block.included for page in PAGES for block in blocks_of(page) if block.included]
    assert included
    for path in included:
        assert path.is_file()
        assert path.name in tests


@pytest.mark.parametrize("page", WITH_STARTS)
@pytest.mark.parametrize("agreed", [True, False])
def test_three_starts_ask_once_and_answer_once(page, agreed, tmp_path, monkeypatch):
    """The snippets that everybody copies ask a person once, at the first of an app's starts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    block = next(block for block in blocks_of(page) if block.language == "python" and "next_step" in block.text)
    asked = []

    def agrees(*told):
        asked.append(told)
        return agreed

    with FakeServer() as server:
        published = server.publish(EXAMPLE)
        text = re.sub(r"https://collect\.example\.org", server.url, block.text)
        for _ in range(3):
            names = {"url": server.url, "campaign_id": published.id, "agrees": agrees}
            exec(compile(text, block.place, "exec", dont_inherit=True), names)
            device = names["device"]
            assert isinstance(device, Device)
            assert device.run_once(5)
            device.close()
        assert asked == [(EXAMPLE["title"], EXAMPLE["purpose"])]
        assert server.counted(published.id) == agreed


# --- what the page on choosing says of mechanisms and of epsilon is computed ---


def variance(name: str, cells: int, epsilon: float) -> float:
    return make_discrete(name, cells, Fraction(str(epsilon))).noise_variance(1 / cells)


def row(beginning: str) -> list[str]:
    (found,) = re.findall(rf"^\| {re.escape(beginning)}.*$", CHOOSING, re.MULTILINE)
    return [cell.strip() for cell in found.strip("|").split("|")][1:]


def test_the_odds_and_the_noise_over_epsilon_are_those_of_the_table():
    assert row("epsilon") == [f"{epsilon:g}" for epsilon in EPSILONS]
    # "At most" is rounded up.
    beliefs = [f"{math.ceil(100 * math.exp(epsilon) / (1 + math.exp(epsilon)))} %" for epsilon in EPSILONS]
    assert row("from 50 % to at most") == beliefs
    noise = [math.sqrt(variance("auto", 8, epsilon) / variance("auto", 8, 1.0)) for epsilon in EPSILONS]
    assert row("standard error of a frequency") == [f"{one:.2f}" for one in noise]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_direct_encoding_and_subset_selection_have_the_least_noise_where_the_page_says_so(epsilon):
    limit = 1.4 * (math.exp(epsilon) + 1)
    assert "1.4 (exp(epsilon) + 1)" in CHOOSING
    for cells in CELLS:
        noise = {name: variance(name, cells, epsilon) for name in ("auto", "de", "ss", *NOT_BEST)}
        assert (noise["de"] <= noise["ss"]) == (cells < limit), cells
        assert noise["auto"] == noise["ss"] < min(noise[name] for name in NOT_BEST), cells
