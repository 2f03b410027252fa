"""``ldp-relay``: collects the uploads of devices, mixes them, and forwards them in large batches."""

from __future__ import annotations

import argparse
import logging
import re
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Final

from ldp_aggregator.relay.door import Door
from ldp_aggregator.relay.forwarding import Relay
from ldp_aggregator.relay.gateway import Admission, Gateway, watching_routes
from ldp_aggregator.relay.mixing import Mixing
from ldp_aggregator.server.log import logged_to_standard_error
from ldp_aggregator.service.named_functions import function_named
from ldp_client.delivery.schedule import Event
from ldp_client.errors import TransportError
from ldp_protocols.command_line import Parser, add_version, place, run_command
from ldp_protocols.errors import LdpError

PROGRAM: Final = "ldp-relay"
LOG: Final = logging.getLogger("ldp_aggregator.relay")
AGAIN_SECONDS: Final = 1.0
"""Seconds before an aggregator that is not up is asked again for the campaign."""
AGAIN_TIMEOUT: Final = 10.0
"""Seconds that it has to answer; a stop waits for it, too."""


def make_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Serve devices like an aggregator, mix their uploads, and forward them in large batches. An "
        "upload is acknowledged when it is on disk. Waits for an aggregator that is not up. Stops on SIGTERM or "
        "Ctrl-C; queued uploads are forwarded after the next start.",
        examples=("https://collect.example.org ID --storage relay.db --port 8090 --token-file token",),
    )
    add_version(parser)
    parser.add_argument("url", metavar="URL", help="the aggregator, such as https://collect.example.org")
    parser.add_argument("campaign_id", metavar="CAMPAIGN_ID")
    parser.add_argument("--storage", metavar="FILE", required=True, help="where uploads wait")
    parser.add_argument(
        "--port",
        type=place,
        default=("127.0.0.1", 8090),
        metavar="[HOST:]PORT",
        help="where to listen; port 0 is a free one (default: 127.0.0.1:8090)",
    )
    parser.add_argument(
        "--least-batch",
        type=int,
        metavar="N",
        help="forward the reports of at least so many devices together (default: 1000, or the campaign's crowd)",
    )
    parser.add_argument(
        "--longest-wait",
        type=float,
        metavar="SECONDS",
        help="forward fewer, but never one alone, once the first has waited so long (default: they wait on)",
    )
    parser.add_argument(
        "--gather",
        type=float,
        default=10.0,
        help="a complete batch leaves at a random time within so many seconds (default: %(default)g)",
    )
    parser.add_argument(
        "--sealed-length",
        type=int,
        action="append",
        default=[],
        metavar="BYTES",
        help="also take sealed uploads of this length, from an app with longer headers; repeatable",
    )
    parser.add_argument(
        "--operations-port",
        type=place,
        metavar="[HOST:]PORT",
        help="answer /healthz, /readyz and /metrics there; port 0 is a free one (default: nowhere)",
    )
    parser.add_argument("--token-file", metavar="FILE", help="a token of scope relay, if the aggregator asks for one")
    parser.add_argument(
        "--publisher",
        metavar="KEY",
        action="append",
        help="pass on directories that this publisher's key has signed; repeatable",
    )
    parser.add_argument(
        "--admission",
        metavar="MODULE:FUNCTION",
        help="a coroutine (campaign id, headers) that checks each upload",
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Relay until told to stop; what is wrong is one line on standard error. Returns an exit code."""
    options = make_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    return run_command(PROGRAM, lambda: _relay(options), wrong=(LdpError,), failed=(LdpError, OSError))


def _relay(options: argparse.Namespace) -> int:
    token = None if options.token_file is None else _token(Path(options.token_file))
    admission = _check(options.admission)
    named = {"least_batch": options.least_batch, "longest_wait": options.longest_wait}
    said = {name: one for name, one in named.items() if one is not None}
    reporter = _EventLog(options.campaign_id, options.url)
    relay = Relay(
        options.url,
        options.campaign_id,
        storage=options.storage,
        token=token,
        publisher=options.publisher,
        sealed_lengths=options.sealed_length,
        mixing=Mixing(**said) if said else None,
        on_event=reporter,
    )
    relay.gathering()  # A storage that is not for it is told of now, and not to every device.
    with logged_to_standard_error("info"), ExitStack() as stack:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        together = _rule(relay, reporter)
        listen = partial(Gateway, relay, admission=admission)
        gateway = stack.enter_context(_listening(listen, *options.port))
        watched = ""
        if options.operations_port is not None:
            watch = partial(Door, watching_routes(relay, gateway.counts))
            watching = stack.enter_context(_listening(watch, *options.operations_port))
            threading.Thread(target=watching.serve_forever, daemon=True).start()
            stack.callback(watching.shutdown)
            watched = f", watched on {options.operations_port[0]}:{watching.server_port}"
        does = "waiting for the aggregator" if together is None else f"forwarding {together}"
        print(f"{does}, relaying on {options.port[0]}:{gateway.server_port}{watched}", flush=True)
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        try:
            while together is None and not stop.wait(AGAIN_SECONDS):
                if (together := _rule(relay, reporter)) is not None:
                    LOG.info("the aggregator is there", extra={"campaign": options.campaign_id})
            if together is not None:
                relay.start(first_delay=options.gather)
            stop.wait()
        finally:
            LOG.info("stopping", extra={"campaign": options.campaign_id})
            gateway.shutdown()
            gateway.socket.close()
            gateway.finish()
            relay.close()
        LOG.info("stopped", extra={"campaign": options.campaign_id})
    return 0


def _token(path: Path) -> str:
    """The token in a file. Raises LdpError."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise LdpError("bad-token", f"--token-file {path} cannot be read: {error.strerror}") from None
    except ValueError:
        token = ""
    if not re.fullmatch(r"[\w.~+/=-]+", token):
        raise LdpError("bad-token", f"--token-file {path} holds no token: one line, as 'token create' prints it")
    return token


def _rule(relay: Relay, reporter: _EventLog) -> str | None:
    """The rule of what leaves together; None while the aggregator is not up. Raises LdpError for none."""
    try:
        return f"reports of at least {relay.rule(timeout=AGAIN_TIMEOUT).least_batch} devices together"
    except TransportError as error:
        if error.status is not None and error.status < 500:
            raise
        reporter.waiting(error.code)
        return None


class _EventLog:
    """Writes into the log why nothing can be forwarded, once for each reason, and that it goes on."""

    def __init__(self, campaign_id: str, url: str) -> None:
        self._campaign_id, self._url, self._problem = campaign_id, url, ""

    def waiting(self, reason: str) -> None:
        """Log, once for each reason, that the aggregator has not been reached yet."""
        if reason != self._problem:
            fields = {"campaign": self._campaign_id, "reason": f"{reason} at {self._url}"}
            LOG.warning("waiting for the aggregator", extra=fields)
        self._problem = reason

    def __call__(self, event: Event) -> None:
        fields = {"campaign": self._campaign_id, "reason": event.code or ""}
        if event.kind in ("dropped", "quarantined"):
            LOG.error("reports are not forwarded", extra=fields)
        elif event.kind == "sent" and self._problem:
            LOG.info("forwarding again", extra={"campaign": self._campaign_id})
        elif event.kind in ("retry", "problem") and self._problem != event.code:
            LOG.warning("nothing is forwarded", extra=fields)
        self._problem = "" if event.kind == "sent" else fields["reason"]


def _check(name: str | None) -> Admission | None:
    if name is None:
        return None
    try:
        return function_named(name)
    except ValueError as error:
        raise LdpError("bad-admission", f"--admission: {error}") from None


def _listening(listen: Callable[[str, int], Door], host: str, port: int) -> Door:
    try:
        return listen(host, port)
    except OSError as error:
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}; another port may be free") from None


if __name__ == "__main__":
    sys.exit(main())
