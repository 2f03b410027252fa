"""The server's half of the round: who sent a share, who did not and why, and the model of the shares there are.

The model is that of :class:`~ldp_aggregator.trainers.federation.state.FederatedState` with the same shares, byte for
byte, in whatever order the answers came.
"""

from __future__ import annotations

from collections.abc import Iterable

from ldp_aggregator.flower.messages import NOT_READY, Reply, printable, refusal_in
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_aggregator.node_statistics import most_bytes
from ldp_aggregator.trainers.federation.state import FederatedState
from ldp_protocols.campaign import Campaign
from ldp_protocols.errors import DocumentError


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

    def model(self, *, least_nodes: int, groups: int = 1, salt: bytes = b"") -> NaiveBayes:
        """The model of the shares there are. Raises ValueError where they are fewer than ``least_nodes``."""
        if len(self.state.nodes) < least_nodes:
            raise ValueError(
                "; ".join([f"{len(self.state.nodes)} nodes sent a share, {least_nodes} are needed", *self.told()])
            )
        return self.state.model(groups=groups, salt=salt)

    def told(self) -> list[str]:
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
            self.state.put(reply.node, share)
        except DocumentError as error:
            return f"sent no share of this campaign: {printable(str(error))}", True
        self._senders[share] = reply.node
        return None, True
