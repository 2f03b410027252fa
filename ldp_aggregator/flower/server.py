"""The server app: ask every node for its share until enough answered or the time is over, print and write the model
(needs flwr).
"""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Callable, Sequence

from flwr.app import ConfigRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from ldp_aggregator.flower.round import MESSAGE_TYPE, RECORD, Collection, Reply, RoundSettings, round_settings
from ldp_aggregator.learning.naive_bayes import NaiveBayes
from ldp_protocols.campaign import Campaign

PAUSE_SECONDS = 1.0
"""Between two looks at who is there."""
ATTEMPT_SECONDS = 60.0
"""For the answers to one round of queries; who has not answered by then is asked again, and answers the same."""


def say(text: str) -> None:
    """A line of the run's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def server_app(campaign: Campaign) -> ServerApp:
    """The app that learns the campaign's model from the nodes; the run's configuration says from how many."""
    app = ServerApp()

    def main(grid: Grid, context: Context) -> None:
        settings = round_settings(dict(context.run_config))
        publish(finish(collect(grid, campaign, settings), settings), settings)

    app.main()(main)
    return app


def collect(
    grid: Grid,
    campaign: Campaign,
    settings: RoundSettings,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Collection:
    """The answers of the nodes: until each of ``settings.nodes`` has one that will not change, or the time is over."""
    collection, nodes = Collection(campaign), dict[str, None]()
    end = clock() + settings.seconds
    while True:
        present = tuple(str(node) for node in grid.get_node_ids())
        nodes |= dict.fromkeys(present)  # Those that have left since are told of, too.
        _ask(grid, collection, collection.to_ask(present), min(ATTEMPT_SECONDS, max(0.0, end - clock())))
        if (len(present) >= settings.nodes and not collection.to_ask(present)) or clock() >= end:
            collection.silent(collection.to_ask(nodes))
            return collection
        sleep(PAUSE_SECONDS)


def finish(collection: Collection, settings: RoundSettings) -> NaiveBayes:
    """The model, after a line for every node that sent no share. Raises ValueError where there are too few."""
    for line in collection.problem_lines():
        say(line)
    return collection.model(least_nodes=settings.least_nodes, salt=secrets.token_bytes(32))


def publish(model: NaiveBayes, settings: RoundSettings) -> None:
    """Print the guarantee, and write the model where the settings say so."""
    say(f"model of {model.model_.training['nodes']} nodes; {model.guarantee_}")
    text = model.to_json()
    if settings.output is None:
        say(text)
        return
    settings.output.write_text(text, encoding="utf-8")
    say(f"{settings.output} holds the model that devices download")


def _ask(grid: Grid, collection: Collection, nodes: Sequence[str], seconds: float) -> None:
    content = {"campaign": collection.campaign.document}
    messages = [
        Message(RecordDict({RECORD: ConfigRecord(content)}), dst_node_id=int(node), message_type=MESSAGE_TYPE)
        for node in nodes
    ]
    if messages:
        for reply in grid.send_and_receive(messages, timeout=seconds):
            collection.take(read_reply(reply))


def read_reply(message: Message) -> Reply:
    """The message of a node, or the error that Flower reports in its place."""
    node = str(message.metadata.src_node_id)
    if message.has_error():
        return Reply(node, None, str(message.error.reason))
    return Reply(node, dict(message.content.config_records.get(RECORD) or {}))
