"""HPKE against the vectors of RFC 9180, and against another implementation."""

import hmac

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from pyhpke import AEADId, CipherSuite, KDFId, KEMId

from ldp_aggregator.server.hpke import receive

INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
PLAIN = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")

# RFC 9180, appendices A.1.1 and A.2.1: base mode. Exports are of "", of a zero byte, and of "TestContext".
VECTORS = {
    1: {
        "enc": "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
        "secret": "4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8",
        "public": "3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d",
        "key": "4531685d41d65f03dc48f6b8302c05b0",
        "nonce": "56d890e5accaaf011cff4b7d",
        "exporter": "45ff1c2e220db587171952c0592d5f5ebe103f1561a2614e38f2ffd47e99e3f8",
        "sealed": "f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a",
        "exports": [
            "3853fe2b4035195a573ffc53856e77058e15d9ea064de3e59f4961d0095250ee",
            "2e8f0b54673c7029649d4eb9d5e33bf1872cf76d623ff164ac185da9e88c21a5",
            "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931",
        ],
    },
    3: {
        "enc": "1afa08d3dec047a643885163f1180476fa7ddb54c6a8029ea33f95796bf2ac4a",
        "secret": "8057991eef8f1f1af18f4a9491d16a1ce333f695d4db8e38da75975c4478e0fb",
        "public": "4310ee97d88cc1f088a5576c77ab0cf5c3ac797f3d95139c6c84b5429c59662a",
        "key": "ad2744de8e17f4ebba575b3f5f5a8fa1f69c2a07f6e7500bc60ca6e3e3ec1c91",
        "nonce": "5c4d98150661b848853b547f",
        "exporter": "a3b010d4994890e2c6968a36f64470d3c824c8f5029942feb11e7a74b2921922",
        "sealed": "1c5250d8034ec2b784ba2cfd69dbdb8af406cfe3ff938e131f0def8c8b60b4db21993c62ce81883d2dd1b51a28",
        "exports": [
            "4bbd6243b8bb54cec311fac9df81841b6fd61f56538a775e7c80a9f40160606e",
            "8c1df14732580e5501b00f82b10a1647b40713191b7c1240ac80e2b68808ba69",
            "5acb09211139c43b3090489a9da433e8a30ee7188ba8b0a9a1ccf0c229283e53",
        ],
    },
}
CIPHERS = {1: AESGCM, 3: ChaCha20Poly1305}

# RFC 9458, appendix A.
SECRET = bytes.fromhex("3c168975674b2fa8e465970b79c8dcf09f1c741626480bd4c6162fc5b6a98e1a")
MESSAGE = bytes.fromhex("00034745540568747470730b6578616d706c652e636f6d012f")
SEALED = bytes.fromhex(
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b4726374e469135906992e1268c594d2a10c"
    "695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525"
)
RESPONSE_INFO = b"message/bhttp request\0" + SEALED[:7]
NONCE = bytes.fromhex("c789e7151fcba46158ca84b04464910d")
SEALED_ANSWER = bytes.fromhex("86f9013e404feea014e7be4a441f234f857fbd")


def key_of(text):
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def public_key(private):
    return private.public_key().public_bytes_raw()


@pytest.mark.parametrize("aead", VECTORS)
def test_what_is_derived_is_what_rfc_9180_publishes(aead):
    vector = VECTORS[aead]
    private, public, enc = key_of(vector["secret"]), bytes.fromhex(vector["public"]), bytes.fromhex(vector["enc"])
    assert public_key(private) == public
    secrets = receive(private, public, enc, aead, INFO)
    for name in ("enc", "key", "nonce", "exporter"):
        assert getattr(secrets, name).hex() == vector[name]
    assert CIPHERS[aead](secrets.key).encrypt(secrets.nonce, PLAIN, b"Count-0").hex() == vector["sealed"]
    assert [secrets.export(context, 32).hex() for context in (b"", b"\0", b"TestContext")] == vector["exports"]


def test_the_exchange_of_rfc_9458():
    private = X25519PrivateKey.from_private_bytes(SECRET)
    secrets = receive(private, public_key(private), SEALED[7:39], 1, RESPONSE_INFO)
    assert secrets.open(SEALED[39:]) == MESSAGE
    assert secrets.seal_answer(NONCE, b"\x01\x40\xc8") == SEALED_ANSWER


def peer(aead):
    return CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId(aead))


@pytest.mark.parametrize("aead", [1, 3])
@pytest.mark.parametrize("size", [0, 1, 1069, 70_000])
def test_what_another_implementation_seals_opens_here_and_exports_the_same(aead, size):
    private, of = X25519PrivateKey.generate(), peer(aead)
    message = (bytes(range(256)) * (size // 256 + 1))[:size]
    enc, sender = of.create_sender_context(of.kem.deserialize_public_key(public_key(private)), INFO)
    secrets = receive(private, public_key(private), enc, aead, INFO)
    sealed = sender.seal(message)
    assert secrets.open(sealed) == message
    assert [secrets.export(b"x", length) for length in (16, 32)] == [sender.export(b"x", length) for length in (16, 32)]
    for wrong in (sealed[:-1], sealed + b"\0", sealed[:-1] + bytes([sealed[-1] ^ 1]), b""):
        with pytest.raises(InvalidTag):
            secrets.open(wrong)
    with pytest.raises(InvalidTag):
        receive(private, public_key(private), enc, aead, INFO + b"x").open(sealed)


@pytest.mark.parametrize(("aead", "size"), [(1, 16), (3, 32)])
def test_an_answer_is_sealed_as_rfc_9458_4_4_has_it_with_either_cipher(aead, size):
    """With a secret and a nonce as long as the cipher's key."""
    private, of = X25519PrivateKey.generate(), peer(aead)
    enc, sender = of.create_sender_context(of.kem.deserialize_public_key(public_key(private)), INFO)
    nonce = bytes(range(size))
    extracted = hmac.digest(enc + nonce, sender.export(b"message/bhttp response", size), "sha256")
    key, iv = (hmac.digest(extracted, name + b"\1", "sha256") for name in (b"key", b"nonce"))
    answer = receive(private, public_key(private), enc, aead, INFO).seal_answer(nonce, MESSAGE)
    assert CIPHERS[aead](key[:size]).decrypt(iv[:12], answer, None) == MESSAGE


# RFC 7748, section 6.1: every secret made with one of these points is zero, whoever else has a key.
@pytest.mark.parametrize("point", [0, 1, 2**255 - 20, 2**255 - 19, 2**255 - 18])
def test_a_point_of_a_small_order_makes_no_secret(point):
    private = X25519PrivateKey.generate()
    with pytest.raises(ValueError, match="Error computing shared key"):
        receive(private, public_key(private), point.to_bytes(32, "little"), 1, INFO)
