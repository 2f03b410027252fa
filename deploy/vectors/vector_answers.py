"""The meaning of answers to uploads: what every client does with them, as a table."""

HOUR, DAY, WEEK = 3600, 86400, 7 * 86400
SIX_HOURS = 6 * HOUR
"""A server's Retry-After is followed up to this, and a final word is heard again after it."""

AT_ONCE, RETRIED = 0, 0.5
"""Seconds to the next try, with jitter in the middle: after what settled something, and after a first failure."""

LATER = ("campaign-not-open", "window-not-open", "campaign-closing", "clock-unsettled", "unknown-campaign", "not-found")
SINGLE = ("campaign-closed", "campaign-full", "window-over")
"""Codes of single reports that a wrong clock may give."""


def answers():
    """One case for each row of the table; README.md has the members."""
    return {"cases": [*_taken(), *_later(), *_impossible(), *_final(), *_single(), *_retry_after(), *_given_up()]}


def _case(name, *told, left=("waits",), **more):
    return {"name": name, "reports": len(left), "answers": list(told), "left": list(left), **more}


def _problem(status, code, after=0, **headers):
    return {"after": after, "status": status, "code": code, **({"headers": headers} if headers else {})}


def _page(status, after=0):
    return {"after": after, "status": status, "body": "<html>Log in to the hotel"}


def _rejected(*codes, after=0):
    """A success that says these codes of the reports, None of one that it took."""
    return {"after": after, "status": 200, "rejected": list(codes)}


def _silence(after=0):
    return {"after": after, "status": 0}


def _taken():
    yield _case("all of it", _rejected(None, None, None), left=["arrived"] * 3)
    wrong = "padding-bits-set"
    yield _case("one of it is wrong", _rejected(None, wrong, None), left=["arrived", wrong, "arrived"])
    for code in ("conflicting-report", "wrong-subset-size", "a-later-word"):
        yield _case(f"{code}: nothing of it", _rejected(code), left=[code])
    yield _case("a code that is none", _rejected("two words"), left=["unreadable-code"])
    for body in ("", "<html>", "{}", "[]", "null", *(f'{{"rejected": {odd}}}' for odd in (1, '[["a"]]', '[["a", 1]]'))):
        told = {"after": 0, "status": 200, "body": body}
        yield _case(f"a success that no aggregator sent: {body}", told, wait=RETRIED)


def _later():
    yield _case("silence", _silence(), wait=RETRIED)
    yield _case("silence five times", *[_silence(HOUR)] * 5, wait=8)
    for status in (301, 302, 401, 403, 407, 408, 418, 425, 429, 500, 502, 503, 504, 507, 511, 599):
        yield _case(f"{status}", _problem(status, "some-code"), wait=RETRIED)
        yield _case(f"{status}, a page", _page(status), wait=RETRIED)
    for status in (400, 404, 409, 410, 413, 415, 422, 451):
        yield _case(f"{status}, somebody else's page", *[_page(status, DAY)] * 3, wait=2)
    for code in LATER:
        for status in (400, 404, 409, 410, 413, 422, 451, 503):
            yield _case(f"{status} {code}", *[_problem(status, code, DAY)] * 3, wait=2)
        yield _case(f"{code} of each report", *[_rejected(code, code, after=DAY)] * 3, left=["waits"] * 2, wait=2)
        told = [_rejected(None, code), _rejected(None, code, after=DAY)]
        yield _case(f"{code} of one report", *told, left=["arrived", "waits"], wait=RETRIED)


def _impossible():
    for status in (400, 413, 415, 422):
        bad = _problem(status, "some-code")
        yield _case(f"{status} of several reports", bad, left=["waits"] * 4, wait=AT_ONCE, split=True)
        yield _case(f"{status} of one report", bad, left=["some-code"])
    for status in (400, 404, 409, 410, 415, 422, 451):
        yield _case(
            f"{status} of several reports, somebody else's page", _page(status), left=["waits"] * 3, wait=RETRIED
        )
    yield _case("413 of several reports, a proxy's page", _page(413), left=["waits"] * 2, wait=AT_ONCE, split=True)


def _final():
    deleted = "campaign-deleted"
    yield _case("410", _problem(410, deleted), left=[deleted])
    yield _case("410 of several reports", _problem(410, deleted), left=[deleted] * 3)
    for status, code in ((404, "some-code"), (409, "campaign-closed"), (409, "campaign-full"), (451, "some-code")):
        yield from _twice(f"{status} {code}", lambda after=0, told=(status, code): _problem(*told, after), code)
    two = [_problem(409, "campaign-closed"), _problem(409, "campaign-full", DAY)]
    yield _case("two different final words", *two, left=["campaign-full"])
    two = [_problem(409, "campaign-closed"), _problem(410, deleted)]
    yield _case("a final word, and a deletion", *two, left=[deleted])
    split = [_problem(409, "campaign-closed"), _page(413, HOUR), _problem(409, "campaign-closed", DAY)]
    yield _case("a final word, too much, and a final word", *split, left=["waits"] * 2, wait=SIX_HOURS, split=True)


def _single():
    for code in SINGLE:
        yield from _twice(f"{code} of each", lambda after=0, of=(code, code): _rejected(*of, after=after), code, 2)
        told = [_rejected(None, code)]
        yield _case(f"{code} of one report", *told, left=["arrived", "waits"], wait=AT_ONCE)
        told += [_rejected(None, code, after=DAY)]
        yield _case(f"{code} of one report, again", *told, left=["arrived", "waits"], wait=SIX_HOURS)
        told += [_rejected(None, code, after=DAY)]
        yield _case(f"{code} of one report, alone a day apart", *told, left=["arrived", code])
    doubt = [_rejected("window-over", "campaign-closing", after=DAY)] * 3
    yield _case("a final word of one report and a doubt of another", *doubt, left=["waits"] * 2, wait=2)
    whole = [_problem(409, "campaign-closed"), _rejected("campaign-closed", after=DAY)]
    yield _case("a final word of an upload, and of its report", *whole, left=["campaign-closed"])


def _twice(name, word, code, reports=1):
    kept, dropped = ["waits"] * reports, [code] * reports
    yield _case(f"{name}, once", word(), left=kept, wait=SIX_HOURS)
    yield _case(f"{name}, twice in a day", word(), word(DAY - 1), left=kept, wait=SIX_HOURS)
    yield _case(f"{name}, twice, a day apart", word(), word(DAY), left=dropped)
    yield _case(f"{name}, five times in a day", word(), *[word(SIX_HOURS)] * 4, left=dropped)
    yield _case(f"{name}, silence between", word(), _silence(HOUR), word(DAY - HOUR), left=dropped)
    for doubt in (_problem(409, "campaign-closing", HOUR), _problem(503, "some-code", HOUR), _page(502, HOUR)):
        between = f"{name}, {doubt.get('code', 'a page')} between"
        yield _case(between, word(), doubt, word(DAY), left=kept, wait=SIX_HOURS)
        yield _case(f"{between}, a day apart", word(), doubt, word(HOUR), word(DAY), left=dropped)
    back = [word(), word(-400 * DAY)]
    yield _case(f"{name}, the clock set back", *back, word(DAY - 1), left=kept, wait=SIX_HOURS)
    yield _case(f"{name}, the clock set back, a day apart", *back, word(DAY), left=dropped)


def _retry_after():
    date = {"date": "Mon, 01 Jan 2001 00:00:00 GMT"}
    for text, wait in (
        ("120", 120),
        ("999999999", SIX_HOURS),
        ("0", RETRIED),
        ("soon", RETRIED),
        ("-5", RETRIED),
        ("1.5", RETRIED),
        ("Mon, 01 Jan 2001 00:01:30 GMT", 90),
        ("Sun, 31 Dec 2000 00:01:30 GMT", RETRIED),
    ):
        headers = {"retry-after": text, **(date if "GMT" in text else {})}
        yield _case(f"Retry-After: {text}", _problem(503, "some-code", **headers), wait=wait)
    early = _rejected("window-not-open") | {"headers": {"retry-after": "60"}}
    yield _case("window-not-open of a report with Retry-After", early, wait=60)
    closing = _problem(409, "campaign-closing", **{"retry-after": "60"})
    yield _case("campaign-closing with Retry-After", closing, wait=60)
    closed = _problem(409, "campaign-closed", **{"retry-after": "60"})
    yield _case("campaign-closed with Retry-After", closed, wait=SIX_HOURS)


def _given_up():
    """``kept``: seconds after the last answer at which it is not yet given up, ``given_up``: at which it is."""
    yield _case("nine tries", *[_silence(HOUR)] * 9, expires=DAY, wait=128, kept=400 * DAY)
    ten = [_silence(HOUR)] * 10
    yield _case("ten tries", *ten, expires=DAY, wait=256, kept=14 * HOUR, given_up=14 * HOUR + 1)
    word = _problem(409, "campaign-closed", HOUR)
    yield _case("a final word", *ten, word, expires=DAY, wait=SIX_HOURS, kept=WEEK - 1, given_up=WEEK + 1)
    silent = [*ten, word, _silence(WEEK)]
    yield _case("a final word, and silence for a week", *silent, expires=DAY, wait=1024, kept=-1, given_up=1)
    back = [*ten, word, _silence(-400 * DAY)]
    yield _case("a final word, and the clock set back", *back, expires=-500 * DAY, wait=1024, kept=DAY)
