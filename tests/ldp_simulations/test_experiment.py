"""An experiment of which some devices run the client, and the answers of the others come in as a relay's uploads; its
accidents on the way happen as often as asked, and only to uploads.
"""

from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ldp_aggregator import Tally, estimate
from ldp_aggregator.counting.payloads import refusals
from ldp_client import TransportError
from ldp_client.network.transport import Request, Response
from ldp_protocols import Campaign, decode_upload, encode_upload
from ldp_protocols.mechanisms import DISCRETE
from ldp_simulations import SeededCoins, simulate
from ldp_simulations.benchmarks import demonstration_source
from ldp_simulations.columns import Columns
from ldp_simulations.devices import Behaviour, Delivery, Network, _Crew, lying_reports, run_devices
from ldp_simulations.experiment import Aggregator, Plan, Watcher, run, temporary_aggregator
from ldp_simulations.fidelities import relayed_upload
from ldp_simulations.tables import Table

SOURCE = demonstration_source()


class Listening(Watcher):
    marks = (20, 1_000)

    def __init__(self):
        self.told = []

    def published(self, aggregator, campaign):
        self.told.append(campaign.id)

    def learned(self, devices, right):
        self.told.append((devices, right))


def test_all_answers_are_counted_and_the_watcher_hears_how_good_the_model_is():
    watcher = Listening()
    with temporary_aggregator() as aggregator:
        result = run(aggregator, SOURCE, Plan(3_000, seed=3, clients=40), Network(), watcher)
    delivery = result.delivery
    assert (result.clients, delivery.devices, delivery.accepted, delivery.refused) == (40, 3_000, 3_000, {})
    assert watcher.told[0] == result.campaign.id
    assert [devices for devices, _ in watcher.told[1:]] == [20, 1_000, 3_000]
    assert watcher.told[-1][1] == result.accuracies.private > result.accuracies.majority + 0.15


def test_without_a_label_what_was_estimated_is_held_against_what_is_true():
    draft = {**SOURCE.draft, "label": None, "pairs": [[feature["name"] for feature in SOURCE.draft["features"][:2]]]}
    source = replace(SOURCE, draft=draft, people=replace(SOURCE.people, labels=pd.Series([None] * len(SOURCE.people))))
    with temporary_aggregator() as aggregator:
        result = run(aggregator, source, Plan(20_000, seed=3, clients=10), Network())
    told = result.to_json()
    assert (result.model, result.accuracies, told["accepted"]) == (None, None, 20_000)
    assert len(told["statistics"]) == len(result.campaign.questions)
    # Root mean squares over some 4 cells of one campaign: the largest of ten ratios is 3 once in thousands.
    assert all(0 <= row["error"] < 3 * row["expected"] for row in told["statistics"])
    assert [row["n"] for row in told["statistics"]] == [one["n"] for one in result.estimates["questions"]]


def test_training_takes_as_long_as_it_takes_and_nothing_else_does(monkeypatch):
    """On a busy machine it was cut off after a minute, with all answers lost."""
    waited = {}

    def answer(request, timeout):
        waited[request.get_method()] = timeout
        return BytesIO(b"{}")

    monkeypatch.setattr("urllib.request.urlopen", answer)
    monkeypatch.setattr("ldp_aggregator.NaiveBayes.from_json", lambda text: text)
    Aggregator("http://here", "http://here", "token").train(Campaign.compile(SOURCE.draft))
    assert waited["POST"] is None
    assert waited["GET"] == 60


@pytest.mark.parametrize("privacy", [{"epsilon": 2.0}, {"epsilon": 9.0, "answers": "all", "discrete": "oue"}])
def test_a_relayed_upload_has_the_law_of_the_devices_reports(privacy):
    campaign = Campaign.compile({**SOURCE.draft, "privacy": privacy})
    people = SOURCE.people
    columns = Columns.of(campaign, people.frame, people.labels)
    rng = np.random.default_rng(1)
    upload = relayed_upload(columns, rng.integers(0, len(people), 40_000), rng)
    tally = Tally.of_uploads(campaign, [upload])
    assert tally.n.sum() == 40_000 * len(campaign.pools)
    cells = estimate(campaign, tally).to_frame().query("kind == 'pair'")
    found = cells.groupby(["feature", "class"])[["estimate", "variance"]].sum()
    true = people.labels.value_counts(normalize=True)[found.index.get_level_values("class")].to_numpy()
    # The seed is fixed. Errors of a question's cells are correlated; their sum has at most twice the variance of all.
    assert len(found) == 2 * len(campaign.features)
    assert np.all(np.abs(found["estimate"] - true) < 6 * np.sqrt(2 * found["variance"]))


class Server:
    """Answers everything, and remembers the bodies."""

    def __init__(self, answer: bytes = b"{}") -> None:
        self.answer = answer
        self.bodies: list[bytes | None] = []

    def send(self, request: Request, timeout: float, cancellation: object = None) -> Response:
        self.bodies.append(request.body)
        return Response(200, {}, self.answer)


def test_a_lost_answer_was_counted_by_the_server_and_is_an_error_on_the_device_and_only_uploads_meet_accidents():
    server = Server()
    network = Network(server, lost_answers=1.0)
    with pytest.raises(TransportError):
        network.send(Request("POST", "http://x", {}, b"report"), 1.0)
    assert server.bodies == [b"report"]
    assert network.first_upload == b"report"
    assert network.send(Request("GET", "http://x", {}), 1.0).status == 200
    assert network.upload_bytes == len(b"report"), "a fetch is none"


@pytest.mark.parametrize(("answers", "each"), [("one", 1), ("all", 10)])
def test_of_what_a_relay_brings_every_answer_of_every_device_counts_but_those_that_were_refused(
    answers, each, monkeypatch
):
    class Refusing:
        """An aggregator that refuses three reports of what a relay brings."""

        url = "http://nobody.example"

        def publish(self, draft):
            return Campaign.compile(draft)

        def relay(self, campaign, upload):
            return 3

        def learned(self, campaign):
            return None

    clients = Delivery(1, accepted=each)
    monkeypatch.setattr("ldp_simulations.experiment.run_devices", lambda *_, **__: clients)
    draft = {**SOURCE.draft, "privacy": {"epsilon": 20.0, "answers": answers}}
    result = run(Refusing(), replace(SOURCE, draft=draft), Plan(300, seed=1, clients=1), Network())
    assert (result.delivery.devices, result.delivery.accepted) == (300, 300 * each - 3)


def test_a_devices_coins_are_those_of_its_number_among_all_that_answer():
    campaign = Campaign.compile(SOURCE.draft)
    place = SimpleNamespace(url="http://x", relay_url=None)

    def answers(first, end):
        """Questions and answers of liars; their ids are random whatever the seed."""
        server, people = (
            Server(b'{"rejected": []}'),
            Table(SOURCE.people.frame[first:end], SOURCE.people.labels[first:end]),
        )
        run_devices(place, campaign, people, Network(server), seed=4, first=first, behaviour=Behaviour(1.0, 0))
        (blocks,) = zip(*(decode_upload(body, campaign) for body in server.bodies), strict=True)
        return sorted((block.question, block.payloads) for block in blocks)

    assert sorted(answers(0, 20) + answers(20, 30)) == answers(0, 30) != sorted(answers(0, 20) + answers(0, 10))


def test_two_deliveries_add_up_to_the_one_that_they_were_together():
    first = Delivery(10, 1, accepted=9, refused={"b": 1}, retries=2, bytes_per_report=100.0, seconds=1.5)
    second = Delivery(30, 0, accepted=27, refused={"a": 2, "b": 1}, retries=1, bytes_per_report=20.0, seconds=0.5)
    both = Delivery(40, 1, accepted=36, refused={"a": 2, "b": 2}, retries=3, bytes_per_report=40.0, seconds=2.0)
    assert first + second == second + first == both
    assert list((second + first).refused) == ["a", "b"]
    assert Delivery() + first == first
    assert (Delivery() + Delivery()).bytes_per_report == 0.0


def test_of_two_devices_that_fail_the_first_is_told_and_nobody_is_handed_out_any_more():
    crew = _Crew(Table(pd.DataFrame({"x": [1, 2, 3]}), pd.Series(["a", "b", "a"])), lambda: None)
    people = iter(crew)
    assert next(people) == (0, ({"x": 1}, "a"))
    crew.stop(TransportError("timeout", "the first"))
    crew.stop(TransportError("timeout", "the second"))
    crew.stop()
    assert str(crew.failure) == "the first"
    assert list(people) == []


def test_accidents_are_as_frequent_as_asked():
    """2,000 uploads, a fifth lost; false alarm below 1e-6."""
    server, arrived = Server(), 0
    network = Network(server, lost_answers=0.2, seed=1)
    for _ in range(2_000):
        with suppress(TransportError):
            arrived += network.send(Request("POST", "http://x", {}, b"12345"), 1.0).status == 200
    assert (len(server.bodies), network.upload_bytes) == (2_000, 10_000)
    assert abs(2_000 - arrived - 400) < 5 * (2_000 * 0.2 * 0.8) ** 0.5


MECHANISMS = [*((name, "sign") for name in DISCRETE), ("oue", "laplace"), ("ss", "onebit")]


@pytest.mark.parametrize(("discrete", "continuous"), MECHANISMS)
@pytest.mark.parametrize("targets", [(None,), (0, 1)])
def test_every_lie_is_a_report_under_a_fresh_id_that_the_server_must_accept(
    discrete, continuous, targets, make_everything
):
    campaign = make_everything(discrete=discrete, continuous=continuous)
    coins, ids = SeededCoins(1), set()
    for target in targets * (100 // len(targets)):
        reports = lying_reports(campaign, campaign.questions, target, coins)
        assert [report.question for report in reports] == list(range(len(campaign.questions)))
        ids |= {report.id for report in reports}
        for question, report in zip(campaign.questions, reports, strict=True):
            rows = np.frombuffer(report.payload, dtype=np.uint8).reshape(1, -1)
            assert refusals(question, rows) == {}
            question.mechanism.check(report.payload)
    assert len(ids) == 100 * len(campaign.questions)


@pytest.mark.parametrize(("discrete", "continuous"), MECHANISMS)
@pytest.mark.parametrize("target", [0, 1])
def test_a_targeted_lie_raises_its_class_in_every_question(discrete, continuous, target, make_everything, make_people):
    campaign = make_everything(discrete=discrete, continuous=continuous)
    frame, labels = make_people(4_000, 7)
    honest = simulate(campaign, frame, labels, 3)
    coins = SeededCoins(2)
    lies = [encode_upload(lying_reports(campaign, campaign.questions, target, coins), campaign) for _ in range(200)]
    poisoned = honest + Tally.of_uploads(campaign, lies)
    for question in campaign.questions:
        before, after = (estimate(campaign, tally)[question.index].cells.value for tally in (honest, poisoned))
        if question.encoding == "index":
            before, after = (cells.reshape(-1, 2).sum(axis=0) for cells in (before, after))
            assert after[target] - after[1 - target] > before[target] - before[1 - target]
        elif continuous != "sign":
            assert after[target] > before[target]
