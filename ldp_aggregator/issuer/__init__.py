"""Sign answer tokens, blindly, for people whom an app's backend knows: RFC 9578, token type 2 (blind RSA, RFC 9474).

An issuer sees who asks, and never a token or an answer; an aggregator sees tokens, and never who asked. Run them apart,
best for two operators. :class:`TokenIssuer` is for the app's own backend; ``ldp-issuer`` serves it behind a proxy that
knows people.
"""

from ldp_protocols.names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__spec__)
