"""The half of a node. Its table, ledger, campaign, cap and agreement stand in its SuperNode's configuration.

In a simulation there is no such configuration, only numbers of partitions: then the table is made up.
"""

import tempfile
from pathlib import Path

from flwr.app import Context

from hospitals_masked.campaign import CAMPAIGN
from ldp_aggregator.flower.masked_sum.agreement import agreement_of
from ldp_aggregator.flower.masked_sum.client import Member, masked_client_app, member_of
from ldp_aggregator.flower.settings import NodeSettings


def member(context: Context) -> Member:
    config = context.node_config
    if set(config) == {"partition-id", "num-partitions"}:
        settings = simulated_node(context.run_id, int(config["partition-id"]))
        return Member(settings, agreement_of(context.run_config))
    return member_of(context)


def simulated_node(run_id: int, partition: int) -> NodeSettings:
    """Nobody's data: three rows, of which the number is the partition's."""
    home = Path(tempfile.gettempdir(), f"ldp-bayes-masked-{run_id}", str(partition))
    home.mkdir(parents=True, exist_ok=True)
    rows = [f"{30 + partition},heart,yes", "60,lung,no", "70,other,yes"]
    (home / "table.csv").write_text("\n".join(["age,ward,readmitted", *rows]) + "\n")
    return NodeSettings(home / "table.csv", home / "ledger.db", CAMPAIGN.id, CAMPAIGN.privacy.epsilon)


app = masked_client_app(member)
