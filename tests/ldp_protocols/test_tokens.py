"""Answer tokens: the published vector, the issuer in a document, and what is read from a header."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

import pytest
from drafts import draft, text
from issuing import MODULUS, PUBLISHED, issuer, sign

from ldp_protocols import Campaign, DocumentError, DraftError, LdpError
from ldp_protocols.tokens import challenge, credentials, padded, read_credentials, token_input

TOKEN_BYTES = 354


VECTOR = {name: bytes.fromhex(value) for name, value in PUBLISHED.items() if name != "source"}
COLOUR = text("colour", "red", "green")


def compiled(**changes):
    return Campaign.compile(draft(COLOUR, issuer=issuer(**changes)))


def test_the_published_vector_of_the_issuance_protocol_holds():
    """RFC 9578, and with it RFC 9474 and the encoding of RFC 8017, 9.1.1."""
    blind = int.from_bytes(VECTOR["blind"], "big")
    signed = VECTOR["token"][: TOKEN_BYTES - 256]
    assert signed[2:34] == VECTOR["nonce"]
    assert signed[34:66] == sha256(VECTOR["token_challenge"]).digest()
    assert signed[66:] == compiled().issuer.key_id == sha256(VECTOR["pkS"]).digest()
    encoded = padded(signed, VECTOR["salt"], 2048)
    request = VECTOR["token_request"]
    assert (request[:2], request[2]) == (b"\0\2", compiled().issuer.key_id[-1])
    assert encoded * pow(blind, 65537, MODULUS) % MODULUS == int.from_bytes(request[3:], "big")
    assert sign(request) == VECTOR["token_response"]
    signature = int.from_bytes(VECTOR["token_response"], "big") * pow(blind, -1, MODULUS) % MODULUS
    assert signed + signature.to_bytes(256, "big") == VECTOR["token"]


def test_a_challenge_is_as_the_published_one_with_the_campaign_as_context():
    campaign = compiled()
    published = VECTOR["token_challenge"]
    head, context = published[: 2 + 2 + len(b"issuer.example")], urlsafe_b64decode(campaign.id + "=")
    assert challenge(campaign) == head + b"\x20" + context + b"\0\0"


def test_an_issuer_is_written_as_it_was_read_and_a_campaign_without_one_says_nothing_of_it():
    campaign = compiled(tokens=3)
    assert Campaign.parse(campaign.document, campaign.id).issuer == campaign.issuer
    assert (campaign.issuer.tokens, compiled().issuer.tokens, campaign.issuer.modulus) == (3, 1, MODULUS)
    padded_key = issuer()["key"] + "=="
    assert compiled(key=padded_key).document == compiled().document
    plain = Campaign.compile(draft(COLOUR))
    assert plain.issuer is None
    assert b"issuer" not in plain.document
    with pytest.raises(LdpError, match="without a token"):
        challenge(plain)


def other_key(change):
    key = bytearray(VECTOR["pkS"])
    change(key)
    return urlsafe_b64encode(bytes(key)).decode()


KEY = issuer()["key"]
NO_KEYS = [
    *("!", "é" * 20, KEY + "===", " " + KEY, KEY.replace("-", "+"), KEY[:-4]),
    other_key(lambda key: key.__setitem__(20, 0)),
    other_key(lambda key: key.__setitem__(-6, key[-6] ^ 1)),  # an even modulus
    other_key(lambda key: key.__setitem__(-256 - 5, 1)),  # a short one
    other_key(lambda key: key.__setitem__(-256 - 5, 0x7F)),  # one of 2,047 bits
    other_key(lambda key: key.__setitem__(-1, 3)),  # another exponent
    other_key(lambda key: key.__setitem__(0, 0x31)),
    other_key(lambda key: key.append(0)),
]
WRONG = {
    "name": [
        *("", "Issuer.example", "https://issuer.example", "issuer..example", "a" * 254, "issuer.example\n"),
        *("-a.b", "a-.b", "a.b-", ".a", "a."),
    ],
    "key": NO_KEYS,
    "tokens": [0, 1025, 1.5],
    "epoch": ["P7D"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_an_issuer_that_is_none_is_refused_by_its_field(name, value):
    with pytest.raises(DraftError) as refused:
        compiled(**{name: value})
    assert refused.value.field == f"issuer.{name}"
    whole = compiled().document
    with pytest.raises(DocumentError, match="issuer"):
        Campaign.parse(whole.replace(b'"issuer":{', b'"issuer":{"more":1,'))


def test_what_is_signed_is_of_the_ids_in_any_order_of_the_campaign_and_of_the_key():
    campaign, ids = compiled(), [bytes([n]) * 16 for n in range(3)]
    signed = token_input(campaign, ids)
    assert signed == token_input(campaign, reversed(ids))
    for other in (ids[:2], [*ids[:2], bytes(16)], [*ids, ids[0]], []):
        assert token_input(campaign, other)[2:34] != signed[2:34]
    elsewhere = Campaign.compile(draft(COLOUR, issuer=issuer(), title="u"))
    assert token_input(elsewhere, ids)[34:66] != signed[34:66]


def test_a_header_shows_a_token_or_none():
    token = VECTOR["token"]
    shown = credentials(token)
    written = urlsafe_b64encode(token).decode()
    for right in (shown, f"privatetoken token={written}", f' PrivateToken  token="{written}" '):
        assert read_credentials(right) == token
    for wrong in ("", "Bearer x", shown[:-2], shown + "x", shown + ", x=1", f"PrivateToken token={written}=", "é"):
        assert read_credentials(wrong) is None
