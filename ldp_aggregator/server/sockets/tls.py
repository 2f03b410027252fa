"""The certificate of the public listener, and reading it again while the server runs."""

from __future__ import annotations

import logging
import ssl
from typing import Final

from ldp_aggregator.service.settings import Settings, SettingsError
from ldp_aggregator.store.failures import kind_of

LOG: Final = logging.getLogger("ldp_aggregator")


def load_tls(settings: Settings) -> ssl.SSLContext | None:
    """The TLS context of the public listener, None where it speaks plain HTTP. Raises SettingsError."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(f"tls_certificate and tls_key cannot be loaded: {error}") from error
    return context


def reload_tls(settings: Settings, context: ssl.SSLContext | None) -> None:
    """Connections that are open keep the old certificate. A pair that does not load leaves the old one in use."""
    try:
        # A context of its own first: a pair that does not fit together must not end up half loaded.
        if load_tls(settings) is not None and context is not None:
            context.load_cert_chain(str(settings.tls_certificate), str(settings.tls_key))
        LOG.info("certificate reloaded")
    except (SettingsError, OSError, ssl.SSLError) as error:
        LOG.error("certificate not reloaded", extra={"reason": kind_of(error)})
