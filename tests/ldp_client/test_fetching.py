"""The classifier apart from any device: fetched, kept, and never traded for a worse one."""

import threading
import time

import pytest

from ldp_client import Classifier, TransportError
from ldp_client.delivery import sender
from protocols import DocumentError

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


def test_a_model_about_another_label_is_refused_after_a_restart_too(join, server, campaign, model, tmp_path):
    join(storage=tmp_path / "device.db")
    server.publish_model(campaign.id, model.replace("missed_payment", "colour"))
    _, part = join(storage=tmp_path / "device.db", granted=False)
    with pytest.raises(DocumentError, match="another label"):
        part.classifier()
    server.publish_model(campaign.id, model)
    assert part.classifier().predict({"age": "old"}) == "no"
