"""The commands of one device: contribute, predict, status, withdraw."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Final

from ldp_client.client import Client
from ldp_client.errors import ClientError, ModelUnavailableError
from ldp_client.storage.contract import MEMORY

MAX_EPSILON: Final = 4.0
MAX_TOTAL_EPSILON: Final = 8.0
SEND_SECONDS: Final = 30.0

UNDELIVERED: Final = 2


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add them to the client's commands."""
    add = commands.add_parser(
        "contribute",
        help="perturb an answer from one record and send it, once",
        description="Perturb an answer from one record and send it. Running this is the consent, unless it was "
        "withdrawn before. A second run sends what is still unsent and never answers again.",
    )
    _add_common(add, storage_required=True)
    add.add_argument("--record", required=True, help="the record, a JSON object of feature names and values")
    add.add_argument("--label", required=True, help="the record's class")
    add.add_argument("--consent", action="store_true", help="consent again after a withdrawal")
    add.add_argument(
        "--timeout", type=float, default=SEND_SECONDS, help="seconds to try to deliver (default: %(default)g)"
    )
    add.add_argument("--json", action="store_true", help="print a JSON object")
    add.set_defaults(run=_contribute)
    predict = commands.add_parser(
        "predict",
        help="classify one record on this device",
        description="Fetch the model (or take the stored one while offline) and classify one record on this device; "
        "nothing of the record is sent.",
    )
    _add_common(predict, storage_required=False)
    predict.add_argument("--record", required=True, help="the record, a JSON object of feature names and values")
    predict.add_argument("--json", action="store_true", help="print the class and all probabilities as JSON")
    predict.set_defaults(run=_predict)
    status = commands.add_parser("status", help="what was spent and sent, in plain words")
    _add_common(status, storage_required=True)
    status.add_argument("--json", action="store_true", help="print a JSON object")
    status.set_defaults(run=_status)
    withdraw = commands.add_parser("withdraw", help="delete what is unsent and send nothing further")
    _add_common(withdraw, storage_required=True)
    withdraw.set_defaults(run=_withdraw)


def _add_common(parser: argparse.ArgumentParser, *, storage_required: bool) -> None:
    parser.add_argument("url", metavar="URL", help="the aggregator, such as https://collect.example.org")
    parser.add_argument("campaign_id", metavar="CAMPAIGN_ID")
    parser.add_argument(
        "--storage",
        metavar="FILE",
        required=storage_required,
        default=MEMORY,
        help="the device's own file: its ledger, its unsent reports, its model"
        + ("" if storage_required else " (default: nothing is kept)"),
    )
    parser.add_argument(
        "--max-epsilon", type=float, default=MAX_EPSILON, help="most loss in one campaign (default: %(default)g)"
    )
    parser.add_argument(
        "--max-total-epsilon",
        type=float,
        default=MAX_TOTAL_EPSILON,
        help="most loss over the life of the storage (default: %(default)g)",
    )


def _contribute(options: argparse.Namespace) -> int:
    client = _client(options)
    record = _record(options.record)
    if client.status().consent is None or options.consent:
        client.grant()
    receipt = client.contribute(record, options.label)
    delivered = client.run_once(options.timeout)
    status = client.status()
    if options.json:
        print(
            json.dumps(
                {
                    "campaign_id": receipt.campaign_id,
                    "epsilon": receipt.epsilon,
                    "total_epsilon": status.total_epsilon,
                    "answers": len(receipt.questions),
                    "sent": status.sent,
                    "queued": status.queued,
                    "dropped": {**status.dropped, **status.quarantined},
                    "retries": status.retries,
                }
            )
        )
    elif delivered and not status.dropped and not status.quarantined:
        print(f'Contributed to "{receipt.title}": epsilon {receipt.epsilon:.6g} spent, delivered.')
    if status.dropped or status.quarantined:
        reasons = ", ".join(sorted({**status.dropped, **status.quarantined}))
        print(f"ldp_client: the server refused the report ({reasons}); it is not sent again", file=sys.stderr)
        return UNDELIVERED
    if not delivered:
        print(
            f"ldp_client: not delivered yet ({status.problem}); the report is kept in {options.storage}, "
            "run the same command again",
            file=sys.stderr,
        )
        return UNDELIVERED
    return 0


def _predict(options: argparse.Namespace) -> int:
    client = _client(options)
    record = _record(options.record)
    try:
        client.refresh_model()
    except ModelUnavailableError:
        raise
    except ClientError as error:
        # Offline, the stored model serves.
        try:
            client.classifier()
        except ClientError:
            raise error from None
    shares = client.predict_proba(record)
    predicted = client.predict(record)
    if options.json:
        print(json.dumps({"class": predicted, "probabilities": shares}))
    else:
        print(predicted)
    return 0


def _status(options: argparse.Namespace) -> int:
    client = _client(options)
    status = client.status()
    if options.json:
        print(json.dumps(dataclasses.asdict(status)))
        return 0
    consent = {None: "nobody has decided", True: "given", False: "withdrawn"}[status.consent]
    print(client.ledger())
    print(f"Consent to this campaign: {consent}. Reports sent: {status.sent}, waiting: {status.queued}.")
    return 0


def _withdraw(options: argparse.Namespace) -> int:
    client = _client(options)
    waiting = client.status().queued
    client.withdraw()
    print(f"Withdrawn. Unsent reports deleted: {waiting}.")
    return 0


def _client(options: argparse.Namespace) -> Client:
    return Client(
        options.url,
        options.campaign_id,
        storage=options.storage,
        max_epsilon=options.max_epsilon,
        max_total_epsilon=options.max_total_epsilon,
    )


def _record(text: str) -> dict[str, object]:
    """The record; a message about it never repeats any of it."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise ValueError("""--record must be a JSON object such as '{"age": "young"}'""") from None
    return record
