"""The reference's tables, which docs/site/reference.py writes from the code: each is whole, and a page has it."""

import importlib.util
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import get_args

import pytest

from ldp_aggregator.server import apps
from ldp_aggregator.server.metrics import Metrics
from ldp_aggregator.server.problems import PROBLEMS
from ldp_aggregator.service.settings import Settings
from ldp_client.errors import REFUSALS, STORAGE_PROBLEMS, TRANSPORT_PROBLEMS
from ldp_protocols import DraftError
from ldp_protocols.drafting import compile_document
from ldp_protocols.fields import Fields
from ldp_simulations.commands.reproduce import FIGURES

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"commands": "commands", "drafts": "draft", "settings": "settings", "http": "http", "codes": "codes"}
ELSEWHERE = {"datasets": "../reproduce", "metrics": "../deployment/watching", "clients": "../how-to/port"}


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "site" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_cells(text):
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def test_every_part_is_written_and_shown_by_a_page(reference, tmp_path):
    reference.main(tmp_path)
    assert {file.stem for file in tmp_path.iterdir()} == {*PAGES, *ELSEWHERE}
    for part, page in (PAGES | ELSEWHERE).items():
        assert len((tmp_path / f"{part}.md").read_text().splitlines()) > 15
        text = (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8")
        assert f'--8<-- "build/reference/{part}.md"' in text


def test_every_key_of_a_draft_is_explained_and_one_that_is_not_is_told(reference, monkeypatch):
    keys = first_cells("".join(reference.drafts()))
    assert keys == set(reference.MEANINGS)
    assert {"pairs", "features[].edges", "gateway.key", "federation.groups", "privacy.crowd.expires"} <= keys
    monkeypatch.delitem(reference.MEANINGS, "pairs")
    with pytest.raises(SystemExit, match="differ in pairs"):
        "".join(reference.drafts())


def test_a_draft_key_is_needed_only_where_nothing_compiles_without_it(reference):
    needed = {key for key in reference.MEANINGS if reference._is_needed(key)}
    assert {"version", "title", "features", "privacy", "windows.count", "features[].name", "issuer.key"} <= needed
    assert needed.isdisjoint({"label", "privacy.epsilon", "features[].edges", "gateway", "issuer.relay_key", "asks"})


def test_every_key_of_a_draft_that_is_no_object_has_an_example(reference):
    objects = {"label", "features", "privacy", "privacy.crowd", "windows", "gateway", "projection", "issuer"}
    objects |= {"federation", "evaluation", "evaluation.model", "projection.outputs"}
    assert {key for key in reference.MEANINGS if not reference.example(key)} == objects


def test_a_default_that_is_written_out_makes_the_same_document(reference):
    """So it makes the same id, as the page says."""
    compared = set()
    for key, (_, shown) in reference.draft_keys().items():
        name = key.rpartition(".")[2]
        if not shown:
            continue
        text = shown.strip("`")
        default = json.loads(text if text[0] in '0123456789["tf' else f'"{text}"')
        for draft in reference._drafts():
            without, written = deepcopy(draft), deepcopy(draft)
            for place, other in zip(reference._parents(without, key), reference._parents(written, key), strict=True):
                if place.pop(name, None) is not None:
                    other[name] = default
            if without == draft:
                continue
            try:
                document = compile_document(without)
            except DraftError:  # The threshold of a mechanism that is not the default, say.
                continue
            assert compile_document(written) == document, key
            compared.add(key)
    assert compared >= {*reference.DEFAULTS, "asks", "privacy.answers", "privacy.discrete", "features[].weight"}


def test_every_setting_that_is_a_number_has_its_unit(reference):
    numbers = {name for name, field in Settings.model_fields.items() if is_number(field.annotation)}
    assert numbers == set(reference.UNITS)


def is_number(annotation):
    return not {int, float}.isdisjoint({annotation, *get_args(annotation)})


def test_writing_the_reference_leaves_the_reader_of_drafts_as_it_was(reference):
    before = dict(vars(Fields))
    assert reference.draft_keys()
    assert dict(vars(Fields)) == before


def test_a_document_repeats_all_keys_but_the_two_that_the_page_names(reference):
    left_out = set()
    for draft in reference._drafts():
        document = json.loads(compile_document(deepcopy(draft)))
        for key in reference.MEANINGS:
            name = key.rpartition(".")[2]
            had = any(name in one for one in reference._parents(draft, key))
            if had and not any(name in one for one in reference._parents(document, key)):
                left_out.add(key)
    assert left_out == {"privacy.most_local", "pairs"}
    page = (ROOT / "docs" / "reference" / "draft.md").read_text(encoding="utf-8")
    assert "every key but `privacy.most_local` and `pairs`" in page


def test_settings_codes_and_operations_are_all_there(reference):
    assert first_cells("".join(reference.settings())) == set(Settings.model_fields)
    codes = first_cells("".join(reference.codes()))
    assert codes >= {*PROBLEMS, *REFUSALS, *STORAGE_PROBLEMS, *TRANSPORT_PROBLEMS}
    operations = {f"{one.method} {one.path}" for one in (*apps.PUBLIC, *apps.ADMIN, *apps.OPERATIONS)}
    assert first_cells("".join(reference.http())) == operations


def test_every_metric_of_the_aggregator_is_a_row(reference):
    exposed = re.findall(r"^# HELP (ldp_\w+) (.*)$", Metrics().render().decode(), re.MULTILINE)
    told = {name: text for name, text in exposed if not name.endswith("_created")}
    rows = re.findall(r"^\| `(ldp_\w+)` \| \w+ \|.*\| ([^|]+) \|$", "".join(reference.metrics()), re.MULTILINE)
    assert dict(rows) == told


def test_every_figure_has_its_command_on_the_page_that_says_how_to_reproduce():
    page = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
    assert [name for name in FIGURES if f"`ldp-simulate reproduce {name}`" not in page] == []
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    (version,) = re.findall(r"^version: (\S+)$", cited, re.MULTILINE)
    assert f"version = {{{version}}}" in page
    assert [doi for doi in re.findall(r"https://doi\.org/(\S+)\)", page) if f"doi: {doi}" not in cited] == []
