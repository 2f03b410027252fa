"""The server app of a masked sum: Flower's SecAgg+ workflow, once, and the model of the sum (needs flwr)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flwr.app import Context, Message
from flwr.common import FitIns, Parameters, parameters_to_ndarrays
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import Strategy
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.serverapp import Grid, ServerApp

from ldp_aggregator.flower.masked_sum.agreement import (
    CLIPPING_RANGE,
    MAX_WEIGHT,
    MODULUS,
    TARGET_RANGE,
    WORDS,
    Agreement,
    agreement_of,
)
from ldp_aggregator.flower.masked_sum.limbs import of_means
from ldp_aggregator.flower.messages import printable
from ldp_aggregator.flower.server import publish, say
from ldp_aggregator.flower.settings import RoundSettings, round_settings
from ldp_aggregator.trainers.federation.distributed_noise import model_of_sum
from protocols.document.campaign import Campaign

_NOTHING = Parameters([], "numpy.ndarray")


class SumError(ValueError):
    """There is no sum; the message says what Flower said of it."""


class _OneSum(Strategy):
    """Asks the agreed number of nodes once, and keeps the sum. ``total`` is None until it is there."""

    def __init__(self, campaign: Campaign, agreement: Agreement, seconds: float) -> None:
        self._campaign, self._agreement, self._seconds = campaign, agreement, seconds
        self.total: tuple[int, ...] | None = None
        self.shortage = ""

    def initialize_parameters(self, client_manager: Any) -> Parameters:
        return _NOTHING

    def configure_fit(self, server_round: int, parameters: Parameters, client_manager: Any) -> list[Any]:
        wanted = self._agreement.nodes
        # Flower's wait alone looks for new nodes every five seconds only.
        present = client_manager.num_available()
        if present < wanted and not client_manager.wait_for(wanted, timeout=int(self._seconds)):
            self.shortage = f"{present} nodes are there"
            return []
        asked = FitIns(_NOTHING, {"campaign": self._campaign.document})
        return [(client, asked) for client in client_manager.sample(wanted)]

    def aggregate_fit(self, server_round: int, results: list[Any], failures: list[Any]) -> tuple[None, dict[str, Any]]:
        if results:
            (means,) = parameters_to_ndarrays(results[0][1].parameters)
            self.total = of_means(means, len(results))
        return None, {}

    def configure_evaluate(self, server_round: int, parameters: Parameters, client_manager: Any) -> list[Any]:
        return []

    def aggregate_evaluate(
        self, server_round: int, results: list[Any], failures: list[Any]
    ) -> tuple[None, dict[str, Any]]:
        return None, {}

    def evaluate(self, server_round: int, parameters: Parameters) -> None:
        return None


class _Listening:
    """The grid, and what nodes gave for a reason when they did not answer: the workflow keeps it to itself."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid
        self.reasons: dict[int, str] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grid, name)

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Message]:
        asked = list(messages)
        replies = list(self._grid.send_and_receive(asked, timeout=timeout))
        answered = {reply.metadata.src_node_id for reply in replies}
        for node in {message.metadata.dst_node_id for message in asked} - answered:
            self.reasons[node] = "no answer"
        for reply in replies:
            if reply.has_error():
                self.reasons[reply.metadata.src_node_id] = printable(str(reply.error.reason))
        return replies


def masked_server_app(campaign: Campaign, watch: Callable[[tuple[int, ...]], None] | None = None) -> ServerApp:
    """The app that learns the model of one masked sum; ``watch`` is given the sum."""
    app = ServerApp()

    def main(grid: Grid, context: Context) -> None:
        say(WORDS)
        config = dict(context.run_config)
        agreement = agreement_of(config)
        settings = round_settings(config | {"least-nodes": agreement.least_active, "groups": 1})
        total = masked_total(grid, context, campaign, agreement, settings)
        if watch is not None:
            watch(total)
        publish(model_of_sum(campaign, total), settings)

    app.main()(main)
    return app


def masked_total(
    grid: Grid, context: Context, campaign: Campaign, agreement: Agreement, settings: RoundSettings
) -> tuple[int, ...]:
    """The sum of the nodes' summands. Raises SumError."""
    strategy = _OneSum(campaign, agreement, settings.seconds)
    workflow = SecAggPlusWorkflow(
        1.0,
        agreement.threshold / agreement.nodes,
        max_weight=MAX_WEIGHT,
        clipping_range=CLIPPING_RANGE,
        quantization_range=TARGET_RANGE,
        modulus_range=MODULUS,
        timeout=settings.seconds,
    )
    legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=1), strategy=strategy)
    listening = _Listening(grid)
    DefaultWorkflow(fit_workflow=workflow)(listening, legacy)
    if strategy.total is None:
        reasons = [f"node {node}: {reason}" for node, reason in sorted(listening.reasons.items())]
        told = "; ".join([strategy.shortage] * bool(strategy.shortage) + reasons) or "Flower's log says why"
        least = agreement.least_active
        raise SumError(f"there is no sum of {agreement.nodes} nodes, of which {least} must stay to the end: {told}")
    return strategy.total
