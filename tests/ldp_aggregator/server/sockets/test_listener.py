"""Certificates and keys of the public listener: what is wrong with them is said with the names of the files."""

import logging
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from ldp_aggregator.server.sockets.listener import load_tls, reload_tls
from ldp_aggregator.service.settings import Settings
from ldp_protocols import LdpError

NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])


@pytest.fixture
def pair(tmp_path):
    """Files of a certificate that ends in so many days, and its key."""

    def made(name, days=90.0):
        key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
        builder = x509.CertificateBuilder(NAME, NAME, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - timedelta(days=365)).not_valid_after(now + timedelta(days=days))
        certificate, secret = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        certificate.write_bytes(builder.sign(key, SHA256()).public_bytes(Encoding.PEM))
        secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, secret

    return made


@pytest.mark.parametrize(
    ("days", "level", "told"),
    [(-1, logging.ERROR, "has expired"), (6.5, logging.WARNING, "expires within a week"), (8, None, "")],
)
def test_a_certificate_that_has_expired_or_soon_will_is_told_of_at_the_start_and_when_it_is_read_again(
    pair, caplog, days, level, told
):
    certificate, key = pair("a", days)
    settings = Settings(tls_certificate=certificate, tls_key=key)
    context = load_tls(settings)
    reload_tls(settings, context)
    assert [(one.levelno, told in one.message) for one in caplog.records] == [(level, True)] * (2 if level else 0)


def test_a_pair_that_does_not_fit_or_is_not_there_names_its_files(pair, tmp_path):
    (certificate, _), (_, other) = pair("a"), pair("b")
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("nothing")
    for first, second, why in (
        (certificate, other, "the key is another certificate's"),
        (certificate, tmp_path / "none.key", f"there is no file {tmp_path / 'none.key'}"),
        (garbage, other, "one of them is not PEM"),
    ):
        with pytest.raises(LdpError) as caught:
            load_tls(Settings(tls_certificate=first, tls_key=second))
        for part in (f"tls_certificate {first} and tls_key {second}", why):
            assert part in str(caught.value)
