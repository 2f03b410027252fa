"""Makes the test vectors that a port to another language is held to (see protocols/vectors/README.md).

    python deploy/vectors/write.py protocols/vectors

Everything is drawn from fixed seeds, so that the same code gives the same files.
"""

import itertools
import json
import struct
import sys
from pathlib import Path

from recording_coins import RecordingCoins
from value_vectors import values
from vector_answers import answers
from vector_campaigns import campaigns
from vector_crowd import crowd
from vector_directories import directories
from vector_documents import documents
from vector_training import impossible, models, training
from vector_words import words

from ldp_client import perturb
from ldp_client.answering import item_of
from ldp_client.draw import draw_questions, draw_window
from ldp_protocols import encode_upload
from ldp_protocols.campaign import document_id
from ldp_protocols.mechanisms import Moment
from ldp_protocols.wire import Block, encode_blocks, encode_padded

DRAWS = 24
"""Secrets whose questions are listed for every campaign."""

RECORDS = [
    {"colour": "green", "größe": 0.25, "hours": 41.5},
    {"colour": "blue", "größe": -20, "hours": 1e9},
    {"colour": 0, "größe": 2},
    {"größe": "tall", "hours": 12.25},
    {},
]


def reports(known):
    """From secrets to questions, from scripted words to the bytes of an upload, and who is refused.

    Every question of every campaign is answered, those about a model for every record.
    """
    made = []
    for name, campaign in known.items():
        if campaign.evaluation is not None:
            made += [
                _case(name, campaign, seed, _asked(campaign, question.index))
                for question in campaign.questions
                for seed in range(len(RECORDS))
            ]
            continue
        missing, asked = {question.index for question in campaign.questions}, len(campaign.questions)
        seed = 0
        while missing or seed < len(RECORDS):
            case = _case(name, campaign, seed, _secret(seed))
            drawn = {report["question"] % asked for report in case["reports"]}
            if drawn & missing or seed < len(RECORDS):
                made.append(case)
            missing -= drawn
            seed += 1
    made += [
        _case("she-onebit", known["she-onebit"], 0, _asked(known["she-onebit"], 0), _loud()),
        _case("ss-laplace", known["ss-laplace"], 0, _asked(known["ss-laplace"], 3), _loud(0)),
    ]
    return {
        "draws": [
            {
                "document": name,
                "secret": secret.hex(),
                "questions": [question.index for question in draw_questions(campaign, secret)],
                **({"window": draw_window(campaign, secret)} if campaign.windows else {}),
            }
            for name, campaign in known.items()
            for secret in map(_secret, range(DRAWS))
        ],
        "accepted": made,
        "refused": [
            {"document": "de-onebit", "record": record, "label": label, "code": code}
            for code, records, labels in (
                ("undeclared-label", RECORDS[:1], ("maybe", "", None, True, 1)),
                ("not-a-record", ([], [["colour", "red"]], "colour", 1, None), ("yes",)),
            )
            for record, label in itertools.product(records, labels)
        ]
        + [
            {"document": "statistics", "record": RECORDS[0], "label": label, "code": "undeclared-label"}
            for label in ("yes", 0, False)
        ],
    }


def _secret(seed):
    return seed.to_bytes(32, "little")


def _asked(campaign, question):
    """The first secret whose device is asked ``question``."""
    secrets = map(_secret, itertools.count())
    return next(secret for secret in secrets if draw_questions(campaign, secret)[0].index == question)


def _loud(*before_noise):
    """Words of noise of 60 scales, up and down in turn, which the device must cut."""
    offset, periods = [0, 0], [0, 1] * 60 + [1]
    return [*before_noise, *(word for sign in (0, 1, 0) for word in (*offset, *periods, sign))]


def _case(name, campaign, seed, secret, script=None):
    record, classes = RECORDS[seed % len(RECORDS)], campaign.label.names
    label = classes[seed % len(classes)]
    coins = RecordingCoins((name, seed), script)
    sent = perturb(campaign, record, label, secret=secret, coins=coins)
    items = _items(campaign, record, label, secret, RecordingCoins((name, seed), script))
    return {
        "document": name,
        "secret": secret.hex(),
        "record": record,
        "label": label,
        "words": [f"{word:016x}" for word in coins.taken],
        "reports": [
            {"question": r.question, "item": item, "id": r.id.hex(), "payload": r.payload.hex()}
            for r, item in zip(sent, items, strict=True)
        ],
        "upload": encode_upload(sent, campaign).hex(),
    }


def _items(campaign, record, label, secret, coins):
    """What was encoded before it was perturbed: an index, or a cell with a value in units of 2**-52."""
    class_index = campaign.label.index_of(label)
    for question in draw_questions(campaign, secret):
        item = item_of(campaign, question, record, class_index, coins)
        question.perturb(item, coins)
        yield {"cell": item.cell, "value": str(item.value)} if isinstance(item, Moment) else item


def uploads(known):
    """What a server must refuse: whole uploads, and single reports of well-framed ones."""
    campaign = known["ss-laplace"]
    sent = [
        report
        for seed in range(40)
        for report in perturb(campaign, {}, "no", secret=_secret(seed), coins=RecordingCoins(seed))
    ]
    two = sorted({report.question: report for report in sent}.values(), key=lambda report: report.question)[:2]
    good = encode_upload(two, campaign)
    one = encode_upload(two[:1], campaign)
    bare = encode_padded(two[:1], 0)
    assert len(bare) + 2 < len(one) < len(good)
    first, second = ([report.question, report.id, report.payload] for report in two)
    malformed = {
        "nothing": b"",
        "cut off": good[:-1],
        "a byte too many": good + b"\0",
        "not padded": bare,
        "a zero too few": one[:-1],
        "a zero too many": one + b"\0",
        "filled up with something": one[:-1] + b"\1",
        "a second value in the place of zeros": bare.ljust(len(one), b"\xc0"),
        "another version": b"\x92\x01" + good[2:],
        "no blocks": bytes.fromhex("920290").ljust(len(one), b"\0"),
        "not an array": bytes.fromhex("01"),
        "a map": bytes.fromhex("80"),
        "a length that lies": bytes.fromhex("9202ddffffffff"),
        "a longer encoding of the version": b"\x92\xcc\x02" + good[2:],
        "blocks in the wrong order": _pack([second, first], campaign),
        "a question twice": _pack([first, first], campaign),
        "a question that does not exist": _pack([[len(campaign.questions), *first[1:]]], campaign),
        "half an id": _pack([[first[0], first[1][:8], first[2]]], campaign),
        "no report": _pack([[first[0], b"", b""]], campaign),
        "a payload too short": _pack([[first[0], first[1], first[2][:-1]]], campaign),
        "two ids and one payload": _pack([[first[0], first[1] * 2, first[2]]], campaign),
    }
    least_refused = struct.pack("<3i", known["ss-laplace"].questions[3].mechanism.bound + 1, 0, 0).hex()
    impossible = [
        ("de-onebit", 1, "0c", "index-out-of-range"),
        ("de-onebit", 3, "0300", "index-out-of-range"),
        ("de-onebit", 3, "0002", "bit-out-of-range"),
        ("ss-laplace", 1, "ff0f", "wrong-subset-size"),
        ("ss-laplace", 1, "0000", "wrong-subset-size"),
        ("ss-laplace", 1, "0080", "padding-bits-set"),
        ("oue-sign", 1, "0010", "padding-bits-set"),
        ("ss-laplace", 3, "ffffff7f" + "00" * 8, "value-out-of-range"),
        ("ss-laplace", 3, "00000080" + "00" * 8, "value-out-of-range"),
        ("ss-laplace", 3, least_refused, "value-out-of-range"),
        ("she-onebit", 1, "00" * 44 + "ffff0000", "value-out-of-range"),
        ("wide", 0, "2c01", "index-out-of-range"),
    ]
    return {
        "document": "ss-laplace",
        "malformed": [
            {"name": name, "upload": data.hex(), "code": "malformed-upload"} for name, data in malformed.items()
        ],
        "impossible": [
            {
                "document": name,
                "upload": _pack([[question, bytes(16), bytes.fromhex(payload)]], known[name]).hex(),
                "code": code,
            }
            for name, question, payload, code in impossible
        ],
    }


def _pack(blocks, campaign):
    return encode_blocks([Block(*block) for block in blocks], campaign)


def generate():
    """File name to content."""
    known = campaigns()
    for campaign in known.values():
        assert campaign.id == document_id(campaign.document)
    trained = training(known, RECORDS)
    reported = reports(known)
    return {
        "documents.json": documents(known),
        "reports.json": reported,
        "uploads.json": uploads(known),
        "training.json": {"accepted": trained, "impossible": impossible(), "refused": models(trained)},
        "values.json": values(),
        "directories.json": directories(),
        "answers.json": answers(),
        "words.json": words(known, reported["accepted"], RECORDS),
        "crowd.json": crowd(),
    }


def render(content):
    """JSON with one case a line."""
    members = []
    for name, value in content.items():
        cases = value if isinstance(value, list) else None
        text = _line(value) if cases is None else "[\n" + ",\n".join(f"  {_line(case)}" for case in cases) + "\n ]"
        members.append(f" {_line(name)}: {text}")
    return "{\n" + ",\n".join(members) + "\n}\n"


def _line(value):
    return json.dumps(value, ensure_ascii=False)


def main(folder):
    for name, content in generate().items():
        (Path(folder) / name).write_text(render(content), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
