"""Vectors of directories: what a publisher has signed, and what must not be taken for it."""

import base64
import json

from ldp_aggregator.service.signing import public_key, sign
from ldp_protocols.document.directory import PREFIX, L

SEED, OTHER = bytes(range(32)), bytes([1]) * 32
STATEMENT = {
    "version": 7,
    "expires": "2027-03-01T00:00:00Z",
    "campaigns": [{"id": "A" * 43, "model": "0f" * 32}, {"id": "B" * 43, "model": None}, {"id": "C" * 43}],
}


def directories():
    """``accepted`` ones with what they say, and ``refused`` ones with their code, all of one key."""
    statements = {
        "with models, and campaigns without": STATEMENT,
        "no campaign": STATEMENT | {"campaigns": []},
        "the largest version": STATEMENT | {"version": 2**53 - 1},
        "as many campaigns as there may be": STATEMENT | {"campaigns": [{"id": f"campaign {i}"} for i in range(256)]},
        "letters of other alphabets": STATEMENT | {"campaigns": [{"id": "größe 大"}]},
        "a campaign twice, of which the last word holds": STATEMENT
        | {"campaigns": [{"id": "A", "model": "00" * 32}, {"id": "B"}, {"id": "A", "model": "ff" * 32}]},
    }
    return {
        "key": public_key(SEED),
        "accepted": [
            {"name": name, "document": _signed(_text(content)), **_shown(content)}
            for name, content in statements.items()
        ],
        "refused": [
            {"name": name, "document": document, "code": code}
            for code, documents in (("wrong-signature", _unsigned()), ("malformed-directory", _malformed()))
            for name, document in documents.items()
        ],
    }


def _shown(content):
    named = {entry["id"]: entry.get("model") for entry in content["campaigns"]}
    return {"version": content["version"], "expires": content["expires"], "campaigns": named}


def _unsigned():
    text = _text(STATEMENT)
    right = sign(SEED, PREFIX + text.encode())
    later = right[:32] + (int.from_bytes(right[32:], "little") + L).to_bytes(32, "little")
    return {
        "by another key": _signed(text, seed=OTHER),
        "without the prefix": _document(text, _base64(sign(SEED, text.encode()))),
        "another statement": _document(_text(STATEMENT | {"version": 8}), _base64(right)),
        "a bit of the signature": _document(text, _base64(bytes([right[0] ^ 1]) + right[1:])),
        "a second signature made of the first": _document(text, _base64(later)),
        "half a signature": _document(text, _base64(right[:32])),
        "no signature": _document(text, ""),
        "no base64url": _document(text, "?"),
        "base64url with padding": _document(text, _base64(right) + "=="),
        "base64url with bits left over": _document(text, _base64(right)[:-1] + "_"),
        "a statement that is none, unsigned": _document("{", _base64(right)),
    }


def _malformed():
    entry = STATEMENT["campaigns"][0]
    statements = {
        "no JSON": "{",
        "a list": "[]",
        "a key twice": '{"version":7,' + _text(STATEMENT)[1:],
        "an unknown member": _text(STATEMENT | {"extra": 1}),
        **{f"no {name}": _text({k: v for k, v in STATEMENT.items() if k != name}) for name in STATEMENT},
        **{f"version {version}": _text(STATEMENT | {"version": version}) for version in (0, -1, 1.5, "7", True, 2**53)},
        **{
            f"expires {time}": _text(STATEMENT | {"expires": time})
            for time in (None, 1, "tomorrow", "2027-03-01", "2027-02-30T00:00:00Z", "2027-03-01T00:00:00+01:00")
        },
        **{
            f"campaigns {wrong}": _text(STATEMENT | {"campaigns": wrong})
            for wrong in ({}, None, [None], [{}], [{"id": ""}], [{"id": " "}], [{"id": 1}], [entry | {"model": 1}])
        },
        "an empty model": _text(STATEMENT | {"campaigns": [entry | {"model": ""}]}),
        "an unknown member of a campaign": _text(STATEMENT | {"campaigns": [entry | {"url": "x"}]}),
        "too many campaigns": _text(STATEMENT | {"campaigns": [{"id": f"{i}"} for i in range(257)]}),
    }
    right = json.loads(_signed(_text(STATEMENT)))
    documents = {
        "no document": "",
        "a document that is a list": "[]",
        "a document without a signature": json.dumps({"statement": right["statement"]}),
        "a document with another member": json.dumps(right | {"key": "A"}),
        "a signature that is no text": json.dumps(right | {"signature": None}),
        "a statement that is no text": json.dumps(right | {"statement": STATEMENT}),
        "a document with a key twice": '{"signature":"",' + json.dumps(right)[1:],
    }
    return {name: _signed(text) for name, text in statements.items()} | documents


def _signed(statement, seed=SEED):
    return _document(statement, _base64(sign(seed, PREFIX + statement.encode())))


def _document(statement, signature):
    return json.dumps({"statement": statement, "signature": signature}, ensure_ascii=False)


def _text(content):
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def _base64(raw):
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
