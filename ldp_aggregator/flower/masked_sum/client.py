"""The client app of a masked sum: Flower's SecAgg+ mod, with the guard before it (needs flwr)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flwr.app import ConfigRecord, Context, Message
from flwr.client.mod import secaggplus_mod
from flwr.clientapp import ClientApp
from flwr.common import Code, FitRes, Parameters, Status, ndarrays_to_parameters
from flwr.compat.common import recorddict_compat as compat

from ldp_aggregator.flower.answering import agreed_campaign, drawn_share
from ldp_aggregator.flower.ledger import Ledger
from ldp_aggregator.flower.masked_sum.agreement import WORDS, Agreement, agreement_of
from ldp_aggregator.flower.masked_sum.guard import COLLECT, STAGE, GuardError, Progress, check_in_clear, checked_stage
from ldp_aggregator.flower.masked_sum.limbs import to_limbs
from ldp_aggregator.flower.messages import NOT_READY, NodeRefusalError, document_in
from ldp_aggregator.flower.settings import NodeSettings, node_settings
from ldp_aggregator.node_statistics import decode_distributed
from ldp_aggregator.trainers.federation.distributed_noise import distributed_statistics

_LOG = logging.getLogger(__name__)
_CONFIGS = "secaggplus_configs"
_PROGRESS = "ldp-bayes-masked-sum"
_RESULT = "fitres"


@dataclass(frozen=True)
class Member:
    """A node of a masked sum."""

    settings: NodeSettings
    agreement: Agreement


def member_of(context: Context) -> Member:
    """The settings that whoever runs the node gave to its SuperNode. Raises SettingsError."""
    config = dict(context.node_config)
    return Member(node_settings(config), agreement_of(config))


def masked_client_app(member: Callable[[Context], Member] = member_of) -> ClientApp:
    """The app of a node that takes part in one masked sum for its campaign."""

    def handle(message: Message, context: Context) -> Message:
        result = FitRes(Status(Code.OK, ""), _parameters(message, context, member), 1, {})
        return Message(compat.fitres_to_recorddict(result, keep_input=True), reply_to=message)

    app = ClientApp()
    app.train(mods=[_guard(member), secaggplus_mod])(handle)
    return app


def _guard(member: Callable[[Context], Member]) -> Any:
    def mod(message: Message, context: Context, call_next: Callable[[Message, Context], Message]) -> Message:
        try:
            agreement = member(context).agreement
            values = dict(message.content.config_records.get(_CONFIGS) or {})
            me = message.metadata.dst_node_id
            progress = checked_stage(agreement, _load(context), me, message.metadata.message_type, values)
        except GuardError as error:
            _LOG.warning("refused: %s", error)
            raise
        except Exception as error:  # Its text may speak of the node.
            _LOG.exception("no answer: %s", NOT_READY)
            raise GuardError(str(NodeRefusalError(NOT_READY))) from error
        _save(context, progress)
        stage = values[STAGE]
        reply = call_next(message, context)
        if stage == COLLECT:
            _check_reply(reply)
        return reply

    return mod


def _parameters(message: Message, context: Context, member: Callable[[Context], Member]) -> Parameters:
    """What is masked: the digits of the share's summand. Raises NodeRefusalError, which speaks of no row."""
    try:
        asked = compat.recorddict_to_fitins(message.content, keep_input=True)
        who = member(context)
        campaign = agreed_campaign(who.settings, document_in(asked.config))
        nodes, honest = who.agreement.nodes, who.agreement.honest
        share = drawn_share(
            who.settings,
            campaign,
            lambda campaign, frame, labels: distributed_statistics(campaign, frame, labels, nodes=nodes, honest=honest),
        )
        # Before it leaves: whatever happens next, this node is in no second sum of this campaign.
        Ledger(who.settings.ledger).keep_out(
            campaign.id, campaign.privacy.epsilon, max_epsilon=who.settings.max_epsilon
        )
    except NodeRefusalError as error:
        _LOG.warning("refused (%s): %s %s", error.code, error, error.detail)
        raise
    except Exception as error:
        _LOG.exception("no answer: %s", NOT_READY)
        raise NodeRefusalError(NOT_READY) from error
    _LOG.warning(WORDS)
    return ndarrays_to_parameters([to_limbs(decode_distributed(share, campaign).summand().tolist())])


def _check_reply(reply: Message) -> None:
    content = reply.content
    check_in_clear(
        [name for record in content.array_records.values() for name in record],
        dict(content.metric_records[f"{_RESULT}.num_examples"]),
        dict(content.config_records[f"{_RESULT}.metrics"]),
    )


def _load(context: Context) -> Progress:
    kept = context.state.config_records.get(_PROGRESS)
    if kept is None:
        return Progress()
    values = dict(kept)
    return Progress(frozenset(values["known"]), frozenset(values["sources"]), values["collected"], values["unmasked"])


def _save(context: Context, progress: Progress) -> None:
    values = {name: sorted(value) if isinstance(value, frozenset) else value for name, value in vars(progress).items()}
    context.state.config_records[_PROGRESS] = ConfigRecord(values)
