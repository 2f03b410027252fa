"""Nodes of a federated campaign: a campaign, tables, settings; and a Flower grid that calls client apps by itself."""

from copy import deepcopy
from types import SimpleNamespace

import numpy as np
import pandas as pd
from drafts import draft, number, text

from ldp_aggregator.flower.round import NodeSettings
from ldp_protocols import Campaign

LABEL = {"name": "readmitted", "classes": ["yes", "no"]}
CAMPAIGN = Campaign.compile(
    draft(number("age", 18, 90), text("ward", "heart", "lung", "other"), title="Hospitals", label=LABEL)
)
OTHER = Campaign.compile(draft(number("weight", 0, 200), title="Another one", label=LABEL, privacy={"epsilon": 0.5}))


def rows(seed, count=200):
    """A node's table, made up."""
    rng = np.random.default_rng(seed)
    again = rng.random(count) < 0.4
    frame = pd.DataFrame(
        {
            "age": np.where(again, 70, 50) + rng.normal(0, 9, count),
            "ward": rng.choice(["heart", "lung", "other"], count, p=[0.5, 0.3, 0.2]),
        }
    )
    return frame, pd.Series(np.where(again, "yes", "no"))


def write_table(path, seed, count=200):
    frame, labels = rows(seed, count)
    frame.assign(readmitted=labels).to_csv(path, index=False)
    return path


def node(folder, seed=1, **changes):
    """Settings of a node with a table of its own in a folder of its own."""
    home = folder / f"node-{seed}"
    home.mkdir(exist_ok=True)
    table = write_table(home / "table.csv", seed) if "table" not in changes else changes.pop("table")
    values = {"ledger": home / "ledger.db", "campaign_id": CAMPAIGN.id, "max_epsilon": 1.0}
    return NodeSettings(table=table, **(values | changes))


class Loop:
    """A grid without processes: it calls each node's app with the message, and gives back what the app returns.

    ``apps``: for each node its client app, or None for one that never answers.
    """

    def __init__(self, apps):
        from flwr.app import Context, RecordDict
        from flwr.supercore.task_identity import TaskIdentity

        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1  # A message knows the run it belongs to.
        self.apps = dict(apps)
        self.asked = []
        self.run = SimpleNamespace(run_id=1)
        self.contexts = {
            name: Context(run_id=1, node_id=name, node_config={}, state=RecordDict(), run_config={}) for name in apps
        }

    def get_node_ids(self):
        return list(self.apps)

    def send_and_receive(self, messages, *, timeout=None):
        from flwr.app import Error, Message

        replies = []
        for message in map(deepcopy, messages):  # Between processes, nobody changes what another one sends.
            name = message.metadata.dst_node_id
            self.asked.append(name)
            if self.apps[name] is None:
                continue
            try:
                replies.append(self.apps[name](message, self.contexts[name]))
            except Exception as error:  # As Flower does it: the text of the exception is what the server gets.
                replies.append(Message(Error(code=0, reason=f"{type(error)}:<{error}>"), reply_to=message))
        return replies
