"""The client from a shell: ``ldp-client contribute|predict|status|withdraw``, also ``python -m ldp_client``.

A record and a label are read from standard input or from a file, never from the command line, which every user of the
machine can see and a shell remembers.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ldp_client.campaign import DeviceCampaign
from ldp_client.classifier import Classifier
from ldp_client.device import Device
from ldp_client.errors import TransportError
from ldp_client.ledger import apart
from ldp_client.storage.contract import MEMORY
from ldp_client.words import plain
from ldp_protocols.command_line import FAILED, Groups, Parser, add_completion, add_version, run_command
from ldp_protocols.errors import LdpError, RecordError

PROGRAM: Final = "ldp-client"

MAX_EPSILON: Final = 4.0
MAX_TOTAL_EPSILON: Final = 8.0
SEND_SECONDS: Final = 30.0
START_SECONDS: Final = 5.0
"""A server that was started a moment ago answers within these."""

_INPUT: Final = """with the JSON object {"record": {"age": "young", ...}, "label": "yes"}"""
_STANDARD_INPUT: Final = "-"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what is wrong is one line on standard error. Returns an exit code."""
    options = make_parser().parse_args(sys.argv[1:] if arguments is None else arguments)
    return run_command(PROGRAM, lambda: options.run(options), wrong=(LdpError,), failed=(LdpError, OSError))


def make_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        description="Answer a campaign under local differential privacy, and classify with the model it gives.",
        examples=("contribute https://collect.example.org ID --storage device.db --record-file record.json",),
    )
    add_version(parser)
    add_completion(parser, make_parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_device(commands)
    return parser


def _add_device(commands: Groups) -> None:
    """Add the commands of one device."""
    add = commands.add_parser(
        "contribute",
        examples=("https://collect.example.org ID --storage device.db --record-file record.json",),
        help="perturb an answer from one record and send it, once",
        description="Perturb an answer from one record and send it. Running this is the consent, unless it was "
        "withdrawn before. A second run sends what is still unsent and never answers again.",
    )
    _add_common(add)
    add.add_argument(
        "--max-epsilon", type=float, default=MAX_EPSILON, help="most loss in one campaign (default: %(default)g)"
    )
    add.add_argument(
        "--max-crowd-epsilon", type=float, help="most that mixed answers may reveal (a campaign with a crowd needs it)"
    )
    add.add_argument(
        "--max-if-both-collude",
        type=float,
        help="most loss in a campaign with a crowd, where relay and aggregator work together",
    )
    _add_cap(add)
    _add_input(add, "")
    add.add_argument("--consent", action="store_true", help="consent again after a withdrawal")
    add.add_argument(
        "--timeout", type=float, default=SEND_SECONDS, help="seconds to try to deliver (default: %(default)g)"
    )
    add.add_argument(
        "--relay", metavar="URL", help="an Oblivious HTTP relay, where the campaign takes sealed uploads only"
    )
    add.add_argument("--json", action="store_true", help="print a JSON object")
    add.set_defaults(run=_contribute)
    predict = commands.add_parser(
        "predict",
        examples=("https://collect.example.org ID --record-file record.json --json",),
        help="classify one record on this device",
        description="Fetch the model (or take the stored one while offline) and classify one record on this device; "
        "nothing of the record is sent.",
    )
    _add_campaign(predict)
    predict.add_argument("--storage", metavar="FILE", default=MEMORY, help="keeps the model (default: nothing is kept)")
    _add_input(predict, "; needs no label")
    predict.add_argument("--json", action="store_true", help="print the class and all probabilities as JSON")
    predict.set_defaults(run=_predict)
    status = commands.add_parser(
        "status",
        help="what was spent and sent, in plain words",
        description="The cap is that of contribute.",
        examples=("https://collect.example.org ID --storage device.db --json",),
    )
    _add_common(status)
    _add_cap(status)
    status.add_argument("--json", action="store_true", help="print a JSON object")
    status.set_defaults(run=_status, max_epsilon=MAX_EPSILON)
    withdraw = commands.add_parser(
        "withdraw",
        help="delete what is unsent and send nothing further",
        description="Delete what is unsent and send nothing further, until contribute --consent.",
        examples=("https://collect.example.org ID --storage device.db",),
    )
    _add_common(withdraw)
    # A withdrawal spends nothing, whatever the caps are.
    withdraw.set_defaults(run=_withdraw, max_epsilon=MAX_EPSILON, max_total_epsilon=MAX_TOTAL_EPSILON)


def _add_campaign(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the aggregator, such as https://collect.example.org")
    parser.add_argument("campaign_id", metavar="CAMPAIGN_ID")


def _add_common(parser: argparse.ArgumentParser) -> None:
    _add_campaign(parser)
    parser.add_argument(
        "--storage", metavar="FILE", required=True, help="the device's own file: its ledger and its unsent reports"
    )


def _add_input(parser: argparse.ArgumentParser, more: str) -> None:
    explained = f"{_INPUT}{more} (default: -, standard input)"
    parser.add_argument("--record-file", metavar="FILE", default=_STANDARD_INPUT, help=explained)


def _add_cap(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-total-epsilon",
        type=float,
        default=MAX_TOTAL_EPSILON,
        help="most loss over the life of the storage (default: %(default)g)",
    )


def _contribute(options: argparse.Namespace) -> int:
    device, campaign = _open(options)
    record, label = _read(options.record_file)
    _fetch(campaign, options)
    if campaign.status().consent is None or options.consent:
        campaign.grant(timeout=options.timeout)
    receipt = campaign.contribute(record, label)
    delivered = device.run_once(options.timeout)
    status = campaign.status()
    if options.json:
        values = {
            "campaign_id": receipt.campaign_id,
            "epsilon": receipt.epsilon,
            **({} if receipt.crowd_epsilon is None else {"crowd_epsilon": receipt.crowd_epsilon}),
            "total_epsilon": status.total_epsilon,
            "answers": len(receipt.questions),
            "sent": status.sent,
            "queued": status.queued,
            "dropped": {**status.dropped, **status.quarantined},
            "retries": status.retries,
        }
        print(json.dumps(values))
    elif delivered and not status.dropped and not status.quarantined:
        print(
            f'Contributed to "{plain(receipt.title)}": epsilon {receipt.epsilon:.6g}{apart(receipt)} spent, delivered.'
        )
    if status.dropped or status.quarantined:
        reasons = ", ".join(sorted({**status.dropped, **status.quarantined}))
        refused = f"the server says that it refused the report ({reasons}); it is not sent again"
        print(f"{PROGRAM}: {refused}", file=sys.stderr)
        return FAILED
    if not delivered:
        print(
            f"{PROGRAM}: not delivered yet ({status.problem}); the report is kept in {options.storage}, "
            "run the same command again",
            file=sys.stderr,
        )
        return FAILED
    return 0


def _fetch(campaign: DeviceCampaign, options: argparse.Namespace) -> None:
    """Fetch the campaign; wait for a server that only just starts."""
    until = time.monotonic() + min(options.timeout, START_SECONDS)
    while time.monotonic() < until:
        try:
            campaign.fetch(timeout=options.timeout)
            return
        except TransportError as error:  # A try, and a wait.
            if error.code != "unreachable":
                raise
            time.sleep(START_SECONDS / 20)
    campaign.fetch(timeout=options.timeout)


def _predict(options: argparse.Namespace) -> int:
    record, _ = _read(options.record_file)
    storage = MEMORY if options.storage == MEMORY else f"{options.storage}.cache"
    classifier = Classifier.fetch(options.url, options.campaign_id, storage=storage)
    predicted = classifier.predict(record)
    if options.json:
        print(json.dumps({"class": predicted, "probabilities": classifier.predict_proba(record)}))
    else:
        print(predicted)
    return 0


def _status(options: argparse.Namespace) -> int:
    device, campaign = _open(options)
    status = campaign.status()
    if options.json:
        print(json.dumps(dataclasses.asdict(status)))
        return 0
    consent = {None: "nobody has decided", True: "given", False: "withdrawn"}[status.consent]
    print(device.ledger())
    print(f"Consent to this campaign: {consent}. Reports sent: {status.sent}, waiting: {status.queued}.")
    return 0


def _withdraw(options: argparse.Namespace) -> int:
    _, campaign = _open(options)
    done = campaign.withdraw()
    sentence = f"Withdrawn. Unsent reports deleted: {done.deleted}."
    if done.on_its_way:
        sentence += f" Some may have arrived: {done.on_its_way} had begun to leave."
    print(sentence)
    return 0


def _open(options: argparse.Namespace) -> tuple[Device, DeviceCampaign]:
    relay = getattr(options, "relay", None)  # status and withdraw send nothing
    device = Device(options.storage, max_total_epsilon=options.max_total_epsilon, relay=relay)
    return device, device.campaign(
        options.url,
        options.campaign_id,
        max_epsilon=options.max_epsilon,
        max_crowd_epsilon=getattr(options, "max_crowd_epsilon", None),  # status and withdraw spend nothing
        max_if_both_collude=getattr(options, "max_if_both_collude", None),
    )


def _read(name: str) -> tuple[dict[str, Any], object]:
    """Record and label; a message about them never repeats any of them."""
    try:
        text = sys.stdin.read() if name == _STANDARD_INPUT else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise OSError(f"{name} cannot be read: {error.strerror}; '-' is standard input") from None
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict) or not isinstance(given.get("record"), dict):
        raise RecordError(f"the input must be {_INPUT.removeprefix('with ')}", "not-a-record") from None
    return given["record"], given.get("label")


if __name__ == "__main__":
    sys.exit(main())
