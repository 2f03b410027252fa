"""Vectors from uploads to tally, estimates, model and predictions; and model documents that must be refused."""

import json
import math
import random

from recording_coins import RecordingCoins
from vector_campaigns import as_text

from ldp_aggregator import Tally, estimate, train
from ldp_client import Classifier, perturb
from ldp_protocols import encode_upload
from ldp_protocols.document.model import Model

TRAINING_REPORTS = 120


def training(known, records):
    """From an upload to tally, estimates, model and predictions."""
    cases = []
    for name in ("ss-laplace", "oue-sign", "de-onebit", "projection", "binary", "missing-oue", "missing-de"):
        campaign = known[name]
        people = random.Random(name)
        sent = []
        for seed in range(TRAINING_REPORTS):
            number = people.random()
            label = campaign.label.classes[int(number * len(campaign.label.classes))]
            record = {"colour": "red" if number < 0.5 else "green", "größe": 2 * number, "hours": 60 * number, "age": 5}
            secret = seed.to_bytes(32, "little")
            sent += perturb(campaign, record, label, secret=secret, coins=RecordingCoins((name, "training", seed)))
        upload = encode_upload(sent, campaign)
        tally = Tally.of_uploads(campaign, [upload])
        model = train(campaign, tally).to_json()
        cases.append(
            {
                "document": name,
                "upload": upload.hex(),
                "n": tally.n.tolist(),
                "counts": [counts.tolist() for counts in tally.counts],
                "estimates": [
                    {name: getattr(one.cells, name).tolist() for name in ("value", "low", "high")}
                    | {"processed": one.processed if one.processed is None else one.processed.tolist()}
                    for one in estimate(campaign, tally).questions
                ],
                "model": model,
                "predictions": _predictions(model, records),
            }
        )
    return cases


def _predictions(model, records):
    classifier = Classifier(Model.from_json(model))
    return [
        {
            "record": record,
            "scores": [None if math.isinf(score) else score for score in classifier.scores(record)],
            "class": classifier.predict(record),
        }
        for record in records
    ]


def impossible():
    """A model without smoothing, and records that it holds impossible in one class, or in all of them."""
    head = {"version": 1, "kind": "naive-bayes", "label": "class", "classes": ["yes", "no"], "prior": [0.25, 0.75]}
    features = [
        {"name": name, "kind": "categorical", "values": ["a", "b"], "likelihood": [shares, shares[::-1]]}
        for name, shares in (("u", [1, 0]), ("v", [0, 1]))
    ]
    model = as_text({**head, "features": features})
    records = [{"u": "a", "v": "a"}, {"u": "b", "v": "b"}, {"u": "a"}, {"v": "a"}, {}]
    return {"model": model, "predictions": _predictions(model, records)}


def _more_of_the_first(model):
    model["features"][0]["likelihood"][0][1] += 1e-5


def models(trained):
    """Model documents that must be refused."""
    changes = [
        ("another version", lambda m: m.update(version=2)),
        ("another kind", lambda m: m.update(kind="tree")),
        ("a prior that does not add up", lambda m: m.update(prior=[0.5, 0.5, 0.5])),
        ("a prior that adds up to too much by 0.00001", lambda m: m["prior"].__setitem__(0, m["prior"][0] + 1e-5)),
        ("a column that adds up to too much by 0.00001", _more_of_the_first),
        ("a negative likelihood", lambda m: m["features"][0]["likelihood"][0].__setitem__(0, -0.1)),
        ("a variance of 0", lambda m: m["features"][2]["variance"].__setitem__(0, 0)),
        ("a table too short", lambda m: m["features"][0]["likelihood"].pop()),
    ]
    refused = []
    for name, change in changes:
        value = json.loads(trained[0]["model"])
        change(value)
        refused.append({"name": name, "model": as_text(value), "code": "invalid-model"})
    return refused
