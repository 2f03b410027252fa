"""Tables, campaigns and vectors of the page that explains local privacy: ``python javascript/try/write.py``.

Two tables are invented: their people were drawn from the chances below, from a fixed seed. The third is the Wisconsin
breast cancer table as scikit-learn ships it. Of each, 20,000 devices answer, and other people are held out.
"""

from __future__ import annotations

import hmac
import itertools
import json
import random
import struct
from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from sklearn.datasets import load_breast_cancer

from ldp_aggregator import NaiveBayes, Tally, estimate, train
from ldp_aggregator.service.signing import gateway_of
from ldp_client import perturb
from ldp_client.draw import draw_questions
from ldp_protocols import Campaign, Coins, Report, encode_upload
from ldp_simulations.fidelities import simulate

HERE: Final = Path(__file__).parent
DEVICES: Final = (1000, 2000, 5000, 10000, 20000)
EPSILONS: Final = (0.25, 0.5, 1, 2, 3, 4, 6)
HELD_OUT: Final = 2000
MOST_LOCAL: Final = 6
DELTA: Final = 1e-9
HONEST: Final = 0.5
GATEWAY: Final = gateway_of(bytes(range(32))).key
"""Nothing is sealed to it: the page has neither relay nor gateway, and a campaign with a crowd has to name one."""

Chances = dict[str, Sequence[float]]

SLEEP: Final[dict[str, Any]] = {
    "name": "sleep",
    "title": "Sleep",
    "origin": "These people are invented.",
    "label": ("Sleep", ["sleeps well", "sleeps badly"]),
    "classes": [0.6, 0.4],
    "features": {
        "Phone in bed": {"never": (0.52, 0.16), "sometimes": (0.32, 0.3), "every night": (0.16, 0.54)},
        "Last coffee": {"morning": (0.5, 0.24), "afternoon": (0.36, 0.36), "evening": (0.14, 0.4)},
        "Street at night": {"quiet": (0.78, 0.42), "busy": (0.22, 0.58)},
        "Bedtime": {"regular": (0.7, 0.34), "shifting": (0.3, 0.66)},
        "Sport": {"none": (0.24, 0.48), "some": (0.46, 0.36), "a lot": (0.3, 0.16)},
    },
}
KEYBOARD: Final[dict[str, Any]] = {
    "name": "keyboard",
    "title": "Typing",
    "origin": "These people are invented.",
    "label": ("Typing", ["two thumbs", "one finger", "swiping"]),
    "classes": [0.5, 0.28, 0.22],
    "features": {
        "Age": {"under 30": (0.46, 0.12, 0.34), "30 to 60": (0.4, 0.34, 0.46), "over 60": (0.14, 0.54, 0.2)},
        "Autocorrect": {"on": (0.74, 0.46, 0.88), "off": (0.26, 0.54, 0.12)},
        "Emoji": {"often": (0.54, 0.18, 0.36), "now and then": (0.34, 0.34, 0.42), "never": (0.12, 0.48, 0.22)},
        "Screen": {"phone": (0.86, 0.52, 0.8), "tablet": (0.14, 0.48, 0.2)},
        "Languages": {"one": (0.6, 0.74, 0.34), "several": (0.4, 0.26, 0.66)},
    },
}
TUMOUR: Final[dict[str, Any]] = {
    "name": "tumour",
    "title": "Tumours",
    "origin": "Real: 569 breast tumours, measured in Wisconsin by 1995. scikit-learn ships the table; "
    "each number is cut into thirds.",
    "label": ("Tumour", ["benign", "malignant"]),
    "cuts": {
        "Size of cells": ("mean radius", (12.3, 14.7), ("small", "middle", "large")),
        "Texture": ("mean texture", (17.0, 20.7), ("fine", "middle", "coarse")),
        "Dents": ("mean concave points", (0.024, 0.06), ("few", "some", "many")),
        "Roughness": ("mean smoothness", (0.09, 0.1), ("low", "middle", "high")),
        "Evenness": ("mean symmetry", (0.168, 0.188), ("low", "middle", "high")),
    },
}
People = list[tuple[int, ...]]
"""A person's values, as places in the lists of the features, and the class."""


def invented(table: dict[str, Any]) -> tuple[dict[str, Any], People, People]:
    """Features, people who answer, and people held out. One in eight goes by a mood, so that entries go together."""
    coins = random.Random(table["name"])
    features = {name: list(values) for name, values in table["features"].items()}

    def person() -> tuple[int, ...]:
        (label,) = coins.choices(range(len(table["classes"])), table["classes"])
        mood = coins.random()
        values = [
            bisect(
                list(itertools.accumulate(chances[label] for chances in one.values())),
                mood if coins.random() < 0.125 else coins.random(),
            )
            for one in table["features"].values()
        ]
        return (*(min(value, len(names) - 1) for value, names in zip(values, features.values(), strict=True)), label)

    return features, [person() for _ in range(DEVICES[-1])], [person() for _ in range(HELD_OUT)]


def measured(table: dict[str, Any]) -> tuple[dict[str, Any], People, People]:
    """The same of scikit-learn's table: 400 people are drawn again and again to answer, the others are held out."""
    bundle = load_breast_cancer(as_frame=True)
    columns = [[bisect(cuts, value) for value in bundle.data[column]] for column, cuts, _ in table["cuts"].values()]
    rows = list(zip(*columns, [1 - int(target) for target in bundle.target], strict=True))
    coins = random.Random(table["name"])
    coins.shuffle(rows)
    features = {name: list(values) for name, (_, _, values) in table["cuts"].items()}
    return features, coins.choices(rows[:400], k=DEVICES[-1]), rows[400:]


def draft(table: dict[str, Any], features: dict[str, list[str]], epsilon: float, crowd: int | None) -> dict[str, Any]:
    """A campaign of the page, asked by direct encoding: the truth, or at random another answer."""
    name, classes = table["label"]
    privacy: dict[str, Any] = {"epsilon": epsilon}
    if crowd is not None:
        why = "Nobody outside can answer: the page has all devices in it."
        promise = {"epsilon": epsilon, "delta": DELTA, "devices": crowd, "honest": HONEST, "without_issuer": why}
        privacy = {"crowd": promise, "most_local": MOST_LOCAL}
    return {
        "version": 1,
        "title": table["title"],
        "label": {"name": name, "classes": classes},
        "features": [
            {"name": one, "kind": "categorical", "values": values, "missing": False} for one, values in features.items()
        ],
        "privacy": privacy | {"discrete": "de"},
        **({"gateway": {"key": GATEWAY}} if crowd else {}),
    }


def counted(people: People) -> list[list[Any]]:
    """How many people are alike, a text of digits and a number each."""
    return [["".join(map(str, one)), number] for one, number in sorted(Counter(people).items())]


def table_of(table: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Campaign], Any]:
    """A table as the page has it, its campaigns by setting, and what vectors are made of."""
    features, people, held_out = (measured if "cuts" in table else invented)(table)
    campaigns = {
        f"{crowd or 'local'} {epsilon:g}": Campaign.compile(draft(table, features, epsilon, crowd))
        for crowd in (None, *DEVICES)
        for epsilon in EPSILONS
    }
    label, classes = table["label"]
    told = {
        **{key: table[key] for key in ("name", "title", "origin")},
        "label": {"name": label, "values": classes},
        "features": [{"name": name, "values": values} for name, values in features.items()],
        "people": counted(people),
        "held_out": counted(held_out),
        "documents": {key: [one.id, one.document.decode()] for key, one in campaigns.items()},
    }
    return told, campaigns, (features, classes, people, held_out)


def framed(features: dict[str, list[str]], classes: list[str], people: People) -> tuple[pd.DataFrame, list[str]]:
    """People as a table of texts, and their classes."""
    columns = {name: [values[one[place]] for one in people] for place, (name, values) in enumerate(features.items())}
    return pd.DataFrame(columns), [classes[one[-1]] for one in people]


def told_of(tally: Tally) -> dict[str, Any]:
    """Reports by question, and by cell."""
    return {"n": tally.n.tolist(), "counts": [counts.tolist() for counts in tally.counts]}


def vector(campaign: Campaign, tally: Tally, parts: Any) -> dict[str, Any]:
    """What the aggregator makes of a tally: estimates, the model, and how often it is right."""
    features, classes, people, held_out = parts
    frame, labels = framed(features, classes, held_out)
    model = train(campaign, tally)
    baseline = NaiveBayes(json.loads(campaign.document)).fit(*framed(features, classes, people))
    return {
        **told_of(tally),
        "estimates": estimate(campaign, tally).to_json(),
        "prior": list(model.model_.prior),
        "tables": [[list(row) for row in one.table] for one in model.model_.likelihoods],
        "accuracy": float((model.predict(frame) == labels).mean()),
        "without_privacy": float((baseline.predict(frame) == labels).mean()),
    }


class KeyedCoins(Coins):
    """The words of one device that are a function of a seed, as ``javascript/src/exact/coins.ts`` has them."""

    def __init__(self, seed: bytes, subject: str, device: int) -> None:
        self._words = (
            hmac.digest(seed, subject.encode() + struct.pack("<II", device, number), "sha256")[:8]
            for number in itertools.count()
        )

    def words(self, count: int) -> Sequence[int]:
        return [int.from_bytes(word, "little") for word in itertools.islice(self._words, count)]


def seeded(campaign: Campaign, parts: Any, text: str, devices: int, liars: int) -> Tally:
    """What the first devices of a seed answer, one in so many of a hundred a liar, by the client in Python."""
    features, classes, people, _ = parts
    seed, people, k = hmac.digest(b"seed", text.encode(), "sha256"), sorted(people), len(classes)
    frame, labels = framed(features, classes, people)
    records, uploads = frame.to_dict("records"), []
    for number in range(devices):
        owner = KeyedCoins(seed, "owner", number).below(len(people))
        secret = struct.pack("<4Q", *KeyedCoins(seed, "secret", number).words(4))
        coins = KeyedCoins(seed, "noise", number)
        reports = perturb(campaign, records[owner], labels[owner], secret=secret, coins=coins)
        if number * 37 % 100 < liars:
            coins = KeyedCoins(seed, "noise", number)
            reports = [
                Report(one.index, secret[:16], bytes([coins.below(one.domain_size // k) * k + k - 1]))
                for one in draw_questions(campaign, secret)
            ]
        uploads.append(encode_upload(reports, campaign))
    return Tally.of_uploads(campaign, uploads)


SETTINGS: Final = (("local 1", 20000), ("local 0.25", 700), ("5000 1", 5000), ("local 6", 20000), ("local 1", 3))
SEEDED: Final = {"local 0.25": (150, 0), "5000 1": (150, 10)}


def main() -> None:
    tables, vectors = [], []
    for table in (SLEEP, KEYBOARD, TUMOUR):
        told, campaigns, parts = table_of(table)
        tables.append(told)
        for place, (setting, devices) in enumerate(SETTINGS):
            if setting in SEEDED:
                at, liars = SEEDED[setting]
                drawn = seeded(campaigns[setting], parts, "7", at, liars)
                case = {"seed": "7", "devices": at, "liars": liars}
                vectors.append({"table": table["name"], "setting": setting, **case, **told_of(drawn)})
            frame, labels = framed(*parts[:3])
            tally = simulate(campaigns[setting], frame, labels, place, devices=devices)
            vectors.append({"table": table["name"], "setting": setting, **vector(campaigns[setting], tally, parts)})
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in tables)
    (HERE / "tables.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in vectors)
    (HERE / "vectors.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
