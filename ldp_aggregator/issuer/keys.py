"""An issuer's key: RSA of 2,048 bits in a PKCS #8 file that its owner alone can read."""

from __future__ import annotations

import os
import stat
from base64 import urlsafe_b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key

from ldp_protocols import LdpError
from ldp_protocols.document.issuer import EXPONENT, MODULUS_BYTES, key_bytes


def make_issuer_key(path: Path) -> RSAPrivateKey:
    """A fresh key in a new file. Raises FileExistsError where there is one, and LdpError."""
    key = generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
    except FileExistsError:
        raise
    except OSError as error:
        raise LdpError("bad-key", f"the key cannot be written to {path}: {error.strerror}") from None
    return key


def read_issuer_key(path: Path) -> RSAPrivateKey:
    """The key in a file. Raises LdpError, also where others than its owner may read it."""
    try:
        mode, text = path.stat().st_mode, path.read_bytes()
    except OSError as error:
        raise LdpError("bad-key", f"the key {path} cannot be read: {error.strerror}") from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise LdpError("bad-key", f"others can read the key {path}; chmod 600 it, and make another if anybody may have")
    try:
        key = load_pem_private_key(text, None)
    except (ValueError, TypeError):
        key = None
    sizes = (8 * MODULUS_BYTES, EXPONENT)
    if not isinstance(key, RSAPrivateKey) or (key.key_size, key.public_key().public_numbers().e) != sizes:
        raise LdpError(
            "bad-key", f"{path} is no RSA key of 2,048 bits with exponent 65537 in PEM; 'ldp-issuer' makes one"
        )
    return key


def public_key(key: RSAPrivateKey) -> str:
    """Return what a draft's ``issuer.key`` says."""
    return urlsafe_b64encode(key_bytes(key.public_key().public_numbers().n)).rstrip(b"=").decode()
