"""The one round of a campaign, without flwr: settings, messages, a node's half and the server's half.

A node's settings are read from the configuration of its SuperNode and from nowhere else: whoever starts a run could
otherwise name the table, the cap, or a ledger that is still empty. The server's are those of the run.

Messages are records of named values. ``query.nb_share`` carries ``{"campaign": document bytes}`` to the nodes; the
answer is ``{"share": bytes}`` (:mod:`ldp_aggregator.node_statistics`) or ``{"refused": code, "why": text}``.

A node looks whether it is the campaign that was agreed to, and what its share is. The client app hands in what came
with the query and its node's settings, and sends what comes back. The answers are in the node's ledger
(:mod:`ldp_aggregator.trainers.node_ledger`), one share for each campaign, before they are handed out.

The server collects who sent a share, who did not and why. The model is that of
:class:`~ldp_aggregator.trainers.federation.FederatedState` with the same shares, byte for byte, in whatever order the
answers came.

Safety: a refusal is no noisy answer, so nothing in it may depend on the rows of a table. Of what is wrong with a table
only names that stand in the document travel; the rest is :data:`NOT_READY`, and the reason stays in the node's log. One
bit does depend on rows: a node answers for no table of which less than half is as declared, unless ``anyway``.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.node_statistics import most_bytes
from ldp_aggregator.trainers.federation import FederatedState, node_statistics
from ldp_aggregator.trainers.node_ledger import ABOVE_CAP, NodeLedger
from ldp_aggregator.trainers.node_overview import check_possible
from ldp_aggregator.trainers.reading import opened, plain_name
from ldp_aggregator.trainers.schemas import Schema, joined, read_chunks
from ldp_aggregator.trainers.table_report import TableReport
from ldp_protocols.campaign import Campaign
from ldp_protocols.document.authored import MODEL
from ldp_protocols.errors import DocumentError, LdpError

_LOG: Final = logging.getLogger(__name__)

NODE_KEYS: Final = ("table", "ledger", "campaign-id", "max-epsilon")
"""Keys of ``flower-supernode --node-config "table='north.csv' ..."``."""

ANYWAY: Final = "anyway"
"""A further key, ``anyway=true``: the table is answered for whatever it holds."""

QUERY: Final = "nb_share"
MESSAGE_TYPE: Final = f"query.{QUERY}"
RECORD: Final = "ldp-bayes"
"""The name of the record that holds the values."""

OTHER_CAMPAIGN: Final = "other-campaign"
UNREADABLE: Final = "unreadable-document"
OTHER_SCHEMA: Final = "other-schema"
NOT_READY: Final = "not-ready"
CODES: Final = {
    OTHER_CAMPAIGN: "the document is not the one of the campaign that this node agreed to",
    UNREADABLE: "the document is none that this version can trust",
    ABOVE_CAP: "the campaign would cost more epsilon than this node has left",
    OTHER_SCHEMA: "the node's table lacks a column that the campaign asks for",
    NOT_READY: "the node cannot answer now; its own log says why",
}
"""Why a node refuses. All but the last are for good: asking again changes nothing."""

_LONGEST_TEXT: Final = 300


@dataclass(frozen=True)
class NodeSettings:
    """The ``campaign_id`` that a node agreed to, and its cap ``max_epsilon`` on all campaigns ever in its ledger. A
    table with a column of which less than half is as declared is answered for ``anyway`` only.
    """

    table: Path
    ledger: Path
    campaign_id: str
    max_epsilon: float
    anyway: bool = False


@dataclass(frozen=True)
class RoundSettings:
    """``nodes``: how many to wait for; ``least_nodes``: fewer shares give no model; ``seconds``: how long to wait in
    all; ``output``: where to write the model. Groups are the document's.
    """

    nodes: int
    least_nodes: int
    seconds: float
    output: Path | None


def node_settings(config: Mapping[str, object]) -> NodeSettings:
    """A node's settings from its SuperNode's configuration. Raises ValueError, which says what is right."""
    table, ledger, campaign_id = (_text(config, key, "node") for key in NODE_KEYS[:3])
    most = _number(config, NODE_KEYS[3], "node")
    if not most > 0:
        raise ValueError(f"node configuration: max-epsilon must be above 0, not {most}")
    anyway = config.get(ANYWAY, False)
    if type(anyway) is not bool:
        raise ValueError(f"node configuration: {ANYWAY} must be true or false, not {anyway!r}")
    return NodeSettings(Path(table), Path(ledger), campaign_id, most, anyway)


def round_settings(config: Mapping[str, object]) -> RoundSettings:
    """The server's settings from the run's configuration. Raises ValueError, which says what is right."""
    nodes, least = (_count(config, key) for key in ("nodes", "least-nodes"))
    seconds = _number(config, "seconds", "run")
    if not 1 <= least <= nodes:
        raise ValueError(f"run configuration: least-nodes must be from 1 to nodes ({nodes}), not {least}")
    if "groups" in config:
        raise ValueError('run configuration: groups are in the draft now, as "federation": {"groups": N}; leave it out')
    if not seconds > 0:
        raise ValueError(f"run configuration: seconds must be above 0, not {seconds}")
    output = config.get("output", "")
    if type(output) is not str:
        raise ValueError("run configuration: output must be a file's name, or empty to write none")
    return RoundSettings(nodes, least, seconds, Path(output) if output else None)


def _text(config: Mapping[str, object], key: str, whose: str) -> str:
    value = config.get(key)
    if type(value) is not str or not value:
        raise ValueError(f"{whose} configuration: {key} is missing; it needs {', '.join(NODE_KEYS)}")
    return value


def _number(config: Mapping[str, object], key: str, whose: str) -> float:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{whose} configuration: {key} must be a finite number, not {value!r}")
    return float(value)


def _count(config: Mapping[str, object], key: str) -> int:
    value = config.get(key)
    if type(value) is not int:
        raise ValueError(f"run configuration: {key} must be a whole number, not {value!r}")
    return value


def refused(code: str, why: str = "") -> LdpError:
    """A node does not answer: ``code`` and text travel to the server, what caused it stays at the node."""
    return LdpError(code, why or CODES[code])


@dataclass(frozen=True)
class Reply:
    """The answer of a node: named values, or None and the error that there is instead."""

    node: str
    values: Mapping[str, object] | None
    error: str = ""


def refusal(error: LdpError) -> dict[str, str]:
    """The values of a refusal."""
    return {"refused": error.code, "why": str(error)}


def document_in(values: Mapping[str, object]) -> bytes:
    """The document that a query carries. Raises LdpError."""
    document = values.get("campaign")
    if set(values) != {"campaign"} or type(document) is not bytes:
        raise refused(UNREADABLE, 'a query carries "campaign", the document\'s bytes, and nothing else')
    return document


def refusal_in(values: Mapping[str, object]) -> tuple[str, str] | None:
    """Code and text of a refusal, None where the values are none."""
    code, why = values.get("refused"), values.get("why")
    if set(values) != {"refused", "why"} or type(code) is not str or type(why) is not str or code not in CODES:
        return None
    return code, printable(why)


def printable(text: str) -> str:
    """Text of somebody else, safe to print: one line, no control characters, not long."""
    clean = "".join(character if character.isprintable() else " " for character in text)
    return clean if len(clean) <= _LONGEST_TEXT else clean[:_LONGEST_TEXT] + " ..."


def answer(settings: NodeSettings, values: Mapping[str, object]) -> dict[str, bytes]:
    """Values of the answer to a query: this node's share, the same bytes every time. Raises LdpError."""
    campaign = _agreed_campaign(settings, document_in(values))
    ledger = NodeLedger(settings.ledger)
    try:
        share = ledger.share(campaign.id)
        if share is None:
            drawn = _drawn_share(settings, campaign)
            share = ledger.keep(campaign.id, campaign.privacy.epsilon, drawn, max_epsilon=settings.max_epsilon)
    except OSError as error:
        raise refused(NOT_READY) from error
    return {"share": share}


def _agreed_campaign(settings: NodeSettings, document: bytes) -> Campaign:
    """The campaign of document bytes whose hash is the id that the node agreed to. Raises LdpError."""
    try:
        campaign = Campaign.parse(document, settings.campaign_id)
    except DocumentError as error:
        code = OTHER_CAMPAIGN if error.code == "wrong-hash" else UNREADABLE
        raise refused(code, str(error)) from None
    if campaign.asks != MODEL:
        raise refused(UNREADABLE, f'the campaign asks for "{campaign.asks}"; nodes answer for a "{MODEL}"')
    return campaign


def _drawn_share(settings: NodeSettings, campaign: Campaign) -> bytes:
    """A fresh share of the node's table. Raises LdpError, which tells the server nothing of the rows."""
    schema = Schema.of_campaign(campaign)
    try:
        names = (*schema.input_names, schema.label.name)
        with opened(settings.table, names) as rows:
            for name in names:
                if plain_name(name) not in rows.header:
                    raise refused(OTHER_SCHEMA, f"the node's table has no column {name!r}")
        report = TableReport(schema)
        table = joined(read_chunks(settings.table, schema, seen=report.add))
        for line in report.lines(quoting=False):
            _LOG.warning("%s: %s", settings.table, line)
        if report.problems and not settings.anyway:
            _LOG.error("nothing was drawn: %s; %s=true draws it", "; ".join(report.problems), ANYWAY)
            raise refused(NOT_READY)
        return node_statistics(campaign, *table)
    except (OSError, ValueError) as error:
        raise refused(NOT_READY) from error


class Collection:
    """The answers of one campaign's nodes, as they come. Nodes go by the names that Flower knows them by."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.state = FederatedState(campaign)
        self.problems: dict[str, str] = {}
        self._senders: dict[bytes, str] = {}
        self._final: set[str] = set()

    def take(self, reply: Reply) -> None:
        """Count a share, or note why there is none. Nothing that a node sends raises."""
        problem, final = self._problem(reply)
        if problem is None:
            self.problems.pop(reply.node, None)
        elif reply.node not in self.state.nodes:
            self.problems[reply.node] = problem
        if final:
            self._final.add(reply.node)

    def to_ask(self, nodes: Iterable[str]) -> tuple[str, ...]:
        """List the nodes that may still answer otherwise than they did."""
        return tuple(node for node in nodes if node not in self._final)

    def silent(self, nodes: Iterable[str]) -> None:
        """Note the nodes that were asked and of which nothing came."""
        for node in nodes:
            if node not in self.state.nodes:
                self.problems.setdefault(node, "no answer")

    def model(self, *, least_nodes: int, salt: bytes = b"") -> NaiveBayes:
        """The model of the shares there are. Raises ValueError where they are fewer than ``least_nodes``, or than the
        groups of the document.
        """
        if len(self.state.nodes) < least_nodes:
            raise ValueError(
                "; ".join(
                    [f"{len(self.state.nodes)} nodes sent a share, {least_nodes} are needed", *self.problem_lines()]
                )
            )
        return self.state.model(salt=salt)

    def problem_lines(self) -> list[str]:
        """A line for every node that sent no share."""
        return [f"node {node}: {problem}" for node, problem in sorted(self.problems.items())]

    def _problem(self, reply: Reply) -> tuple[str | None, bool]:
        """Say what is wrong with a reply, None where it is counted; and whether asking again is of no use."""
        if reply.values is None:
            return f"failed ({printable(reply.error)})", False
        refused = refusal_in(reply.values)
        if refused is not None:
            code, why = refused
            return f"refused, {code}: {why}", code != NOT_READY
        share = reply.values.get("share")
        if set(reply.values) != {"share"} or type(share) is not bytes:
            return 'sent neither "share", bytes, nor a refusal', True
        if len(share) > most_bytes(self.campaign):
            return f"sent {len(share)} bytes; a share of this campaign has at most {most_bytes(self.campaign)}", True
        sender = self._senders.get(share, reply.node)
        if sender != reply.node:
            # The noise of two nodes is not the same: it is one node under two names, and its rows count once.
            return f"sent the share that node {sender} sent", True
        try:
            check_possible(self.campaign, share)
            self.state.put(reply.node, share)
        except DocumentError as error:
            return f"sent no share of this campaign: {printable(str(error))}", True
        self._senders[share] = reply.node
        return None, True
