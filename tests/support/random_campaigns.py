"""Random campaigns, documents that were tampered with, and records, for a comparison of two implementations."""

import contextlib
import copy
import json

from ldp_protocols import Campaign, DraftError

NAMES = ["age", "größe", "x", "missing", "label", "constructor", "__proto__", "toString", "length", "0", "a b", "日本"]
TEXTS = ["yes", "no", "0", "1", "true", "False", "missing", "é", "e\u0301", "2.5", "1e3", "-1", "Straße", "𝒳"]
TEXTS += ["constructor", "Infinity"]
LONG = "9" * 400
ODD = [None, True, False, 0, 1, -1, 1.5, 2**53, -0.0, 1e300, 1e-7, 0.1, [], {}, [1]]
ODD += ["", "x", "1", " 1 ", "\ud800", "a\nb", LONG]
ODD_RECORDS = [None, "record", 1, []]
BEGINNINGS = ["2027-01-04T00:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "8990-02-28T12:00:00Z"]
LENGTHS = ["P7D", "P1W", "PT1H", "PT30M", "P365D", "P73D", "PT9999H", "P9999W"]
COUNTS = [2, 3, 5, 10, 52, 365, 4096]
ODD_WINDOWS = {
    "from": [*BEGINNINGS, "0000-01-01T00:00:00Z", "2027-02-29T00:00:00Z", "2027-01-04"],
    "length": [*LENGTHS, "P0D", "P07D", "P10000D", "PT7D", "P7H", "P7M", "PTP7D", "PT7H ", "P\u0667D", ["P7D"], 7],
    "count": [*COUNTS, 1, 4097, 2.0, 2.5, "52"],
}
MECHANISMS = ["auto", "de", "sue", "oue", "she", "the", "ss"]


def campaign(rng):
    """A campaign that compiles."""
    while True:
        with contextlib.suppress(DraftError):
            return Campaign.compile(draft(rng))


def draft(rng):
    """A draft; a few of them do not compile."""
    moments, scores = rng.random() < 0.1, rng.random() < 0.2
    scores = scores and not moments
    names = rng.sample(NAMES, rng.randint(2, 5))
    features = [_feature(rng, name, moments) for name in names[1:]]
    made = {
        "version": 1,
        "title": rng.choice(TEXTS),
        "label": {
            "name": names[0],
            "classes": rng.sample(TEXTS, rng.choice([2, 2, 3, 4])),
            "weight": rng.choice([None, 0, 1, 2, 3]),
        },
        "features": features,
        "privacy": {
            "epsilon": rng.choice([0.05, 0.1, 0.5, 1, 1.0, 2, 3.3, 8, 40, rng.uniform(0.01, 6)]),
            "answers": "one" if moments or scores else rng.choice(["one", "all"]),
            "discrete": rng.choice(MECHANISMS),
            "continuous": "auto" if scores else rng.choice(["auto", "laplace", "onebit", "sign"]),
        },
    }
    series = not (moments or scores) and rng.random() < 0.3
    if rng.random() < 0.2:
        made["privacy"]["release_every"] = None if moments or series else 10
    if moments:
        made |= {"asks": "moments", "study": "s"}
    inputs = [one for one in features if one["kind"] == "continuous"]
    if scores:
        made |= {"asks": "score", "study": "s", "evaluation": _evaluation(rng, made, inputs)}
    if inputs and not (moments or scores) and rng.random() < 0.3:
        made["projection"] = _projection(rng, inputs)
    if series:
        made["windows"] = {"from": rng.choice(BEGINNINGS), "length": rng.choice(LENGTHS), "count": rng.choice(COUNTS)}
    elif rng.random() < 0.2:
        made |= {"opens": "2026-01-01T00:00:00Z", "closes": "2027-12-31T23:59:59Z", "study": "other"}
    return made


def document(rng, source):
    """Its document, or with probability 1/2 one with a few changes, nearly all of which must be refused."""
    if rng.random() < 0.5:
        return source.document.decode()
    content = json.loads(source.document)
    if source.windows and rng.random() < 0.7:
        changed = rng.choice(list(ODD_WINDOWS))
        content["windows"][changed] = rng.choice(ODD_WINDOWS[changed])
    else:
        for _ in range(rng.choice([1, 1, 1, 2])):
            _tamper(rng, content)
    text = json.dumps(content, ensure_ascii=True if "\\ud8" in json.dumps(content) else rng.random() < 0.5)
    if rng.random() < 0.05:
        text = text.replace('"title"', '"study": null, "study"', 1)
    if rng.random() < 0.05:
        at = rng.randrange(len(text))
        text = text[:at] + text[at + 1 :]
    return text


def record(rng, source):
    """A record and a label, as JSON has them; ``{"integer": ...}`` and ``{"double": ...}`` for what it has not."""
    values = {feature.name: _value(rng, feature) for feature in source.features if rng.random() < 0.9}
    label = rng.choice(source.label.classes) if rng.random() < 0.9 else _odd(rng)
    return rng.choice(ODD_RECORDS) if rng.random() < 0.03 else values, label


def as_python(value):
    """What a value of :func:`record` stands for."""
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return {"integer": int, "double": float}[kind](text)
    return value


def _feature(rng, name, moments):
    missing = {"missing": rng.choice([True, False, False, None])}
    if not moments and rng.random() < 0.5:
        values = rng.sample(TEXTS, rng.choice([2, 2, 3, 5, 8]))
        orders = [None, False] if "missing" in values else [None, False, True]
        said = {"weight": rng.randint(1, 5), "ordered": rng.choice(orders), **missing}
        return {"name": name, "kind": "categorical", "values": values, **said}
    low = rng.choice([0, -1.5, -100, 1e-3, 12345.678])
    bins = None if moments else rng.choice([None, None, 2, 3, 7])
    high = low + rng.choice([1, 0.3, 99, 1e6])
    return {"name": name, "kind": "continuous", "low": low, "high": high, "bins": bins, **missing}


def _projection(rng, features):
    chosen = rng.sample(features, rng.randint(1, len(features)))
    outputs = rng.randint(1, len(chosen))
    private = rng.random() < 0.3
    return {
        "method": rng.choice(["pca", "dca"]),
        "inputs": [one["name"] for one in chosen],
        "mean": [rng.uniform(-3, 3) for _ in chosen],
        "scale": [abs(rng.uniform(-3, 3)) + 0.1 for _ in chosen],
        "matrix": [[rng.uniform(-3, 3) for _ in chosen] for _ in range(outputs)],
        "outputs": [
            {"name": f"out {i}", "kind": "continuous", "low": -4, "high": 4}
            | {"bins": rng.choice([None, 3]), "missing": rng.random() < 0.3}
            for i in range(outputs)
        ],
        "fitted_on": "A" * 43 if private else "public",
        **({"fitted_study": "earlier", "fitted_epsilon": 1.0} if private else {}),
    }


def _evaluation(rng, made, inputs):
    """A model, with edges of its own, chosen or none, and with one question or both."""
    edges = sorted({0.0, *(round(rng.uniform(-3, 3), rng.choice([0, 2, 17])) for _ in range(rng.randint(0, 6)))})
    two = len(made["label"]["classes"]) == 2
    return {
        "model": _model(rng, made, inputs),
        **({"edges": edges} if two and rng.random() < 0.7 else {}),
        **({"weights": rng.choice([[1, 1], [3, 1], [0, 1], [2, 0], None])} if rng.random() < 0.7 else {}),
    }


def _model(rng, made, inputs):
    """A model of the draft's label, about some of its features or a projection of them."""
    k = len(made["label"]["classes"])
    projection = _projection(rng, inputs) if inputs and rng.random() < 0.4 else None
    taken = projection["inputs"] if projection else []
    about = [one for one in made["features"] if one["name"] not in taken and rng.random() < 0.8]
    if projection:
        about += projection["outputs"]
        projection = {"features": inputs, **projection}
    return {
        "version": 1,
        "kind": "naive-bayes",
        "label": made["label"]["name"],
        "classes": made["label"]["classes"],
        "prior": _shares(rng, k),
        "features": [_likelihood(rng, one, k) for one in about],
        **({"projection": projection} if projection or rng.random() < 0.5 else {}),
        **({"training": rng.choice([None, {}, {"epsilon": 1}])} if rng.random() < 0.5 else {}),
    }


def _likelihood(rng, feature, k):
    if feature["kind"] == "continuous" and feature["bins"] is None:
        bounds = {name: feature[name] for name in ("name", "low", "high")}
        moments = {"mean": [rng.uniform(-9, 9) for _ in range(k)], "variance": [rng.uniform(0.1, 9) for _ in range(k)]}
        return {**bounds, "kind": "gaussian", **moments}
    described = {name: value for name, value in feature.items() if name not in ("weight", "missing", "ordered")}
    columns = [_shares(rng, len(feature["values"]) if "values" in feature else feature["bins"]) for _ in range(k)]
    return {**described, "likelihood": [list(row) for row in zip(*columns, strict=True)]}


def _shares(rng, size):
    """Numbers that add up to 1; a few are 0."""
    drawn = [rng.choice([rng.random(), rng.random(), 0.0]) for _ in range(size - 1)] + [rng.random() + 0.1]
    return [share / sum(drawn) for share in drawn]


def _tamper(rng, content):
    """One change somewhere."""
    value = content
    while True:
        place = value
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        value = place[key]
        if not (isinstance(value, (dict, list)) and value and rng.random() < 0.85):
            break
    change = rng.randrange(7)
    if change == 0 and isinstance(place, dict):
        del place[key]
    elif change == 1 and isinstance(place, dict):
        place[rng.choice([*NAMES, "other", "ordered", "weight"])] = copy.deepcopy(rng.choice(ODD))
    elif change == 2 and isinstance(place, list):
        place.insert(rng.randrange(len(place) + 1), copy.deepcopy(rng.choice(place)))
    elif change == 3 and isinstance(value, str) and value.isdigit():
        place[key] = str(int(value) + rng.choice([-1, 1, 2**20, -(2**20)]))
    elif change == 4 and isinstance(value, (int, float)) and not isinstance(value, bool):
        place[key] = rng.choice([value + 1, value - 1, -value, float(value), value * 1.0000001, str(value)])
    elif change == 5 and isinstance(value, str):
        place[key] = rng.choice([value + " ", value.upper(), value * 50, *TEXTS, *MECHANISMS])
    else:
        place[key] = copy.deepcopy(rng.choice(ODD))


def _value(rng, feature):
    if rng.random() < 0.3:
        return _odd(rng)
    if hasattr(feature, "values"):
        return rng.choice(feature.values)
    drawn = rng.uniform(feature.low - 1, feature.high + 1)
    return rng.choice([drawn, round(drawn), str(drawn), f" {drawn:.3e}", {"integer": str(round(drawn))}])


def _odd(rng):
    texts = [*TEXTS, LONG, "", "nan", "Infinity", "0x1", "1_0", "+.5", "5.", ".", "1e", "\t7 ", "\n7", "١"]
    doubles = ["nan", "inf", "-inf", "-0.0", "1e22", "1e-9", "5e-324", "1.5"]
    return rng.choice(
        [
            None,
            rng.random() < 0.5,
            rng.choice([0, 1, -1, 2.5, 1000, 2**53 - 1]),
            rng.choice(texts),
            {"double": rng.choice(doubles)},
            {"integer": rng.choice([str(10**25), "1", "0", str(-(10**210))])},
        ]
    )
