"""The half of a node. Its table, ledger, campaign and cap stand in its SuperNode's configuration.

In a simulation there is no such configuration, only numbers of partitions: then the table is made up.
"""

from flwr.app import Context

from hospitals.made_up import simulated_node
from ldp_aggregator.flower.client import client_app, settings_of_node
from ldp_aggregator.flower.round import NodeSettings


def settings_of(context: Context) -> NodeSettings:
    config = context.node_config
    if set(config) == {"partition-id", "num-partitions"}:
        return simulated_node(context.run_id, int(config["partition-id"]))
    return settings_of_node(context)


app = client_app(settings_of)
