"""Naive Bayes in pure Python, on the ten people of the LDP Naive Bayes paper (Yilmaz et al. 2019, Table 1)."""

import json
import math
import threading
import time

import pytest
from holding import PATIENCE
from hypothesis import given
from hypothesis import strategies as st
from paper_table import PEOPLE

from ldp_client import Classifier, TransportError
from ldp_client.delivery import sender
from ldp_client.network import SHARED_TRANSPORT
from ldp_protocols import DocumentError
from ldp_protocols.document.model import Model

CLASSES = ("yes", "no")
VALUES = {"age": ("young", "medium", "old"), "income": ("low", "medium", "high"), "gender": ("male", "female")}
PERSON = {"age": "young", "income": "medium", "gender": "female"}
GAUSSIAN = {"name": "x", "kind": "gaussian", "low": 0, "high": 10, "mean": [2.0, 7.0], "variance": [4.0, 1.0]}


def model_of(features, prior=(0.5, 0.5)):
    head = {"version": 1, "kind": "naive-bayes", "label": "y", "classes": CLASSES}
    return Model.from_json(json.dumps({**head, "prior": prior, "features": features}))


def paper_model():
    """Relative frequencies, without noise and without smoothing."""
    rows = {name: [person for person in PEOPLE if person[3] == name] for name in CLASSES}
    features = [
        {
            "name": name,
            "kind": "categorical",
            "values": values,
            "likelihood": [
                [sum(row[column] == value for row in rows[c]) / len(rows[c]) for c in CLASSES] for value in values
            ],
        }
        for column, (name, values) in enumerate(VALUES.items())
    ]
    return model_of(features, [len(rows[c]) / len(PEOPLE) for c in CLASSES])


PAPER = Classifier(paper_model())


def test_the_papers_example_gives_its_products_and_the_class_they_imply():
    """The paper prints 0.055 for "no", a slip for 0.6 * 1/6 * 1/6 * 2/6, and so concludes the wrong class."""
    yes, no = map(math.exp, PAPER.joint_log_likelihood(PERSON))
    assert yes == pytest.approx(0.025, rel=1e-12)
    assert no == pytest.approx(0.6 * 1 / 6 * 1 / 6 * 2 / 6, rel=1e-12)
    assert no == pytest.approx(0.00556, abs=5e-6)
    assert PAPER.predict(PERSON) == "yes"
    assert PAPER.predict_proba(PERSON) == pytest.approx({"yes": yes / (yes + no), "no": no / (yes + no)}, rel=1e-12)


@pytest.mark.parametrize("value", [None, "ancient", 5, 1.5, True])
def test_a_feature_without_a_usable_value_does_not_take_part(value):
    without = {"income": "medium", "gender": "female"}
    assert PAPER.predict_proba({**without, "age": value}) == PAPER.predict_proba(without)
    assert PAPER.predict_proba({}) == pytest.approx({"yes": 0.4, "no": 0.6})


def density(x, mean, variance):
    return math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


@pytest.mark.parametrize(("x", "clipped"), [(0, 0), (2.5, 2.5), (10, 10), (1e308, 10), (-math.inf, 0)])
def test_a_gaussian_feature_multiplies_in_its_density_at_the_clipped_value(x, clipped):
    yes, no = 0.3 * density(clipped, 2, 4), 0.7 * density(clipped, 7, 1)
    proba = Classifier(model_of([GAUSSIAN], [0.3, 0.7])).predict_proba({"x": x})
    assert proba == pytest.approx({"yes": yes / (yes + no), "no": no / (yes + no)}, rel=1e-9)


@given(st.floats(-1e140, 1e140), st.floats(min_value=0, exclude_min=True, max_value=1e300), st.floats(allow_nan=False))
def test_no_number_of_a_valid_model_overflows_or_gives_a_probability_that_is_none(mean, variance, x):
    wide = {**GAUSSIAN, "low": -1e140, "high": 1e140, "mean": [mean, 0.0], "variance": [variance, 1.0]}
    proba = Classifier(model_of([wide])).predict_proba({"x": x})
    assert math.fsum(proba.values()) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in proba.values())


def test_very_many_features_do_not_underflow():
    rare = {"kind": "categorical", "values": ["1", "2"], "likelihood": [[1e-6, 2e-6], [1 - 1e-6, 1 - 2e-6]]}
    classifier = Classifier(model_of([{**rare, "name": f"x{n}"} for n in range(1000)]))
    proba = classifier.predict_proba({f"x{n}": "1" for n in range(1000)})
    assert proba == {"yes": pytest.approx(2.0**-1000, rel=1e-9), "no": 1.0}


NOWHERE = "http://127.0.0.1:9"


def test_a_classifier_needs_no_device_no_consent_and_no_file(server, campaign, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server.publish_model(campaign.id, model)
    classifier = Classifier.fetch(server.url, campaign.id)
    assert classifier.predict({"age": "old"}) == "no"
    assert classifier.predict_proba({"age": "old"}) == pytest.approx({"yes": 0.2 / 0.68, "no": 0.48 / 0.68})
    assert Classifier.from_json(model).predict({"age": "old"}) == "no"
    assert list(tmp_path.iterdir()) == []
    assert [path for _, path in server.requests] == [f"/v1/campaigns/{campaign.id}/model"]


def test_there_may_be_no_model_yet_a_stored_one_serves_offline_and_a_new_one_replaces_it(
    server, campaign, model, tmp_path
):
    with pytest.raises(TransportError):
        Classifier.fetch(server.url, campaign.id)
    server.publish_model(campaign.id, model)
    kept = tmp_path / "models"
    Classifier.fetch(server.url, campaign.id, storage=kept)
    assert Classifier.fetch(NOWHERE, campaign.id, storage=kept, timeout=0.1).predict({"age": "old"}) == "no"
    server.publish_model(campaign.id, model.replace("[0.4, 0.6]", "[0.99, 0.01]"))
    assert Classifier.fetch(server.url, campaign.id, storage=kept).predict({"age": "old"}) == "yes"
    assert Classifier.fetch(NOWHERE, campaign.id, storage=kept, timeout=0.1).predict({"age": "old"}) == "yes"
    with pytest.raises(TransportError):
        Classifier.fetch(NOWHERE, campaign.id, timeout=0.1)


def test_a_model_that_was_taken_back_is_none_though_it_is_stored(server, campaign, model, tmp_path):
    server.publish_model(campaign.id, model)
    Classifier.fetch(server.url, campaign.id, storage=tmp_path / "models")
    server._models.clear()
    with pytest.raises(TransportError) as refused:
        Classifier.fetch(server.url, campaign.id, storage=tmp_path / "models")
    assert refused.value.code == "no-model"


@pytest.mark.parametrize("bad", ["{}", "not json", '{"version": 1, "kind": "forest"}'])
def test_a_bad_model_never_replaces_a_good_one(server, campaign, model, tmp_path, bad):
    server.publish_model(campaign.id, bad)
    with pytest.raises(DocumentError):
        Classifier.fetch(server.url, campaign.id, storage=tmp_path / "models")
    server.publish_model(campaign.id, model)
    Classifier.fetch(server.url, campaign.id, storage=tmp_path / "models")
    server.publish_model(campaign.id, bad)
    for url in (server.url, NOWHERE):
        kept = Classifier.fetch(url, campaign.id, storage=tmp_path / "models", timeout=0.1)
        assert kept.predict({"age": "old"}) == "no"


def test_before_somebody_agrees_a_model_is_used_and_nothing_is_written(join, server, campaign, model, tmp_path):
    server.publish_model(campaign.id, model)
    _, part = join(storage=tmp_path / "device.db", granted=False)
    assert part.classifier().predict({"age": "old"}) == "no"
    assert list(tmp_path.iterdir()) == []
    part.grant()
    part.classifier()
    _, offline = join(storage=tmp_path / "device.db", granted=False, url=NOWHERE)
    assert offline.classifier(timeout=0.1).predict({"age": "old"}) == "no"


def test_with_the_background_running_a_stored_model_is_renewed_at_a_moment_of_its_own(
    join, server, campaign, model, draft, eventually
):
    """Of two campaigns that an app asks for at its start, neither question leaves with the other."""
    waits = []

    class Noted(threading.Timer):
        """Never fires; how long it would wait is noted."""

        def start(self):
            waits.append(self.interval)

    def asked():
        return [path.endswith("/model") for _, path in server.requests].count(True)

    device, one = join(clock=time)
    _, two = join(device=device, of=server.publish({**draft, "title": "another"}))
    for part in (one, two):
        server.publish_model(part.id, model)
        part.classifier()
    newer = model.replace("[0.4, 0.6]", "[0.99, 0.01]")
    server.publish_model(one.id, newer)
    assert asked() == 2
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sender.threading, "Timer", Noted)
        device.start(first_delay=600.0)
        for part in (one, two, one, two):
            assert part.classifier().predict({"age": "old"}) == "no"
    assert asked() == 2
    assert len(set(waits)) == 2
    assert all(0 <= wait <= 600 for wait in waits)
    device.close()
    device.start(first_delay=0.0)
    one.classifier()
    assert eventually(lambda: one.classifier().predict({"age": "old"}) == "yes")
    device.close()


def test_a_stored_model_is_used_at_once_without_a_background_thread_too_and_the_newest_by_the_next_call(
    join, server, campaign, model, eventually
):
    server.publish_model(campaign.id, model)
    held, leave = threading.Event(), threading.Event()

    class Slow:
        """Hands over to the server, once it is let."""

        def send(self, request, timeout, cancellation=None):
            if held.is_set():
                leave.wait(PATIENCE)
            return SHARED_TRANSPORT.send(request, timeout, cancellation)

    device, part = join(clock=time, transport=Slow())
    part.classifier()
    server.publish_model(campaign.id, model.replace("[0.4, 0.6]", "[0.99, 0.01]"))
    held.set()
    for _ in range(3):
        assert part.classifier().predict({"age": "old"}) == "no"
    leave.set()
    assert eventually(lambda: part.classifier().predict({"age": "old"}) == "yes")
    device.close()
