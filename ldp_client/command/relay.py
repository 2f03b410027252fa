"""``python -m ldp_client relay``."""

from __future__ import annotations

import argparse
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ldp_client.errors import ConfigurationError
from protocols.shell import Groups

if TYPE_CHECKING:
    from ldp_client.relay.gateway import Admission


def add_command(commands: Groups) -> None:
    """Add ``relay`` to the client's commands."""
    relay = commands.add_parser(
        "relay",
        examples=("https://collect.example.org ID --storage relay.db --port 8090 --token-file token",),
        help="collect the uploads of devices, mix them, and forward them in large batches",
        description="Serve devices like an aggregator would and forward what they send. An upload is acknowledged "
        "when it is on disk. Stops on SIGTERM or Ctrl-C; what is queued then is forwarded after the next start.",
    )
    relay.add_argument("url", metavar="URL", help="the aggregator, such as https://collect.example.org")
    relay.add_argument("campaign_id", metavar="CAMPAIGN_ID")
    relay.add_argument("--storage", metavar="FILE", required=True, help="where uploads wait")
    relay.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    relay.add_argument("--port", type=int, default=8090, help="port to listen on; 0 takes a free one (default: 8090)")
    relay.add_argument(
        "--least-batch",
        type=int,
        default=1000,
        metavar="N",
        help="forward the reports of at least so many devices together; fewer wait (default: %(default)d)",
    )
    relay.add_argument(
        "--longest-wait",
        type=float,
        metavar="SECONDS",
        help="forward fewer, but never one alone, when the first has waited so long (default: they wait on)",
    )
    relay.add_argument(
        "--gather",
        type=float,
        default=10.0,
        help="a complete batch leaves at a random time within so many seconds (default: %(default)g)",
    )
    relay.add_argument("--token-file", metavar="FILE", help="a token of scope relay, where the aggregator asks for one")
    relay.add_argument(
        "--publisher", metavar="KEY", action="append", help="hand on what this publisher's key has signed; repeatable"
    )
    relay.add_argument(
        "--admission",
        metavar="MODULE:FUNCTION",
        help="a coroutine that is asked (campaign id, headers) before an upload",
    )
    relay.set_defaults(run=_relay)


def _check(name: str | None) -> Admission | None:
    if name is None:
        return None
    module, _, attribute = name.partition(":")
    try:
        return cast("Admission", getattr(import_module(module), attribute))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError("bad-admission", f"--admission {name}: {type(error).__name__}") from None


def _relay(options: argparse.Namespace) -> int:
    # Imported here: the other commands do not pay for a server.
    from ldp_client.relay import Mixing, Relay
    from ldp_client.relay.gateway import Gateway

    token = None if options.token_file is None else Path(options.token_file).read_text(encoding="ascii").strip()
    mixing = Mixing(options.least_batch, options.longest_wait)
    relay = Relay(
        options.url,
        options.campaign_id,
        storage=options.storage,
        token=token,
        publisher=options.publisher,
        mixing=mixing,
    )
    relay.campaign()
    try:
        opened = Gateway(relay, options.host, options.port, admission=_check(options.admission))
    except OSError as error:
        raise OSError(
            f"cannot listen on {options.host} port {options.port}: {error.strerror}; --port takes another"
        ) from None
    with opened as gateway:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        relay.start(first_delay=options.gather)
        together = f"reports of at least {options.least_batch} devices together"
        print(f"forwarding {together}, relaying on {options.host}:{gateway.server_port}", flush=True)
        try:
            gateway.serve_forever()
        except KeyboardInterrupt:
            return 0
        finally:
            relay.close()
    return 0
