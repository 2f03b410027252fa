"""What an app has to do at a start, and that nobody is asked twice."""

import pytest
from records import RECORD

from ldp_client.testing import FakeServer


@pytest.fixture
def start(join, tmp_path):
    """Start the app once more on the same file."""
    return lambda **options: join(storage=tmp_path / "device.db", granted=False, **options)


def test_a_person_is_asked_once_and_answers_once(start, server, campaign):
    assert start()[1].next_step() == "ask"
    device, part = start()
    assert part.next_step() == "ask", "nobody has decided yet"
    part.grant()
    assert part.next_step() == "contribute"
    device, part = start()
    assert part.next_step() == "contribute"
    part.contribute(RECORD, "yes")
    assert part.next_step() == "nothing"
    assert device.run_once(5)
    assert start()[1].next_step() == "nothing"
    assert server.counted(campaign.id) == 1


@pytest.mark.parametrize("agreed_before", [False, True])
def test_a_no_is_remembered_without_a_request_and_a_later_yes_counts(start, server, agreed_before):
    _, part = start()
    if agreed_before:
        part.grant()
    assert part.withdraw().deleted == 0
    before = len(server.requests)
    assert part.next_step() == "nothing"
    _, part = start()
    assert part.next_step() == "nothing"
    assert part.status().consent is False
    assert len(server.requests) == before
    part.grant()
    assert part.next_step() == "contribute"


def test_nobody_is_asked_for_what_would_be_refused(start):
    device, part = start(max_epsilon=0.5)
    assert part.next_step() == "nothing"
    assert start()[1].next_step() == "ask"
    device.enabled = False
    assert start()[1].next_step() == "nothing"


def test_another_url_is_asked_for_once_more_where_the_person_had_agreed(start, campaign):
    start()[1].grant()
    with FakeServer() as other:
        other.publish(campaign)
        _, elsewhere = start(url=other.url)
        assert elsewhere.next_step() == "ask"
        elsewhere.grant()
        assert elsewhere.next_step() == "contribute"


def test_without_a_network_there_is_nothing_to_do_but_what_was_agreed_to(join, start, server):
    start()[1].grant()
    server.close()
    assert join(granted=False)[1].next_step(timeout=1) == "nothing"
    _, part = start()
    assert part.next_step(timeout=1) == "contribute"
    part.contribute(RECORD, "yes")
