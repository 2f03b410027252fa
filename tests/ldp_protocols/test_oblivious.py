"""Binary HTTP and the encapsulation of Oblivious HTTP against the vectors that their RFCs publish."""

import base64

import pytest
from pyhpke import AEADId, CipherSuite, KDFId, KEMId, KEMKeyPair

from ldp_client.errors import TransportError
from ldp_client.network.sealed import Sealed
from ldp_protocols import DocumentError
from ldp_protocols.document.gateway import Gateway, read_configuration
from ldp_protocols.oblivious import (
    BinaryRequest,
    BinaryResponse,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    nonce_bytes,
    seal_header,
    seal_info,
    suite,
)

CURL = (
    ("user-agent", "curl/7.16.3 libcurl/7.16.3 OpenSSL/0.9.7l zlib/1.2.3"),
    ("host", "www.example.com"),
    ("accept-language", "en, mi"),
)


def unhex(text):
    return bytes.fromhex("".join(text.split()))


# RFC 9292, section 5.1: the same request with known lengths (figure 10) and without (figure 11).
KNOWN_REQUEST = unhex("""
    00034745 54056874 74707300 0a2f6865 6c6c6f2e 74787440 6c0a7573 65722d61 67656e74 34637572 6c2f372e 31362e33
    206c6962 6375726c 2f372e31 362e3320 4f70656e 53534c2f 302e392e 376c207a 6c69622f 312e322e 3304686f 73740f77
    77772e65 78616d70 6c652e63 6f6d0f61 63636570 742d6c61 6e677561 67650665 6e2c206d 690000
""")
REQUEST = unhex("""
    02034745 54056874 74707300 0a2f6865 6c6c6f2e 7478740a 75736572 2d616765 6e743463 75726c2f 372e3136 2e33206c
    69626375 726c2f37 2e31362e 33204f70 656e5353 4c2f302e 392e376c 207a6c69 622f312e 322e3304 686f7374 0f777777
    2e657861 6d706c65 2e636f6d 0f616363 6570742d 6c616e67 75616765 06656e2c 206d6900 00000000 00000000 00000000
""")
# RFC 9292, section 5.2: a response after two informational ones (figure 13), and one with a trailer (figure 15).
RESPONSE = unhex("""
    03406607 72756e6e 696e670a 22736c65 65702031 35220040 67046c69 6e6b233c 2f737479 6c652e63 73733e3b 2072656c
    3d707265 6c6f6164 3b206173 3d737479 6c65046c 696e6b24 3c2f7363 72697074 2e6a733e 3b207265 6c3d7072 656c6f61
    643b2061 733d7363 72697074 0040c804 64617465 1d4d6f6e 2c203237 204a756c 20323030 39203132 3a32383a 35332047
    4d540673 65727665 72064170 61636865 0d6c6173 742d6d6f 64696669 65641d57 65642c20 3232204a 756c2032 30303920
    31393a31 353a3536 20474d54 04657461 67142233 34616133 38372d64 2d313536 38656230 30220d61 63636570 742d7261
    6e676573 05627974 65730e63 6f6e7465 6e742d6c 656e6774 68023531 04766172 790f4163 63657074 2d456e63 6f64696e
    670c636f 6e74656e 742d7479 70650a74 6578742f 706c6169 6e003348 656c6c6f 20576f72 6c642120 4d792063 6f6e7465
    6e742069 6e636c75 64657320 61207472 61696c69 6e672043 524c462e 0d0a0000
""")
KNOWN_RESPONSE = unhex("""
    0140c800 1d546869 7320636f 6e74656e 7420636f 6e746169 6e732043 524c462e 0d0a0d07 74726169 6c657204 74657874
""")


def test_requests_of_rfc_9292():
    wanted = BinaryRequest("GET", "https", "", "/hello.txt", CURL)
    assert decode_request(KNOWN_REQUEST) == decode_request(REQUEST) == wanted
    assert encode_request(wanted) == KNOWN_REQUEST[:-2]


@pytest.mark.parametrize(("message", "least", "most"), [(KNOWN_REQUEST, 1, 2), (REQUEST, 1, 12)])
def test_a_request_may_be_cut_where_rfc_9292_says_and_nowhere_else(message, least, most):
    whole = decode_request(message)
    for cut in range(1, len(message)):
        if least <= cut <= most:
            assert decode_request(message[:-cut]) == whole
        elif message[:-cut] not in (KNOWN_REQUEST[:23], REQUEST[:23]):  # Behind the control data: no headers.
            with pytest.raises(DocumentError, match="not a binary HTTP message"):
                decode_request(message[:-cut])


def test_responses_of_rfc_9292():
    told = decode_response(RESPONSE)
    assert (told.status, told.body) == (200, b"Hello World! My content includes a trailing CRLF.\r\n")
    assert told.headers[0] == ("date", "Mon, 27 Jul 2009 12:28:53 GMT")
    assert told.headers[-1] == ("content-type", "text/plain")
    assert decode_response(KNOWN_RESPONSE) == BinaryResponse(200, (), b"This content contains CRLF.\r\n")


@pytest.mark.parametrize(
    "message",
    [
        "",
        "04",  # no such framing
        "01 40c8",  # a response is no request
        "00 03474554 05 6874747073 00 01 2f 00 00 00 01",  # padding that is not zero
        "00 03474554 05 6874747073 00 01 2f 03 01 41 00",  # a name in capitals
        "00 03474554 05 6874747073 00 01 2f 03 00 01 61",  # a field without a name
        "00 03474554 05 6874747073 00 01 2f 03 01 61 0120",  # a field that goes on behind its section
        "00 03474554 05 6874747073 00 01 2f 04 0161 0120",  # a value that is a space
        "00 03474554 05 6874747073 00 01 2f 04 0161 010a",  # a value that is the end of a line
        "00 03474554 05 6874747073 00 01 2f 0a 073a6d6574686f64 0141",  # a pseudo-field
        "00 03474554 05 6874747073 00 01 2f 00 c000000000000001",  # a body of one byte that is not there
    ],
)
def test_what_is_no_request_is_refused(message):
    with pytest.raises(DocumentError, match="not a binary HTTP message"):
        decode_request(unhex(message))


@pytest.mark.parametrize("status", ["40c7", "4258", "00"])  # 199 and nothing after it, 600, 0
def test_what_is_no_response_is_refused(status):
    with pytest.raises(DocumentError, match="not a binary HTTP message"):
        decode_response(unhex("01" + status))


@pytest.mark.parametrize("size", [0, 1, 63, 64, 16_383, 16_384, 70_000])
def test_messages_of_every_length_come_back(size):
    request = BinaryRequest("POST", "https", "a.example", "/p", (("content-type", "x/y"),), bytes(size))
    assert decode_request(encode_request(request)) == request
    response = BinaryResponse(404, (("retry-after", "5"),), bytes(size))
    padded = encode_response(response, multiple=512)
    assert len(padded) % 512 == 0
    assert decode_response(padded) == decode_response(encode_response(response)) == response


@pytest.mark.parametrize(
    ("size", "head"),
    [(63, "3f"), (64, "4040"), (16_383, "7fff"), (16_384, "80004000")],  # RFC 9000, section 16
)
def test_a_length_is_written_in_the_fewest_bytes(size, head):
    request = BinaryRequest("GET", "https", "a", "/", (), bytes(size))
    control = unhex("00 03474554 05 6874747073 01 61 01 2f 00")
    assert encode_request(request) == control + unhex(head) + bytes(size)
    assert decode_request(control + unhex("c0") + size.to_bytes(7, "big") + bytes(size)) == request


def whole(message, decode):
    try:
        decode(message)
    except DocumentError:
        return False
    return True


def test_a_stranger_sends_64_chunks_fields_or_informational_answers_and_no_more():
    control = unhex("03474554 05 6874747073 00 01 2f")
    line = unhex("01 61 01 62")
    for count, taken in ((64, True), (65, False)):
        chunked = b"\2" + control + b"\0" + b"\1x" * count + b"\0"
        assert whole(chunked, decode_request) == taken
        known = b"\0" + control + (0x4000 | 4 * count).to_bytes(2, "big") + line * count
        assert whole(known, decode_request) == taken
        assert whole(b"\2" + control + line * count + b"\0", decode_request) == taken
    for count, taken in ((63, True), (64, False)):
        assert whole(b"\1" + unhex("4066 00") * count + unhex("40c8"), decode_response) == taken


def test_what_fills_its_place_to_the_byte_gets_no_padding_and_one_byte_more_all_of_it():
    def length(value, multiple=1):
        return len(encode_response(BinaryResponse(200, (("x", "a" * value),)), multiple=multiple))

    assert [length(value) for value in (0, 59, 60)] == [7, 66, 67]
    assert [length(value, 66) for value in (0, 58, 59, 60)] == [66, 66, 66, 132]
    sent = [BinaryRequest("GET", "https", "a", "/", (("x", "a" * value),), bytes(9)) for value in (41, 42)]
    assert [len(encode_request(one)) for one in sent] == [70, 71]
    assert [len(encode_request(one, beside=61)) for one in sent] == [9 + 61, 9 + 122]


def test_headers_that_http_does_not_allow_are_not_written():
    for header in (("x", "a\r\nb"), ("X", "a"), ("", "a"), ("x y", "a"), ("x", " a")):
        with pytest.raises(DocumentError):
            encode_request(BinaryRequest("POST", "https", "a", "/", (header,)))


def test_a_nonce_is_as_long_as_the_longer_of_the_aeads_nonce_and_key():
    """RFC 9458, section 4.4: max(Nn, Nk), of RFC 9180's AES-128-GCM (12, 16) and ChaCha20Poly1305 (12, 32)."""
    assert (nonce_bytes(1), nonce_bytes(3)) == (16, 32)


def test_a_suite_is_the_one_that_rfc_9458_names():
    of = CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305)
    assert [(one.kem.id, one.kdf.id, one.aead.id) for one in (suite(3), of)] == 2 * [
        (KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.CHACHA20_POLY1305)
    ]


# RFC 9458, appendix A.
SECRET = unhex("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a")
CONFIGURATION = unhex("01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003")
MESSAGE = unhex("00034745540568747470730b6578616d706c652e636f6d012f")
EPHEMERAL = unhex("bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73")
ENC = unhex("4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472")
SEALED = unhex("""
    010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992e1268c594d2a10c
    695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525
""")
NONCE = unhex("c789e7151fcba46158ca84b04464910d")
ANSWER = unhex("0140c8")
SEALED_ANSWER = unhex("c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd")


@pytest.fixture
def gateway():
    text = base64.urlsafe_b64encode(CONFIGURATION).rstrip(b"=").decode()
    read = read_configuration(text)
    assert isinstance(read, Gateway)
    assert read.key == text
    return read


@pytest.fixture
def sealed(gateway, monkeypatch):
    of = suite(1)
    private = of.kem.deserialize_private_key(EPHEMERAL)
    public = of.kem.deserialize_public_key(private.raw.public_key().public_bytes_raw())
    monkeypatch.setattr(of.kem._prim, "generate_key_pair", lambda: KEMKeyPair(private, public))
    return Sealed(gateway, MESSAGE)


def test_the_exchange_of_rfc_9458_on_the_device(gateway, sealed):
    assert (gateway.key_id, gateway.aeads) == (1, (1, 3))
    assert encode_request(BinaryRequest("GET", "https", "example.com", "/")) == MESSAGE
    assert seal_info(seal_header(1, 1)) == unhex("6d6573736167652f626874747020726571756573740001002000010001")
    assert sealed.body == SEALED
    assert sealed.open(SEALED_ANSWER) == ANSWER
    assert decode_response(ANSWER) == BinaryResponse(200)


def test_every_byte_of_an_answer_that_is_changed_or_missing_is_noticed(sealed, code_of):
    for place in range(len(SEALED_ANSWER)):
        for changed in (
            SEALED_ANSWER[:place],
            bytes([*SEALED_ANSWER[:place], SEALED_ANSWER[place] ^ 1]) + SEALED_ANSWER[place + 1 :],
        ):
            assert code_of(TransportError, sealed.open, changed) == "not-the-gateway"
    with pytest.raises(TransportError):
        sealed.open(SEALED_ANSWER + b"\0")
