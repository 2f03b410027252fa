"""Vectors of what a server must refuse: whole uploads, and single reports of well-framed ones."""

import struct

from exact_coins import RecordingCoins

from ldp_client import perturb
from protocols import encode_upload
from protocols.wire import Block, encode_blocks


def uploads(known):
    """What a server must refuse: whole uploads, and single reports of well-framed ones."""
    campaign = known["ss-laplace"]
    sent = [
        report
        for seed in range(40)
        for report in perturb(campaign, {}, "no", secret=seed.to_bytes(32, "little"), coins=RecordingCoins(seed))
    ]
    two = sorted({report.question: report for report in sent}.values(), key=lambda report: report.question)[:2]
    good = encode_upload(two)
    first, second = ([report.question, report.id, report.payload] for report in two)
    malformed = {
        "nothing": b"",
        "cut off": good[:-1],
        "a byte too many": good + b"\0",
        "another version": b"\x92\x02" + good[2:],
        "no blocks": bytes.fromhex("920190"),
        "not an array": bytes.fromhex("01"),
        "a map": bytes.fromhex("80"),
        "a length that lies": bytes.fromhex("9201ddffffffff"),
        "a longer encoding of the version": b"\x92\xcc\x01" + good[2:],
        "blocks in the wrong order": _pack([second, first]),
        "a question twice": _pack([first, first]),
        "a question that does not exist": _pack([[len(campaign.questions), *first[1:]]]),
        "half an id": _pack([[first[0], first[1][:8], first[2]]]),
        "no report": _pack([[first[0], b"", b""]]),
        "a payload too short": _pack([[first[0], first[1], first[2][:-1]]]),
        "two ids and one payload": _pack([[first[0], first[1] * 2, first[2]]]),
    }
    impossible = []
    least_refused = struct.pack("<3i", known["ss-laplace"].questions[3].mechanism.bound + 1, 0, 0).hex()
    for name, question, payload, code in (
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
    ):
        block = Block(question, bytes(16), bytes.fromhex(payload))
        impossible.append({"document": name, "upload": encode_blocks([block]).hex(), "code": code})
    return {
        "document": "ss-laplace",
        "malformed": [
            {"name": name, "upload": data.hex(), "code": "malformed-upload"} for name, data in malformed.items()
        ],
        "impossible": impossible,
    }


def _pack(blocks):
    return encode_blocks([Block(*block) for block in blocks])
