"""``ldp-issuer``: signs answer tokens behind a proxy that knows people."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ldp_protocols import Campaign, LdpError
from ldp_protocols.command_line import Parser, add_version, between, place, run_command, say

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

PROGRAM: Final = "ldp-issuer"


class NotInstalledError(LdpError):
    """A library of the extra ``issuer`` is missing."""


def make_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Sign a fixed number of answer tokens for each person, without seeing tokens or answers. "
        "Serves HTTP on loopback, behind a proxy with a login that names the person in a header; prints the public "
        "key for a campaign's draft. Makes the key if the file is missing.",
        examples=("issuer.pem --people people.sqlite --person-header X-Remote-User",),
    )
    add_version(parser)
    parser.add_argument("key", type=Path, metavar="KEY.pem", help="the key; its owner alone can read it")
    parser.add_argument(
        "--relay-key", type=Path, metavar="KEY.pem", help="another key, for the tokens that relays see; made if missing"
    )
    parser.add_argument(
        "--people", type=Path, metavar="FILE", help="file of the tokens that each person had (default: serve nothing)"
    )
    parser.add_argument(
        "--person-header",
        default="X-Remote-User",
        metavar="NAME",
        help="header in which the proxy names the person; the proxy must strip it from incoming requests "
        "(default: %(default)s)",
    )
    parser.add_argument("--tokens", type=_tokens, default=1, metavar="N", help="for each person (default: 1)")
    parser.add_argument(
        "--document",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a published campaign's document; its key and number of tokens must be these; repeatable",
    )
    parser.add_argument(
        "--operations-port",
        type=place,
        metavar="[HOST:]PORT",
        help="answer /healthz, /readyz and /metrics there (default: nowhere)",
    )
    parser.add_argument(
        "--port",
        type=place,
        default=("127.0.0.1", 8091),
        metavar="[HOST:]PORT",
        help="where to listen; only the proxy may reach it, since it says who asks (default: 127.0.0.1:8091)",
    )
    return parser


def _tokens(text: str) -> int:
    return int(between(0, 1025)(text))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line, by default the process's; a failure is one line on standard error."""
    options = make_parser().parse_args(arguments)
    return run_command(PROGRAM, lambda: _issue(options), wrong=(NotInstalledError,), failed=(LdpError,))


def _issue(options: argparse.Namespace) -> None:
    try:
        from ldp_aggregator.issuer.issuing import check_apart, make_issuer_key, public_key, read_issuer_key

        keys: list[RSAPrivateKey] = []
        for path in (options.key, options.relay_key):
            if path is not None:
                keys.append(read_issuer_key(path) if path.exists() else make_issuer_key(path, *keys))
        if len(keys) > 1:
            check_apart(*keys)
        named = dict(zip(("key", "relay_key"), map(public_key, keys), strict=False))
        for document in options.document:
            _compare(document, named | {"tokens": options.tokens})
        lines = ", ".join(f'{name} = "{key}"' for name, key in named.items())
        say(f'issuer = {{ name = "YOUR.HOST", {lines}, tokens = {options.tokens} }}')
        if options.people is not None:
            from ldp_aggregator.issuer.issuing import TokenIssuer
            from ldp_aggregator.issuer.service import Service, serve
            from ldp_aggregator.server.log import logged_to_standard_error

            issuer = TokenIssuer(keys[0], options.people, options.tokens, *keys[1:])
            service = Service(issuer, options.person_header)
            with logged_to_standard_error("info"):
                asyncio.run(serve(service, options.port, options.operations_port))
    except ModuleNotFoundError as error:
        raise NotInstalledError("not-installed", f"needs {error.name}: pip install 'ldp-bayes[issuer]'") from None


def _compare(path: Path, served: Mapping[str, Any]) -> None:
    """Check that a campaign's document names these keys and this number of tokens. Raises LdpError."""
    try:
        campaign = Campaign.parse(path.read_bytes())
    except OSError as error:
        raise LdpError("bad-document", f"{path} cannot be read: {error.strerror}") from None
    named = {} if campaign.issuer is None else campaign.issuer.to_json()
    if [named.get(one) for one in ("key", "relay_key")] != [served.get(one) for one in ("key", "relay_key")]:
        raise LdpError("other-key", f"{path}: the campaign's issuer has another key, or it has none")
    if named["tokens"] != served["tokens"]:
        text = f"{path}: the campaign promises {named['tokens']} tokens, and --tokens says {served['tokens']}"
        raise LdpError("other-tokens", text)


if __name__ == "__main__":
    sys.exit(main())
