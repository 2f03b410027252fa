"""What reads strangers' bytes, each as a function of bytes that fails where a promise about it is broken.

The promise is everywhere the same: bytes are taken or refused with the documented error, nothing else is raised, what
was taken is written back to the same, and none of it takes long or much memory: work is in proportion to what has come.
A target returns whether its bytes were taken.
"""

import json
import math
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from types import FrameType
from typing import Any, Final

import drafts
import numpy as np
from cells import cell_campaign, cell_report
from exact_coins import SeededCoins
from fuzz_door import ask_the_door, door_seeds
from issuing import issuer, shown_for
from random_campaigns import campaign, document

from ldp_aggregator.counting.payloads import lay_out
from ldp_aggregator.counting.tally import Tally
from ldp_aggregator.node_statistics import campaign_of, decode_share, encode_share, has_other_rows, parts_of
from ldp_aggregator.server.access import check_answer_token
from ldp_aggregator.server.problems import ProblemError
from ldp_client import Classifier, perturb
from ldp_protocols import Campaign, DocumentError, decode_upload, encode_upload
from ldp_protocols.document.model import DiscreteLikelihood, Model
from ldp_protocols.errors import PAYLOAD_CODES
from ldp_protocols.exact import exact_epsilon
from ldp_protocols.oblivious import BinaryRequest, decode_request, encode_request
from ldp_protocols.wire import Block, encode_blocks

SECONDS: Final = 2.0
"""Processor time that no input takes."""
MEBIBYTES: Final = 64
"""Memory of Python's that no input takes."""
OURS: Final = ("ldp_protocols", "ldp_client", "ldp_aggregator")

DOCUMENT_CODES: Final = {"invalid-document", "invalid-parameters", "unknown-mechanism", "loss-above-epsilon"}
SECRET: Final = bytes(range(32))


@dataclass(frozen=True)
class Target:
    """``check`` takes bytes, of which ``seeds`` has some to begin with; no input has more than ``longest``, and none
    makes more than ``least`` lines of ours run, and ``steps`` more for each of its bytes.
    """

    check: Callable[[bytes], bool]
    seeds: Callable[[], list[bytes]]
    longest: int = 1 << 14
    least: int = 2_000
    steps: int = 1


def bounded(target: Target, data: bytes) -> bool:
    """Have a target check, in its time, in proportion to what came, and where memory is being traced in its memory."""
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    before, begun = tracemalloc.get_traced_memory()[0], time.process_time()
    with counted() as steps:
        taken = target.check(data)
    seconds, held = time.process_time() - begun, tracemalloc.get_traced_memory()[1] - before
    assert seconds < SECONDS, f"{seconds:.1f} seconds"
    assert held < MEBIBYTES << 20, f"{held >> 20} MiB"
    assert steps[0] < target.least + target.steps * len(data), f"{steps[0]} steps for {len(data)} bytes"
    return taken


@contextmanager
def counted() -> Iterator[list[int]]:
    """Count the lines of ours that run in the block: the first number of what is given."""
    steps = [0]

    def count(_frame: FrameType, event: str, _about: Any) -> Any:
        if event == "line":
            steps[0] += 1
        return count

    def enter(frame: FrameType, _event: str, _about: Any) -> Any:
        return count if frame.f_globals.get("__name__", "").partition(".")[0] in OURS else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield steps
    finally:
        sys.settrace(before)


# --- a campaign's document, as a device reads it ----------------------------------------------------------------------


def read_document(data: bytes) -> bool:
    """A document that is taken keeps within its epsilon, and a device answers it whatever its record."""
    try:
        read = Campaign.parse(data)
    except DocumentError as refused:
        if refused.code not in DOCUMENT_CODES:
            raise
        return False
    assert read.document == data
    assert read.loss <= exact_epsilon(read.privacy.epsilon)
    assert Campaign.parse(data, read.id) == read
    for record in ({}, {feature.name: _value_of(feature) for feature in read.features}):
        reports = perturb(read, record, read.label.classes[-1], secret=SECRET, coins=SeededCoins(1))
        assert sum(block.count for block in decode_upload(encode_upload(reports, read), read)) == len(reports)
    return True


def _value_of(feature: Any) -> object:
    return feature.number.low if feature.number else feature.names[0]


def _documents() -> list[bytes]:
    seeds: list[bytes] = []
    for number in range(16):
        rng = random.Random(f"document {number}")
        seeds.append(document(rng, campaign(rng)).encode("utf-8", "backslashreplace"))
    claimed = json.loads(CAMPAIGNS[0].document)
    claimed["privacy"]["epsilon"] = 0.1
    return [*seeds, json.dumps(claimed).encode()]


# --- a model, as a device reads it ------------------------------------------------------------------------------------


def read_model(data: bytes) -> bool:
    """A model that is taken is one of probabilities, and classifies every record."""
    try:
        model = Model.from_json(data)
    except DocumentError:
        return False
    assert Model.from_json(model.to_json().encode()) == model
    tables = [likelihood.table for likelihood in model.likelihoods if isinstance(likelihood, DiscreteLikelihood)]
    for shares in (model.prior, *(column for table in tables for column in zip(*table, strict=True))):
        assert min(shares) >= 0
        assert math.isclose(math.fsum(shares), 1, abs_tol=1e-5)
    classifier = Classifier(model)
    inputs = [likelihood.feature for likelihood in model.likelihoods]
    inputs += model.projection.inputs if model.projection else []
    records: list[dict[str, object]] = [{}, {of.name: _value_of(of) for of in inputs}]
    records += [{of.name: value for of in inputs} for value in (1e308, -1e308, "1e308", math.nan, 10**400)]
    for record in records:
        said = classifier.predict_proba(record)
        assert math.isclose(math.fsum(said.values()), 1)
        assert said[classifier.predict(record)] == max(said.values())
    return True


def _models() -> list[bytes]:
    rounds = (campaign(random.Random(f"model {number}")).evaluation for number in range(30))
    seeds = [json.loads(found.model.to_json()) for found in rounds if found is not None]
    rest = [0.0] * (len(seeds[0]["classes"]) - 2)
    seeds += [seeds[0] | {"prior": [*prior, *rest]} for prior in ([0.9, 0.9], [-0.5, 1.5])]
    return [json.dumps(seed).encode() for seed in seeds]


# --- uploads and shares: the first byte says of which campaign --------------------------------------------------------


def _asking(discrete: str, continuous: str, answers: str) -> Campaign:
    few, many = drafts.text("few", *"012", missing=True), drafts.text("many", *map(str, range(20)))
    label = {"name": "y", "classes": [*"abc"], "weight": 1}
    privacy = {"epsilon": 2, "discrete": discrete, "continuous": continuous, "answers": answers}
    return Campaign.compile(drafts.draft(few, many, drafts.number("number"), label=label, privacy=privacy))


CHOSEN = ("de laplace all", "ss onebit one", "oue sign all", "sue laplace one", "she onebit one", "the sign all")
CAMPAIGNS: Final = [_asking(*chosen.split()) for chosen in CHOSEN]


def _of_campaign(data: bytes) -> tuple[Campaign, bytes]:
    return CAMPAIGNS[(data[0] if data else 0) % len(CAMPAIGNS)], data[1:]


def read_upload(data: bytes) -> bool:
    """An upload that is taken is the only encoding of its reports, and is counted as the same whether its reports are
    added up question by question or all together.
    """
    asked, body = _of_campaign(data)
    try:
        blocks = decode_upload(body, asked)
    except DocumentError:
        return False
    assert encode_blocks(blocks, asked) == body
    tally, refused = Tally(asked), 0
    for block in blocks:
        codes = tally.add_block(block)
        assert set(codes.values()) <= set(PAYLOAD_CODES)
        refused += len(codes)
    assert int(tally.n.sum()) + refused == sum(block.count for block in blocks)
    assert tally == _together(asked, blocks)
    return True


def _together(asked: Campaign, blocks: tuple[Block, ...]) -> Tally:
    questions = np.repeat([block.question for block in blocks], [block.count for block in blocks])
    sheets = lay_out(asked, questions, b"".join(block.payloads for block in blocks))
    sound = np.ones(len(questions), dtype=bool)
    tally = Tally(asked)
    for sheet in sheets:
        sound[list(sheet.refusals())] = False
    for sheet in sheets:
        for question, (n, counts) in sheet.sums(sound).items():
            tally.add(question, n, counts)
    return tally


def _uploads() -> list[bytes]:
    seeds = []
    for number, asked in enumerate(CAMPAIGNS):
        coins = SeededCoins(number)
        people = [perturb(asked, {"few": "1", "many": "7", "number": 0.5}, "b", coins=coins) for _ in range(3)]
        seeds += [bytes([number]) + encode_upload(sent, asked) for sent in (people[0], chain(*people))]
    return seeds


def read_share(data: bytes) -> bool:
    """A node's share is read as one kind, at most, and written back to the same."""
    asked, body = _of_campaign(data)
    named = None
    with suppress(DocumentError):
        named = campaign_of(body)
    try:
        vector = decode_share(body, asked)
    except DocumentError:
        return False
    assert named == asked.id
    assert encode_share(asked, vector, other_rows=has_other_rows(body)) == body
    return True


def _shares() -> list[bytes]:
    seeds = []
    for number, asked in enumerate(CAMPAIGNS[:2]):
        vector = np.arange(-1, parts_of(asked.label, asked.asked)[-1].stop - 1) * 3_000_000_000
        shares = (encode_share(asked, vector), encode_share(asked, -vector, other_rows=True))
        seeds += [bytes([number]) + share for share in shares]
    return seeds


# --- what was sealed, and the token of an answer ----------------------------------------------------------------------


def read_sealed(data: bytes) -> bool:
    """A binary HTTP message that is taken is written in the form of known lengths, and read back to the same."""
    try:
        request = decode_request(data)
    except DocumentError:
        return False
    assert decode_request(encode_request(request)) == request
    return True


def _sealed() -> list[bytes]:
    path, headers = "/v1/campaigns/x/reports", (("content-type", "a/b"), ("authorization", "Bearer x"))
    known = encode_request(BinaryRequest("POST", "https", "x", path, headers, b"reports"))
    texts = ("POST", "https", "x", path)
    lines = (*chain(*headers), "", "reports", "more", "", "")
    chunked = b"\2" + b"".join(bytes([len(text)]) + text.encode() for text in (*texts, *lines))
    return [known, known + bytes(100), known[:-8], chunked, chunked[:-1], chunked[:40] + b"\1x" * 200]


OF_PEOPLE: Final = cell_campaign(64, issuer=issuer())
ANSWER: Final = decode_upload(encode_upload([cell_report(OF_PEOPLE, 3)], OF_PEOPLE), OF_PEOPLE)
TOKEN: Final = shown_for(OF_PEOPLE, cell_report(OF_PEOPLE, 3)).encode()
SIGNED: Final = TOKEN.split(b'"')[1][:128]
"""The beginning of a token is of its answer; there are many signatures."""


def read_token(data: bytes) -> bool:
    """A header that is taken for the token of an answer shows just this one, however it is written."""
    try:
        check_answer_token(OF_PEOPLE, ANSWER, data.decode("latin-1"))
    except ProblemError as refused:
        if refused.code not in ("missing-answer-token", "wrong-answer-token"):
            raise
        return False
    assert SIGNED in data
    return True


def _tokens() -> list[bytes]:
    other = shown_for(OF_PEOPLE, cell_report(OF_PEOPLE, 4)).encode()
    return [TOKEN, TOKEN.replace(b'"', b""), TOKEN.lower(), other, TOKEN[:-9], b"PrivateToken " * 300 + TOKEN]


TARGETS: Final = {
    "document": Target(read_document, _documents, steps=10),
    "model": Target(read_model, _models, steps=5),
    "upload": Target(read_upload, _uploads, longest=1 << 12),
    "share": Target(read_share, _shares, longest=1 << 12),
    "sealed": Target(read_sealed, _sealed, longest=1 << 12, least=10_000),
    "token": Target(read_token, _tokens, longest=1 << 12),
    "door": Target(ask_the_door, door_seeds, longest=1 << 14),
}
