"""One connection, or a few, on a transport that only remembers: places, times and bytes to the last one."""

import asyncio
import math

import pytest

from ldp_aggregator.server.metrics import DoorMetrics
from ldp_aggregator.server.problems import ProblemError
from ldp_aggregator.server.sockets import connections as module
from ldp_aggregator.server.sockets.connections import Connection, Connections
from ldp_aggregator.service.settings import Limits

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Wire:
    """A transport that remembers what it was asked to do."""

    def __init__(self, *, fails=False):
        self.said, self.closing, self.fails = [], False, fails

    def __getattr__(self, name):
        return lambda *given: self.said.append(name)

    def is_closing(self):
        return self.closing

    def can_write_eof(self):
        return True

    def write_eof(self):
        self.said.append("write_eof")
        if self.fails:
            raise OSError

    def get_write_buffer_size(self):
        return 70


class One(Connection):
    """A client that is between requests unless it is told otherwise."""

    is_between, is_answering, gone = True, False, ""

    def __init__(self, others, wire=None):
        super().__init__(others)
        self._transport = wire or Wire()

    def give_way(self):
        self.gone = "told"

    def cut(self):
        self.gone = self.gone or "cut"
        super().cut()


@pytest.fixture
async def others():
    """The connections of a public listener with three places and a budget of 1,000 bytes."""
    made = Connections(Limits(connections=3, queue_bytes=1_000, header_bytes=100), DoorMetrics(), "public")
    yield made
    for one in (*made._open, *made._refused):
        made.remove(one)
    if made._look_timer is not None:
        made._look_timer.cancel()


@pytest.fixture
def one(others):
    return One(others)


def slow(others):
    """A client that is in the middle of a request."""
    found = One(others)
    found.is_between = False
    return found


async def test_so_many_are_told_why_they_go_and_the_others_are_cut(others, monkeypatch):
    monkeypatch.setattr(module, "MOST_REFUSALS", 2)
    there = [slow(others) for _ in range(6)]
    assert all(others.admit(one) for one in there)
    assert [one.gone for one in there] == ["told", "told", "cut", "", "", ""]
    late = slow(others)
    assert others.refuse(late) is False
    others.remove(there[0])
    assert others.refuse(late) is True, "one of those has read it, and is gone"
    others.cut()
    assert [one.gone for one in (*there[3:], late)] == ["cut"] * 4, "who is being told, too"


async def test_who_lost_his_place_does_not_get_it_back_under_another_name_and_who_has_one_keeps_it(others):
    there = [slow(others) for _ in range(4)]
    assert all(others.admit(one) for one in there)
    instead = [slow(others) for _ in range(2)]
    others.replace(there[0], instead[0])
    others.replace(there[1], instead[1])
    assert list(others._open) == [there[2], there[3], instead[1]]
    others.begins(there[2])
    others.begins(there[0])
    assert list(others._open) == [there[3], instead[1], there[2]], "the one whose request began longest ago is first"


async def test_one_that_fails_is_cut_and_the_others_are_looked_at_as_long_as_any_is_there(others):
    def fails(_):
        raise KeyError

    broken, sound, told = slow(others), slow(others), slow(others)
    broken.look, looked = fails, []
    sound.look = told.look = looked.append
    for one in (broken, sound):
        others.admit(one)
    others.refuse(told)
    others._look_timer.cancel()
    others._look()
    assert (broken.gone, len(looked)) == ("cut", 2)
    for one in (broken, sound):
        others.remove(one)
    others._look_timer.cancel()
    others._look()
    assert others._look_timer is not None, "one is still being told"
    others._look_timer.cancel()
    others.remove(told)
    others._look()
    assert others._look_timer is None


async def test_a_stop_waits_for_the_last_connection(others):
    there = [slow(others) for _ in range(2)]
    for one in there:
        others.admit(one)
    stopping = asyncio.create_task(others.finish())
    await asyncio.sleep(0)
    assert [one._last for one in there] == [True, True]
    for one, done in zip(there, (False, True), strict=True):
        others.remove(one)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert stopping.done() is done


async def test_of_a_client_who_reads_slowly_the_answers_time_counts_and_no_other(one):
    one._deadline, one._unread_deadline = 10.0, 20.0
    one.look(15.0)
    assert one.gone == ""
    one.look(20.0)
    assert one.gone == "cut"


async def test_what_closes_without_a_time_of_its_own_gets_that_of_an_answer(one):
    one.look(1_000.0)
    assert one._deadline == math.inf
    one._transport.closing = True
    one.look(1_000.0)
    assert one._deadline == 1_060.0
    one.look(1_059.0)
    assert one.gone == ""
    one.look(1_060.0)
    assert one.gone == "cut"


@pytest.mark.parametrize("pieces", [1, 2, 3, 5, 100])
async def test_heads_are_found_wherever_they_are_cut(one, pieces):
    found = []
    sent = HEAD + b"\r\n" + HEAD.replace(b"/ ", b"/longer/path ") + HEAD
    for at in range(0, len(sent), pieces):
        one._hear(sent[at : at + pieces])
        while (head := one._next_head()) is not None:
            found.append(head)
    assert found == [HEAD, HEAD.replace(b"/ ", b"/longer/path "), HEAD]
    assert one._ahead == b""


async def test_a_short_head_that_comes_with_the_end_of_a_long_one_is_found(one):
    long = HEAD.replace(b"/ ", b"/" + b"x" * 60 + b" ")
    one._hear(long[:-1])
    assert one._next_head() is None
    one._hear(long[-1:] + HEAD)
    assert [one._next_head() for _ in range(3)] == [long, HEAD, None]


async def test_a_head_of_many_short_lines_and_one_of_a_long_line_are_too_large(others):
    most = 100
    for length, fits in ((most, True), (most + 1, False)):
        begun = b"GET / HTTP/1.1\r\na: " + b"x" * (length - 3)
        for sent, found in ((begun, None), (begun + b"\r\n\r\n", begun + b"\r\n\r\n")):
            one = One(others)
            one._hear(sent)
            if fits:
                assert one._next_head() == found
            else:
                with pytest.raises(ProblemError, match="headers are larger"):
                    one._next_head()
    one = One(others)
    one._hear(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * (module.HEAD_LINES * most // 6) + b"\r\n")
    with pytest.raises(ProblemError, match="headers are larger"):
        one._next_head()


async def test_the_time_for_a_head_runs_from_its_first_byte_once_a_request_was_answered(one):
    one._rest()
    now = one._loop.time()
    assert one._deadline == pytest.approx(now + 60, abs=1)
    assert one._next_head() is None
    assert one._deadline == pytest.approx(now + 60, abs=1), "nothing has come"
    one._hear(b"G")
    assert one._next_head() is None
    assert one._deadline == pytest.approx(now + 10, abs=1)
    one._deadline = 5.0
    one._hear(b"E")
    assert one._next_head() is None
    assert one._deadline == 5.0, "it does not begin anew"


async def test_every_byte_is_held_once_and_given_back_once(others, one):
    one._hear(b"x" * 40)
    one._arrived = 60
    one._balance()
    assert others.memory.used == 100
    one._ahead = b""
    assert one._hold(100) is True
    assert others.memory.used == 100, "what was incomplete is now what is answered"
    assert one._hold(901) is False
    assert others.memory.used == 100
    for _ in range(2):
        one._release()
        assert others.memory.used == 0
    one._ahead = b"y" * 30
    one._balance()
    one.pause_writing()
    assert others.memory.used == 100
    one.resume_writing()
    assert (others.memory.used, one._unread_deadline) == (30, math.inf)
    one.pause_writing()
    one.connection_lost(None)
    assert (others.memory.used, one._ahead, one._transport, one._is_leaving) == (0, b"", None, True)


@pytest.mark.parametrize(
    ("ahead", "between", "reads", "paused"),
    [
        (b"x", True, True, False),
        (b"x", False, True, True),
        (b"x", True, False, True),
        (b"", False, False, False),
    ],
)
async def test_reading_pauses_while_what_is_there_waits_for_an_answer_or_for_its_reader(
    one, ahead, between, reads, paused
):
    one._ahead, one.is_between = ahead, between
    one._unread_deadline = math.inf if reads else 5.0
    one._balance()
    one._balance()
    assert one._transport.said == (["pause_reading"] if paused else [])
    one._ahead, one.is_between, one._unread_deadline = b"", True, math.inf
    one._balance()
    assert one._transport.said == (["pause_reading", "resume_reading"] if paused else [])


@pytest.mark.parametrize(
    ("heard_all", "unread", "fails", "said", "seconds"),
    [
        (False, False, False, ["close"], 60),
        (False, True, False, ["write_eof"], 2),
        (True, True, False, ["close"], 60),
        (False, True, True, ["write_eof", "abort"], 2),
    ],
)
async def test_who_may_still_be_speaking_is_heard_until_he_has_read_the_answer(
    others, heard_all, unread, fails, said, seconds
):
    one = One(others, Wire(fails=fails))
    one._heard_all = heard_all
    one._leave(unread=unread)
    assert one._transport.said == said
    assert one._deadline == pytest.approx(one._loop.time() + seconds, abs=1)
    one = One(others)
    one._hear(b"more")
    one._leave()
    assert one._transport.said == ["write_eof"], "something was sent that nobody looked at"
    gone = One(others)
    gone._transport.closing = True
    gone._leave(unread=True)
    assert (gone._transport.said, gone._deadline) == ([], math.inf)
