import hashlib
import hmac

from drafts import draft, number, text

from protocols import Campaign
from protocols.wire import report_id

DRAFT = draft(text("u", "1", "2"), number("v"))
ONE = Campaign.compile(DRAFT)
ALL = Campaign.compile({**DRAFT, "privacy": {"epsilon": 1.0, "answers": "all"}})
SECRET = bytes(range(32))


def documented(campaign, slot):
    message = campaign.id.encode("ascii") + slot.to_bytes(4, "little")
    return hmac.new(SECRET, message, hashlib.sha256).digest()[:16]


def test_a_device_that_answers_one_question_has_one_id_whatever_it_was_asked():
    assert {report_id(SECRET, ONE, question) for question in ONE.questions} == {documented(ONE, 0)}


def test_a_device_that_answers_all_has_one_id_per_group():
    for question in ALL.questions:
        assert report_id(SECRET, ALL, question) == documented(ALL, question.group)
    assert len({report_id(SECRET, ALL, question) for question in ALL.questions}) == len(ALL.groups) == 3
