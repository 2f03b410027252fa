"""The issuer: so many tokens for a person, the same answer to the same request, a key that its owner alone reads."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import ClassVar

import pytest
from drafts import draft, text
from issuing import MODULUS, PUBLISHED, SIGNER

from ldp_client.tokens import finished_token, token_request
from ldp_protocols import Campaign, LdpError
from ldp_protocols.tokens import REQUEST_TYPE, RESPONSE_TYPE

pytest.importorskip("gmpy2")

from ldp_aggregator.issuer import TokenIssuer, issuing, make_issuer_key, public_key, read_issuer_key

REQUEST, RESPONSE = bytes.fromhex(PUBLISHED["token_request"]), bytes.fromhex(PUBLISHED["token_response"])


def request_of(number):
    """A request of another device."""
    return REQUEST[:3] + number.to_bytes(256, "big")


@pytest.fixture
def people(tmp_path):
    return tmp_path / "people.sqlite"


@pytest.fixture
def issuer(people):
    return TokenIssuer(SIGNER, people, tokens=2)


def test_it_answers_as_published_and_nobody_finds_a_name_in_the_file(issuer, people):
    assert issuer.sign("ann.of.somewhere@example.org", REQUEST) == RESPONSE
    assert b"ann.of" not in people.read_bytes()


def test_a_person_has_so_many_and_the_same_request_counts_once(issuer, people, code_of):
    signed = [issuer.sign("ann", request_of(n)) for n in (5, 5, 6, 5, 6)]
    assert len(set(signed)) == 2
    assert code_of(LdpError, issuer.sign, "ann", request_of(7)) == "tokens-spent"
    again = TokenIssuer(SIGNER, people, tokens=2)
    assert again.sign("ann", request_of(6)) == signed[2]
    assert code_of(LdpError, again.sign, "ann", request_of(7)) == "tokens-spent"
    issuer.sign("bob", request_of(7))
    other = TokenIssuer(make_issuer_key(people.with_name("other.pem")), people, tokens=1)
    with pytest.raises(LdpError, match="another key"):
        other.sign("ann", bytes([0, 2, other._key_id[-1] ^ 1]) + request_of(9)[3:])


def test_a_person_has_as_many_of_the_key_for_relays(people, code_of):
    relays = make_issuer_key(people.with_name("relays.pem"), SIGNER)
    issuer = TokenIssuer(SIGNER, people, 2, relays)
    requests = [REQUEST[:2] + issuing._key_id(relays)[-1:] + request_of(n)[3:] for n in (5, 6, 7)]
    assert len({issuer.sign("ann", request) for request in requests[:2]}) == 2
    assert code_of(LdpError, issuer.sign, "ann", requests[2]) == "tokens-spent"


def test_two_keys_whose_requests_nobody_can_tell_apart_are_refused_and_none_such_is_made(people, monkeypatch, code_of):
    assert code_of(LdpError, TokenIssuer, SIGNER, people, 1, SIGNER) == "bad-key"
    made = iter([SIGNER, SIGNER, make_issuer_key(people.with_name("other.pem"), SIGNER)])
    monkeypatch.setattr(issuing, "generate_private_key", lambda *_: next(made))
    kept = make_issuer_key(people.with_name("relays.pem"), SIGNER)
    assert len(TokenIssuer(SIGNER, people, 1, kept).public_keys) == 2


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("\u0390", "\u03aa\u0301"),  # Of these only the small letter is one character.
        ("dave", "DAVE"),
        ("dave", " dave\t"),
        ("dave", "\uff44ave"),
        ("straße", "STRASSE"),
        ("jos\u00e9", "jose\u0301"),
    ],
)
def test_a_name_in_another_form_is_the_same_person(people, name, other, code_of):
    issuer = TokenIssuer(SIGNER, people)
    issuer.sign(name, request_of(5))
    assert code_of(LdpError, issuer.sign, other, request_of(6)) == "tokens-spent"
    issuer.sign("davy", request_of(6))


def test_a_name_is_of_1_to_256_printable_characters_and_another_one_costs_nothing(people, code_of):
    issuer = TokenIssuer(SIGNER, people)
    for number, wrong in enumerate(("", " \t", "a" * 257, "a\nb", "a\0", "a\u200b", "\x7f")):
        assert code_of(LdpError, issuer.sign, wrong, request_of(5 + number)) == "malformed-person"
    for number, name in enumerate(("a", "b" * 256, "a b", "é", "名")):
        issuer.sign(name, request_of(5 + number))


def test_the_file_of_people_is_its_owners_alone_also_where_it_was_there_and_others_could_read_it(people):
    people.touch(0o666)
    people.chmod(0o666)
    TokenIssuer(SIGNER, people).sign("ann", request_of(5))
    assert people.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"", "malformed-request"),
        (REQUEST[:-1], "malformed-request"),
        (REQUEST + b"\0", "malformed-request"),
        (b"\0\1" + REQUEST[2:], "malformed-request"),
        (REQUEST[:3] + bytes(256), "malformed-request"),
        (REQUEST[:3] + MODULUS.to_bytes(256, "big"), "malformed-request"),
        (REQUEST[:2] + bytes([REQUEST[2] ^ 1]) + REQUEST[3:], "other-key"),
    ],
)
def test_what_is_no_request_is_refused_and_costs_nothing(issuer, request_, code, code_of):
    assert code_of(LdpError, issuer.sign, "ann", request_) == code
    issuer.sign("ann", request_of(5))
    issuer.sign("ann", request_of(6))


def test_a_request_that_names_any_other_key_is_refused(issuer, code_of):
    others = [bytes([byte]) for byte in range(256) if byte != REQUEST[2]]
    codes = {code_of(LdpError, issuer.sign, "ann", REQUEST[:2] + byte + REQUEST[3:]) for byte in others}
    assert codes == {"other-key"}


def test_many_at_once_get_no_more(people):
    """Threads, each with an issuer of its own on the one file."""
    start = threading.Barrier(8)

    def ask(number):
        start.wait()
        try:
            TokenIssuer(SIGNER, people, tokens=3).sign("ann", request_of(number + 2))
        except LdpError as refused:
            return refused.code
        return "signed"

    with ThreadPoolExecutor(8) as threads:
        ends = sorted(threads.map(ask, range(8)))
    assert ends == ["signed"] * 3 + ["tokens-spent"] * 5


class Watched(sqlite3.Connection):
    """Notes how a connection syncs whenever something is written."""

    synced: ClassVar[list[int]] = []

    def execute(self, statement, *arguments):
        if statement.startswith("INSERT"):
            self.synced.append(super().execute("PRAGMA synchronous").fetchone()[0])
        return super().execute(statement, *arguments)


def test_what_was_signed_is_on_disk_before_the_signature_is_told(issuer, monkeypatch):
    """2 is FULL: each transaction is synced. With less, a power cut would let a person have one more."""
    real = sqlite3.connect
    monkeypatch.setattr(Watched, "synced", [])
    monkeypatch.setattr("sqlite3.connect", lambda *given, **named: real(*given, factory=Watched, **named))
    issuer.sign("ann", request_of(5))
    issuer.sign("bob", request_of(6))
    assert Watched.synced == [2, 2]


def test_nothing_is_signed_where_the_count_cannot_be_kept(issuer, people, code_of, monkeypatch):
    raised = []
    monkeypatch.setattr("gmpy2.powmod_sec", lambda *_: raised.append(1))
    with closing(sqlite3.connect(people)) as database, database:
        database.execute("DROP TABLE signed")
    assert code_of(LdpError, issuer.sign, "ann", request_of(5)) == "people-unavailable"
    assert raised == []


def test_the_secret_power_is_taken_by_the_function_that_takes_the_same_time_for_every_secret(issuer, monkeypatch):
    real, secret, taken = issuing.gmpy2.powmod_sec, SIGNER.private_numbers().d, []

    def noted(base, exponent, modulus):
        taken.append(exponent)
        return real(base, exponent, modulus)

    def public(base, exponent, modulus=None):
        assert exponent != secret
        return pow(base, exponent, modulus)

    monkeypatch.setattr(issuing.gmpy2, "powmod_sec", noted)
    monkeypatch.setattr(issuing, "pow", public, raising=False)
    issuer.sign("ann", request_of(5))
    assert taken == [secret]


def test_a_file_that_cannot_be_written_signs_nothing(tmp_path, code_of):
    assert code_of(LdpError, TokenIssuer, SIGNER, tmp_path / "no" / "people.sqlite") == "people-unavailable"


def test_a_key_is_its_owners_alone_and_is_not_written_over(tmp_path):
    path = tmp_path / "issuer.pem"
    made = make_issuer_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert public_key(read_issuer_key(path)) == public_key(made)
    with pytest.raises(FileExistsError):
        make_issuer_key(path)
    for mode in (0o644, 0o640, 0o620, 0o604, 0o601):
        path.chmod(mode)
        with pytest.raises(LdpError, match="chmod 600"):
            read_issuer_key(path)
    for wrong in (b"", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
        path.write_bytes(wrong)
        path.chmod(0o600)
        with pytest.raises(LdpError, match="no RSA key"):
            read_issuer_key(path)
    with pytest.raises(LdpError, match="cannot be read"):
        read_issuer_key(tmp_path / "none.pem")


def post(url, body, **headers):
    request = urllib.request.Request(url, body, {"Content-Type": REQUEST_TYPE} | headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert answer.headers["Cache-Control"] == "no-store", "no cache on the way keeps somebody's token"
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.loads(refused.read())["code"]


def test_the_program_makes_a_key_prints_it_and_signs_for_whom_the_proxy_names(tmp_path):
    program = [sys.executable, "-m", "ldp_aggregator.issuer", str(tmp_path / "issuer.pem")]
    printed = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True).stdout
    issuer = tomllib.loads(printed)["issuer"] | {"name": "tokens.example.org"}
    campaign = Campaign.compile(draft(text("colour", "red", "green"), issuer=issuer))
    serving = [*program, "--people", str(tmp_path / "people.sqlite"), "--port", "0"]
    with subprocess.Popen(serving, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == printed, "the key that is there is used"
            url = process.stdout.readline().rsplit(" ", 1)[1].strip()
            secret = os.urandom(32)
            request = token_request(campaign, secret)
            for _ in range(2):
                status, media, response = post(url, request, **{"X-Remote-User": "ann"})
                assert (status, media) == (200, RESPONSE_TYPE)
                assert finished_token(campaign, secret, response)
            more = token_request(campaign, os.urandom(32))
            assert post(url, more, **{"X-Remote-User": "ann"}) == (403, "tokens-spent")
            assert post(url, more) == (401, "no-person")
            as_text = {"X-Remote-User": "bob", "Content-Type": "text/plain"}
            assert post(url, more, **as_text) == (415, "wrong-media-type")
            assert post(url, b"x" * 9999, **{"X-Remote-User": "bob"}) == (422, "malformed-request")
            directory = url.rsplit("/", 1)[0] + "/.well-known/private-token-issuer-directory"
            with urllib.request.urlopen(directory, timeout=20) as answer:
                (named,) = json.load(answer)["token-keys"]
            assert (named["token-type"], named["token-key"].rstrip("=")) == (2, issuer["key"])
        finally:
            process.terminate()
        assert process.wait(20) == 0
