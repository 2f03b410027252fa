"""The client app of a node: one query, one answer (needs flwr).

Safety: Flower sends the text of an exception to the server, and a text about a table may quote it. So none leaves the
handler: a refusal says what :mod:`ldp_aggregator.flower.round` allows, and the node's log of which kind it was and
where.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from ldp_aggregator.flower.round import (
    CODES,
    NOT_READY,
    QUERY,
    RECORD,
    NodeSettings,
    answer,
    node_settings,
    refusal,
    refused,
)
from ldp_protocols.errors import LdpError

_LOG = logging.getLogger(__name__)


def settings_of_node(context: Context) -> NodeSettings:
    """The settings that whoever runs the node gave to its SuperNode. Raises ValueError."""
    return node_settings(dict(context.node_config))


def client_app(settings_of: Callable[[Context], NodeSettings] = settings_of_node) -> ClientApp:
    """The app that answers the query with the node's share."""
    app = ClientApp()

    def handle(message: Message, context: Context) -> Message:
        values = _answer(lambda: settings_of(context), values_of(message))
        return Message(RecordDict({RECORD: ConfigRecord(values)}), reply_to=message)

    app.query(QUERY)(handle)
    return app


def values_of(message: Message) -> dict[str, object]:
    """The named values in a message, none where it has no record of them."""
    return dict(message.content.config_records.get(RECORD) or {})


def _answer(settings: Callable[[], NodeSettings], values: Mapping[str, object]) -> dict[str, bytes] | dict[str, str]:
    try:
        try:
            given = settings()
        except ValueError as error:
            _LOG.error("no answer: %s", error)  # Its text is about the configuration, in which there is no record.
            return refusal(refused(NOT_READY))
        return dict(answer(given, values))
    except Exception as error:
        _LOG.warning("no answer: %s", " from ".join(_kinds(error)))
        if type(error) is LdpError and error.code in CODES:
            return refusal(error)
        return refusal(refused(NOT_READY))


def _kinds(error: BaseException | None) -> Iterator[str]:
    """Class, code and place of an exception and of what caused it."""
    while error is not None:
        words = [type(error).__name__, *([error.code] if isinstance(error, LdpError) else [])]
        words += [f"at {one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)[-1:]]
        yield " ".join(words)
        error = error.__cause__
