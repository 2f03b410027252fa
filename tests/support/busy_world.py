"""A busy company's server: ten campaigns, good and bad, one of twelve features, a series, an evaluation, an attack."""

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import numpy as np
import pandas as pd
from browsing import send

from ldp_aggregator.evaluation.rounds import evaluation_draft
from ldp_client import perturb
from ldp_protocols import encode_upload
from ldp_protocols.document.model import Model
from ldp_protocols.framing import ID_BYTES
from ldp_protocols.wire import Block, encode_blocks
from ldp_simulations.fidelities import Columns, _payloads, relayed_upload

CREDIT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "purpose": "a credit-risk model that never sees a customer's record",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "values": ["young", "medium", "old"]},
        {"name": "income", "kind": "continuous", "low": 0, "high": 200000, "bins": 8},
        {"name": "region", "kind": "categorical", "values": ["north", "south", "east", "west"]},
    ],
    "privacy": {"epsilon": 1.0},
}
WIDE = {
    "version": 1,
    "title": "Which of ten programmes does a household watch in the evening of a working day, and on which device?",
    "purpose": "programme planning",
    "label": {"name": "programme", "classes": [f"programme {k}" for k in range(1, 11)]},
    "features": [
        {
            "name": f"a_rather_long_name_of_a_feature_{k}",
            "kind": "categorical",
            "values": [f"the value {v} of it" for v in range(1, 9)],
        }
        for k in range(1, 13)
    ],
    "privacy": {"epsilon": 2.0},
}
WINDOWS, SEEN = 28, 13


class World:
    """Campaigns on an aggregator, filled through its relay; the same in every run but for noise and time."""

    def __init__(self, aggregator):
        self.aggregator, self.rng = aggregator, np.random.default_rng(7)
        self.ids = {}

    def publish(self, name, draft, **changes):
        campaign = self.aggregator.publish({**draft, **changes})
        self.ids[name] = campaign.id
        return campaign

    def people(self, number):
        """Records and classes of the credit campaign."""
        age = self.rng.choice(["young", "medium", "old"], size=number, p=[0.3, 0.5, 0.2])
        income = self.rng.gamma(4.0, 15_000.0, size=number)
        region = self.rng.choice(["north", "south", "east", "west"], size=number)
        chance = 0.05 + 0.25 * (age == "young") + 0.5 * (income < 50_000)
        missed = np.where(self.rng.random(number) < chance, "yes", "no")
        return pd.DataFrame({"age": age, "income": income, "region": region}), missed

    def fill(self, campaign, frame, labels, parts=1):
        columns = Columns.of(campaign, frame, labels)
        for rows in np.array_split(np.arange(len(frame)), parts):
            self.aggregator.relay(campaign, relayed_upload(columns, rows, self.rng))

    def credit(self):
        """A good campaign, and the round that measures its model."""
        good = self.publish("good", CREDIT, study="credit")
        self.fill(good, *self.people(60_000))
        model = Model.from_json(self.aggregator.train(good).to_json())
        self.fill(self.publish("evaluation", evaluation_draft([good], model)), *self.people(20_000))
        self.publish("none", CREDIT, title="Nobody has answered yet")
        self.fill(self.publish("three", CREDIT, title="Three people have answered"), *self.people(3))
        closed = self.publish("closed", CREDIT, title="It is over")
        self.fill(closed, *self.people(5_000))
        self.aggregator._request("POST", f"{self.aggregator.admin_url}/admin/v1/campaigns/{closed.id}/close", b"{}")
        unmeasured = self.publish("unmeasured", CREDIT, title="Who answers a letter?", study="letters")
        self.fill(unmeasured, *self.people(30_000))
        self.aggregator.train(unmeasured)
        weak = self.publish("weak", CREDIT, title="Churn in the first month")
        frame, labels = self.people(900)
        self.fill(weak, frame, self.rng.permutation(labels))

    def attacked(self):
        """8,000 people, 3,000 devices of one invented person, 150 that answer twice, and noise from elsewhere."""
        campaign = self.publish("attacked", CREDIT, title="Somebody attacks this one")
        self.fill(campaign, *self.people(8_000))
        record = {"age": "young", "income": 3, "region": "north"}
        url = f"{self.aggregator.url}/v1/campaigns/{campaign.id}/reports"
        for _ in range(150):
            (first,) = perturb(campaign, record, "yes")
            second = first
            while second.payload == first.payload:
                second = replace(perturb(campaign, record, "yes")[0], id=first.id)
            for report in (first, second):
                send(url, encode_upload([report], campaign))
        for _ in range(40):
            send(url, b"this is no upload")
        for _ in range(2):
            reports = [perturb(campaign, record, "yes")[0] for _ in range(1500)]
            for _ in range(2):
                self.aggregator.relay(campaign, encode_upload(reports, campaign))
        self.aggregator.train(campaign)

    def series(self):
        """Thirteen windows of half a day, in which falls become more frequent from the eighth on."""
        start = datetime.now(timezone.utc) - timedelta(days=6, hours=2)
        draft = {
            "version": 1,
            "title": "Falls, half day by half day",
            "purpose": "learn when wearers fall, without watching anybody",
            "label": {"name": "fell", "classes": ["yes", "no"]},
            "features": [{"name": "wears", "kind": "categorical", "values": ["wrist", "belt", "neither"]}],
            "privacy": {"epsilon": 1.0},
            "windows": {"from": f"{start:%Y-%m-%dT%H}:00:00Z", "length": "PT12H", "count": WINDOWS},
        }
        campaign, drawn, number = self.publish("series", draft), {}, 2_000
        for window in range(SEEN):
            wears = self.rng.choice(
                ["wrist", "belt", "neither"], number, p=[0.5 - 0.02 * window, 0.2, 0.3 + 0.02 * window]
            )
            chance = 0.2 + 0.25 * (window >= 7) + 0.2 * (wears == "neither")
            fell = np.where(self.rng.random(number) < chance, "yes", "no")
            columns = Columns.of(campaign.one_window, pd.DataFrame({"wears": wears}), fell)
            for question, payload in _payloads(columns, np.arange(number), self.rng):
                drawn.setdefault(window * len(campaign.questions) + question.index, []).append(payload)
        blocks = [
            Block(index, self.rng.bytes(ID_BYTES * sum(map(len, some))), np.concatenate(some).tobytes())
            for index, some in sorted(drawn.items())
        ]
        self.aggregator.relay(campaign, encode_blocks(blocks, campaign))
        self.aggregator.train(campaign)

    def wide(self):
        """Twelve features of eight values, ten classes."""
        campaign, number = self.publish("wide", WIDE), 100_000
        classes = self.rng.integers(0, 10, number)
        frame = pd.DataFrame(
            {
                feature["name"]: [
                    feature["values"][value] for value in (classes * (place + 1) + self.rng.integers(0, 3, number)) % 8
                ]
                for place, feature in enumerate(WIDE["features"])
            }
        )
        self.fill(campaign, frame, [WIDE["label"]["classes"][one] for one in classes], 4)
        self.aggregator.train(campaign)


def busy_world(aggregator):
    """The ids of the campaigns by a name for each."""
    world = World(aggregator)
    for part in (world.credit, world.attacked, world.series, world.wide):
        part()
    return world.ids


if __name__ == "__main__":
    import sys

    from ldp_simulations.experiment import Aggregator

    public, admin, *tokens = sys.argv[1:]
    print(json.dumps(busy_world(Aggregator(public, admin, *tokens))))
