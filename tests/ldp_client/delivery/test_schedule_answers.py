"""The table of answers that all clients are held to (``protocols/vectors/answers.json``)."""

import json

import pytest
from vector_files import FILES

from ldp_client import Policy, TransportError
from ldp_client.delivery.schedule import Delivery, Outcome, batch, judge, wait
from ldp_client.network.transport import PROBLEM_TYPE, Response
from ldp_protocols import Report

NOW = 1_800_000_000.0


class Queue:
    """The queue of one case: its reports by number, and what became of them."""

    def __init__(self, case):
        self.now = NOW
        self.reports = [Report(0, bytes([number]) * 16, b"\x01") for number in range(case["reports"])]
        self.left = ["waits"] * case["reports"]
        self.delivery = Delivery(expires=NOW + case.get("expires", 30 * 86400))

    def next_upload(self):
        waiting = [report for report, end in zip(self.reports, self.left, strict=True) if end == "waits"]
        return batch(self.delivery, waiting, Policy())

    def hear(self, told):
        self.now += told["after"]
        task = self.next_upload()
        verdict = judge(self.delivery, task, answer(told, task.reports), self.now, 0.5, Policy())
        self.delivery = verdict.delivery
        for identifier, end in verdict.settled.items():
            self.left[identifier[0]] = end.code or end.outcome.value
            assert (end.outcome == Outcome.ARRIVED) == (not end.code)


def answer(told, reports):
    headers, body = told.get("headers", {}), told.get("body")
    if not told["status"]:
        return TransportError("unreachable")
    if "rejected" in told:
        codes = [(report.id.hex(), told["rejected"][report.id[0]]) for report in reports]
        body = json.dumps({"rejected": [pair for pair in codes if pair[1]]})
    elif body is None:
        headers, body = {**headers, "content-type": PROBLEM_TYPE}, json.dumps({"code": told["code"]})
    return Response(told["status"], headers, body.encode())


@pytest.mark.parametrize("case", FILES["answers"]["cases"], ids=lambda case: case["name"])
def test_an_answer_means_this(case):
    queue = Queue(case)
    for told in case["answers"]:
        queue.hear(told)
    assert queue.left == case["left"]
    assert wait(queue.delivery, queue.now) == case.get("wait", 0)
    if waiting := queue.left.count("waits"):
        assert (len(queue.next_upload().reports) < waiting) == case.get("split", False)
    if "kept" in case:
        assert not queue.delivery.has_expired(queue.now + case["kept"])
    if "given_up" in case:
        assert queue.delivery.has_expired(queue.now + case["given_up"])
