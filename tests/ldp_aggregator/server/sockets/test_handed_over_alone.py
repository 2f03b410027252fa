"""A connection that was handed over, between a transport and a handler that only remember what they are given."""

from unittest.mock import Mock

import pytest

from ldp_aggregator.server.metrics import DoorMetrics
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.sockets.connections import Connections
from ldp_aggregator.server.sockets.handed_over import STAND_IN, HandedOver, RequestHandler
from ldp_aggregator.service.settings import Limits

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"


@pytest.fixture
async def handed():
    """A connection that was just taken over, with its handler and its transport."""
    others = Connections(Limits(queue_bytes=1_000), DoorMetrics(), "admin")
    one, before, wire = HandedOver(others, Mock()), Mock(), Mock()
    wire.is_closing.return_value = False
    wire.get_extra_info.return_value = None
    wire.get_write_buffer_size.return_value = 10
    others.admit(before)
    one.take_over(before, wire, b"", last=False)
    assert list(others._open) == [one]
    yield one
    one.connection_lost(None)
    others._look_timer.cancel()


def given(one):
    """What the handler was given."""
    return [call.args[0] for call in one._handler.data_received.call_args_list]


async def test_one_request_after_another_reaches_the_handler_and_no_byte_of_the_next(handed):
    handed.data_received(POST + b"bo")
    assert given(handed) == [POST, b"bo"]
    assert (handed.is_between, handed.is_answering) == (False, False)
    handed.data_received(b"dy" + HEAD)
    assert given(handed) == [POST, b"bo", b"dy"]
    assert handed.is_answering
    handed._has_request = False
    handed._go_on()
    assert given(handed)[3:] == [HEAD]


async def test_the_next_request_waits_for_who_does_not_read_his_answer_and_begins_when_he_has(handed):
    handed.pause_writing()
    handed.data_received(HEAD)
    assert given(handed) == []
    handed.resume_writing()
    assert given(handed) == [HEAD]
    assert [call[0] for call in handed._handler.method_calls[1:3]] == ["pause_writing", "resume_writing"]


async def test_nothing_is_heard_after_a_refusal_and_the_stand_in_is_given_once(handed):
    handed.data_received(b"nonsense\r\n\r\n")
    assert given(handed) == [STAND_IN]
    assert handed._last
    handed.data_received(HEAD)
    assert (given(handed), handed._ahead) == ([STAND_IN], b"")


async def test_who_has_said_all_gets_his_answer_but_not_over_tls(handed):
    assert handed.eof_received() is False, "he asked for nothing"
    handed.data_received(HEAD)
    assert handed.eof_received() is True
    assert handed._problem is None
    handed._transport.get_extra_info.return_value = "a context"
    assert handed.eof_received() is False


async def test_who_has_said_all_but_a_part_of_a_body_is_refused(handed):
    handed.data_received(POST)
    assert handed.eof_received() is True
    assert handed._problem.code == "body-timeout"


@pytest.mark.parametrize(("sent", "begun"), [(HEAD + HEAD[:5], True), (POST, True), (b"GET", False)])
async def test_who_gives_way_is_answered_first_where_his_answer_is_ours_and_refused_at_once_elsewhere(
    handed, sent, begun
):
    handed.data_received(sent)
    handed.give_way()
    assert (handed._ahead, handed._others.memory.used) == (b"", handed._reserved)
    if sent.startswith(HEAD):
        assert (handed._problem, given(handed)) == (None, [HEAD]), "his answer comes first"
        handed._has_request = False
        handed._go_on()
        assert given(handed)[1:] == [STAND_IN], "and then he reads why the next has none"
    assert handed._problem.code == "overloaded"
    assert given(handed)[-1:] == ([POST] if sent == POST else [STAND_IN])


async def test_who_does_not_read_is_cut_where_he_has_to_give_way(handed):
    handed.pause_writing()
    handed.give_way()
    handed._transport.abort.assert_called_once_with()
    assert handed._problem is None


async def test_a_request_that_does_not_fit_is_refused_and_the_last_one_of_its_connection(handed):
    handed._others.memory.used = 990
    handed.data_received(HEAD)
    assert (handed._problem.code, handed._last) == ("overloaded", True)
    handed._others.memory.used -= 990


@pytest.mark.parametrize(
    ("status", "code"), [(400, "malformed-request"), (499, "malformed-request"), (500, "internal-error")]
)
async def test_what_the_handler_could_not_read_or_answer_is_refused_in_our_words_unless_it_has_begun_to(
    handed, status, code
):
    refused = Mock(side_effect=lambda problem: problem)
    handed.refuse_unread = refused
    request, handler = Mock(), Mock(transport=handed._line)
    request.writer.output_size = 0
    assert RequestHandler.handle_error(handler, request, status).code == code
    request.writer.output_size = 1
    with pytest.raises(ConnectionError):
        RequestHandler.handle_error(handler, request, status)
    assert refused.call_count == 1


async def test_a_refusal_is_counted_kept_by_nobody_and_the_last_word(handed):
    answer = handed.refuse_unread(ProblemError("malformed-request"))
    assert (answer.status, answer.headers["Cache-Control"], answer.keep_alive) == (400, "no-store", False)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    counted = handed._others._metrics.refusals.labels("malformed-request")
    assert counted._value.get() == 1
    assert (handed._last, handed._has_request, handed._reserved) == (True, False, 0)


async def test_reading_goes_on_while_handler_and_connection_want_it_and_where_nobody_looks_any_more(handed):
    wire = handed._transport
    for pause, paused, leaving, reads in (
        (False, False, False, True),
        (True, False, False, False),
        (False, True, False, False),
        (True, True, True, True),
    ):
        handed._line.is_reading_for_handler, handed._paused, handed._is_leaving = not pause, paused, leaving
        wire.reset_mock()
        handed.read_or_not()
        assert wire.resume_reading.called is reads
        assert wire.pause_reading.called is not reads


async def test_a_stop_ends_who_is_between_at_once_and_lets_others_end(handed):
    handed.data_received(POST)
    handed.finish()
    assert (handed._last, handed._deadline > handed._loop.time() + 1) == (True, True)
    handed._has_request, handed._missing = False, 0
    handed.finish()
    assert handed._deadline <= handed._loop.time()
