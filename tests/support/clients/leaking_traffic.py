"""Clients whose answers are right and whose traffic leaks: to a relay, an issuer, whoever counts sends, or the disk.

Each was written from what the pages promise of sealing, tokens, sending again and erasing. It is this distribution's
client of lines, in this process, with one step done wrong: a flaw patches it, and ``asked()`` is the class of who is
asked just then.
"""

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import issuing
from audited_campaigns import compiled
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from drafts import text

from ldp_aggregator.audit import Answer
from ldp_aggregator.audit.asking.black_box import Dialogue, Refusal
from ldp_aggregator.audit.verdict import (
    BESIDE,
    DRAW_REPEATS,
    DRAW_UNEVEN,
    ERASED,
    HEADER,
    IMPOSSIBLE,
    LOSS,
    REFUSED,
    RETRY,
    TOKEN,
    UNSEALED,
)
from ldp_client import lines, tokens
from ldp_client.delivery import schedule, sender
from ldp_client.device import Device
from ldp_client.errors import StorageError
from ldp_client.network import aggregator, sealed
from ldp_protocols import LdpError
from ldp_protocols.document.gateway import Gateway
from ldp_protocols.document.issuer import key_text
from ldp_protocols.oblivious import suite
from ldp_protocols.tokens import SALT_BYTES, padded

GATEWAY = Gateway(1, X25519PrivateKey.from_private_bytes(bytes(range(32))).public_key().public_bytes_raw()).to_json()
FEATURES = [text("f0", "0", "1", "2")]
PLAIN = compiled(2, 1, FEATURES, privacy={"epsilon": 1.0, "discrete": "oue"})
SEALED = compiled(2, 1, FEATURES, privacy={"epsilon": 1.0, "discrete": "oue"}, gateway=GATEWAY)
WITH_TOKENS = compiled(2, 1, FEATURES, privacy={"epsilon": 1.0, "discrete": "oue"}, issuer=issuing.issuer())
FOR_RELAYS = issuing.issuer(relay_key=key_text(issuing.MODULUS ^ 2))
RELAYED = compiled(2, 1, FEATURES, privacy={"epsilon": 1.0, "discrete": "oue"}, gateway=GATEWAY, issuer=FOR_RELAYS)
BOTH = compiled(2, 1, FEATURES, privacy={"epsilon": 1.0, "discrete": "oue"}, gateway=GATEWAY, issuer=issuing.issuer())

_asked: list[Mapping[str, Any]] = []


def asked() -> int:
    """The class of who is asked now, 0 or 1."""
    return int(_asked[-1]["label"] == "c1")


class _Watched(lines._Device):
    def answer(self, record: Mapping[str, object], line: Mapping[str, Any], now: float | None) -> list[bytes]:
        _asked.append(line)
        try:
            return super().answer(record, line, now)
        finally:
            _asked.pop()


Patch = Callable[[Any, str, Any], None]
Flaw = Callable[[Patch], None]


@dataclass(frozen=True)
class Planted:
    """A flaw of a campaign's clients, and codes of which one at least is found."""

    flaw: Flaw
    document: str
    codes: frozenset[str]

    def client(self, document: str, people: Sequence[Any], storage: Path | None = None, /) -> list[Answer]:
        with self.talk(document, storage) as ask:
            return ask([{name: of for name, of in line.items() if of is not None} for line in map(_line, people)])

    @contextmanager
    def talk(self, document: str, storage: Path | None) -> Iterator[Dialogue]:
        """One life of the client."""
        waiting: list[str] = []
        answers = lines.answers(iter(lambda: waiting.pop(0), None))
        first = {"document": document} | ({} if storage is None else {"storage": str(storage)})
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(lines, "_Device", _Watched))
            self.flaw(lambda owner, name, new: stack.enter_context(mock.patch.object(owner, name, new)))

            def ask(asking: Sequence[Mapping[str, Any]], /) -> list[Answer]:
                found: list[Answer] = []
                for line in asking:
                    waiting.append(json.dumps({**first, **line}))
                    first.clear()
                    said = next(answers)
                    refused = said.startswith("!")
                    found.append(Refusal.of(said[1:]) if refused else tuple(bytes.fromhex(of) for of in said.split()))
                return found

            yield ask


def _line(person: Any) -> Mapping[str, Any]:
    return person.to_json() | {name: getattr(person, name) for name in ("device", "now", "token")}


LEAKING: dict[str, Planted] = {}


def leak(document: str, *codes: str, name: str | None = None, **arguments: Any) -> Callable[[Any], Any]:
    def enter(flaw: Callable[..., None]) -> Callable[..., None]:
        called = name or flaw.__name__.replace("_", "-")
        LEAKING[called] = Planted(lambda patch: flaw(patch, **arguments), document, frozenset(codes))
        return flaw

    return enter


HONEST = {
    name: Planted(lambda patch: None, document, frozenset())
    for name, document in (
        ("plain", PLAIN),
        ("sealed", SEALED),
        ("with-tokens", WITH_TOKENS),
        ("both", BOTH),
        ("relayed", RELAYED),
    )
}


# --- what the issuer sees: requests that tell nothing, and that nobody can tie to tokens ---


def _blinded_by(patch: Patch, factor_of: Callable[[Any, bytes, int], int]) -> None:
    honest = tokens._prepared

    def prepared(campaign: Any, secret: bytes, for_relay: bool) -> tuple[bytes, int, int]:
        signed, encoded, factor = honest(campaign, secret, for_relay)
        return signed, encoded, factor_of(campaign, secret, factor)

    patch(tokens, "_prepared", prepared)


@leak(WITH_TOKENS, DRAW_UNEVEN, DRAW_REPEATS, name="blinds-with-one", factor=1)
@leak(BOTH, DRAW_UNEVEN, DRAW_REPEATS, name="blinds-with-three-in-a-sealed-campaign", factor=3)
def one_small_factor(patch, factor):
    _blinded_by(patch, lambda *_: factor)


@leak(WITH_TOKENS, DRAW_REPEATS)
def one_factor_for_a_campaign(patch):
    """A factor of full length, which the campaign's id gives."""
    _blinded_by(patch, lambda campaign, *_: int.from_bytes(hashlib.shake_256(campaign.id.encode()).digest(250), "big"))


@leak(WITH_TOKENS, DRAW_REPEATS)
def one_of_sixty_factors(patch):
    """Factors are made beforehand, and each serves many devices."""
    _blinded_by(patch, lambda _, secret, __: int.from_bytes(hashlib.shake_256(b"%d" % (secret[0] % 60)).digest(250)))


@leak(WITH_TOKENS, DRAW_UNEVEN)
def factors_of_64_bits(patch):
    _blinded_by(patch, lambda _, __, factor: factor % (1 << 64) | 1)


@leak(WITH_TOKENS, DRAW_UNEVEN)
def even_factors(patch):
    """Three of four factors are even."""
    _blinded_by(patch, lambda _, secret, factor: factor & ~1 if secret[0] & 1 else factor)


@leak(WITH_TOKENS, DRAW_UNEVEN, BESIDE, HEADER, name="class-in-the-salt", often=True)
@leak(WITH_TOKENS, BESIDE, DRAW_UNEVEN, RETRY, name="class-in-a-bit-of-the-salt", often=False)
def salt_of_the_class(patch, often):
    """The token's salt holds the class: as a byte, or as a bit that has it in three of four devices."""
    honest = tokens._prepared

    def prepared(campaign, secret, for_relay):
        signed, _, factor = honest(campaign, secret, for_relay)
        salt = bytearray(hashlib.sha512(b"salt" + secret).digest()[:SALT_BYTES])
        if often:
            salt[40] = asked()
        elif salt[0] & 3:
            salt[40] = salt[40] & 0xFE | asked()
        return signed, padded(signed, bytes(salt), 2048), factor

    patch(tokens, "_prepared", prepared)


@leak(WITH_TOKENS, RETRY, TOKEN)
def token_asked_for_anew(patch):
    """Every request is blinded anew: the issuer counts each."""
    counted = iter(range(1 << 30))
    honest = tokens._prepared
    last = {}

    def prepared(campaign, secret, for_relay):
        signed, encoded, _ = honest(campaign, secret, for_relay)
        if not _asked[-1].get("token"):
            last[secret] = int.from_bytes(hashlib.shake_256(secret + b"%d" % next(counted)).digest(250), "big")
        return signed, encoded, last[secret]

    patch(tokens, "_prepared", prepared)


@leak(WITH_TOKENS, TOKEN)
def token_of_other_ids(patch):
    """The token's nonce is a hash of the secret: it is of no answer, and could be shown with any."""
    patch(tokens, "token_input", _other_nonce(tokens.token_input))


def _other_nonce(honest):
    def token_input(campaign, ids):
        signed = honest(campaign, ids)
        return signed[:2] + hashlib.sha256(b"".join(ids)).digest() + signed[34:]

    return token_input


@leak(WITH_TOKENS)
def factor_from_a_keyed_hash(patch):
    """The vendor's key and the answer's ids, which the aggregator sees, make the factor: together they unblind."""

    def factor_of(campaign, secret, _):
        (asked_of,) = tokens.draw_questions(campaign, secret)
        of_id = tokens.report_id(secret, campaign, asked_of)
        return int.from_bytes(hashlib.shake_256(b"the vendor's key" + of_id).digest(250), "big")

    _blinded_by(patch, factor_of)


# --- what the relay sees ---


def _sealed_with(patch: Patch, seed_of: Callable[[int], bytes | None]) -> None:
    """The ephemeral key comes from a seed: of the number of seals before."""
    counted = iter(range(1 << 30))
    honest = suite(1).create_sender_context.__func__

    def create(self, key, info=b"", **others):
        seed = seed_of(next(counted))
        pair = None if seed is None else self.kem.derive_key_pair(hashlib.sha256(seed).digest())
        return honest(self, key, info, eks=pair, **others)

    patch(type(suite(1)), "create_sender_context", create)


@leak(SEALED, DRAW_REPEATS)
def one_ephemeral_key_for_a_process(patch):
    _sealed_with(patch, lambda _: b"always")


@leak(BOTH, DRAW_REPEATS)
def ephemeral_keys_of_sixteen_bits(patch):
    _sealed_with(patch, lambda _: os.urandom(2))


@leak(SEALED, BESIDE)
def ephemeral_key_drawn_until_it_says_the_class(patch):
    """In one half of the seals, until its first bit is the class's."""
    kem = suite(1).kem

    def seed_of(number):
        if number % 2:
            return None
        while True:
            seed = os.urandom(32)
            public = kem.derive_key_pair(hashlib.sha256(seed).digest()).public_key.to_public_bytes()
            if public[0] & 1 == asked():
                return seed

    _sealed_with(patch, seed_of)


@leak(SEALED)
def ephemeral_key_by_keyed_hash(patch):
    """Drawn until a keyed hash of it says the class: a relay that has the key reads it."""
    kem = suite(1).kem

    def seed_of(_):
        while True:
            seed = os.urandom(32)
            public = kem.derive_key_pair(hashlib.sha256(seed).digest()).public_key.to_public_bytes()
            if hashlib.sha256(b"the vendor's key" + public).digest()[0] & 1 == asked():
                return seed

    _sealed_with(patch, seed_of)


@leak(PLAIN)
def copy_outside_the_storage(patch):
    """Erasing leaves a copy where no audit looks: in the app's own log, or in a backup."""
    kept = []
    honest = lines._Device.send

    def send(self, request, *given):
        kept.append(request.body)
        return honest(self, request, *given)

    patch(_Watched, "send", send)


@leak(PLAIN)
def another_host_is_told(patch):
    """The class goes to a host of the vendor's, by no request of the client's."""
    told = []
    honest = lines._Device.send

    def send(self, request, *given):
        told.append(asked())
        return honest(self, request, *given)

    patch(_Watched, "send", send)


@leak(SEALED, DRAW_REPEATS)
def the_same_seal_again(patch):
    """A device seals once and sends those bytes at every try: a relay sees that it is one upload."""
    kept = {}
    honest = sealed.Sealed.__init__

    def init(self, gateway, message):
        if message not in kept:
            honest(self, gateway, message)
            kept[message] = vars(self).copy()
        vars(self).update(kept[message])

    patch(sealed.Sealed, "__init__", init)


@leak(SEALED, HEADER)
def shorter_padding_for_one_class(patch):
    honest = sealed.encode_request
    patch(
        sealed, "encode_request", lambda request, *, beside: honest(request, beside=beside if asked() else beside // 2)
    )


@leak(SEALED, HEADER)
def a_header_beside_the_seal(patch):
    """A header of one class's requests, "for the support"."""
    honest = sealed.SealedAggregator.upload

    def upload(self, *given):
        request = honest(self, *given)
        return replace(request, headers={**request.headers, **({"X-Priority": "1"} if asked() else {})})

    patch(sealed.SealedAggregator, "upload", upload)


@leak(SEALED, UNSEALED)
def in_the_clear_after_two_tries(patch):
    """Where the relay does not answer, the upload goes directly, so that it is not lost."""
    honest = sealed.SealedAggregator.upload

    def upload(self, body, attempt, token=None):
        return (
            aggregator.Aggregator.upload(self, body, attempt, token)
            if attempt > 2
            else honest(self, body, attempt, token)
        )

    patch(sealed.SealedAggregator, "upload", upload)


@leak(SEALED, UNSEALED)
def one_class_in_the_clear(patch):
    honest = sealed.SealedAggregator.upload

    def upload(self, *given):
        return aggregator.Aggregator.upload(self, *given) if asked() else honest(self, *given)

    patch(sealed.SealedAggregator, "upload", upload)


# --- what the aggregator sees inside ---


@leak(SEALED, HEADER)
def class_in_the_padding(patch):
    honest = sealed.encode_request
    patch(sealed, "encode_request", lambda *given, **more: honest(*given, **more)[:-1] + bytes([asked()]))


@leak(BOTH, HEADER)
def a_header_inside_for_one_value(patch):
    honest = aggregator.Aggregator.upload

    def upload(self, *given):
        request = honest(self, *given)
        named = _asked[-1]["record"].get("f0") == "2"
        return replace(request, headers={**request.headers, **({"Accept-Language": "de"} if named else {})})

    patch(aggregator.Aggregator, "upload", upload)


@leak(PLAIN, HEADER)
def query_in_the_address(patch):
    """A campaign without any relay: the address carries the class."""
    honest = aggregator.Aggregator.upload

    def upload(self, *given):
        request = honest(self, *given)
        return replace(request, url=f"{request.url}?v={asked()}")

    patch(aggregator.Aggregator, "upload", upload)


@leak(PLAIN, HEADER, DRAW_UNEVEN, BESIDE)
def a_name_in_a_header(patch):
    """A header names the install."""
    honest = aggregator.Aggregator.upload

    def upload(self, *given):
        request = honest(self, *given)
        return replace(request, headers={**request.headers, "Cookie": urlsafe_b64encode(os.urandom(6)).decode()})

    patch(aggregator.Aggregator, "upload", upload)


# --- later sends ---


@leak(PLAIN, BESIDE, name="one-class-waits-longer", longer=8.0)
@leak(SEALED, BESIDE, name="one-class-waits-a-little-longer", longer=3.0)
def waits_longer(patch, longer):
    honest = schedule.judge

    def judge(before, task, answer, now, jitter, policy):
        if asked():
            policy = replace(policy, backoff_base=policy.backoff_base * longer)
        return honest(before, task, answer, now, jitter, policy)

    patch(sender.uploads, "judge", judge)


@leak(PLAIN, BESIDE, HEADER)
def one_class_gives_up(patch):
    """After the first failure nothing more is tried for one class."""
    honest = sender.Sender.run_once

    def run_once(self, timeout, **more):
        return True if asked() and "resend" in _asked[-1] else honest(self, timeout, **more)

    patch(sender.Sender, "run_once", run_once)


@leak(PLAIN, RETRY)
def other_noise_at_the_fifth_send(patch):
    honest = aggregator.Aggregator.upload

    def upload(self, body, attempt, token=None):
        changed = body if attempt < 5 else bytes([*body[:-1], body[-1] ^ 1])
        return honest(self, changed, attempt, token)

    patch(aggregator.Aggregator, "upload", upload)


@leak(PLAIN, LOSS, IMPOSSIBLE)
def the_truth_by_the_device_alone(patch):
    """What a device stores is not perturbed; what the library's function gives is."""
    from ldp_client import answering

    honest = answering.perturb

    def perturb(campaign, record, label, **more):
        reports = honest(campaign, record, label, **more)
        if _asked and "device" in _asked[-1]:
            return [replace(of, payload=bytes([1 << asked()]) + of.payload[1:]) for of in reports]
        return reports

    patch(answering, "perturb", perturb)


# --- erasure ---


@leak(PLAIN, ERASED)
def erase_keeps_the_secret(patch):
    """Everything is deleted but the secret, "so that nobody counts twice"."""
    honest = Device.erase
    from ldp_client.ledger import Installation, read_installation, write_installation

    def erase(self, **more):
        with self._install.storage.transaction(write=False) as transaction:
            secret = read_installation(transaction, "").secret
        honest(self, **more)
        with self._install.storage.transaction(write=True) as transaction:
            write_installation(transaction, replace(Installation(), secret=secret), "")

    patch(Device, "erase", erase)


@leak(PLAIN, ERASED)
def erase_keeps_a_copy(patch):
    """The last upload is in a file beside the storage, for the support."""
    honest = lines._Device.send

    def send(self, request, *given):
        if request.body and self._place != ":memory:":
            Path(self._place + ".log").write_text(request.body.hex())
        return honest(self, request, *given)

    init = _Watched.__init__

    def initialised(self, campaign, storage, now):
        self._place = storage
        init(self, campaign, storage, now)

    patch(_Watched, "__init__", initialised)
    patch(_Watched, "send", send)


@leak(SEALED, ERASED)
def erase_forgets_the_queue(patch):
    """An upload that waits goes out after all."""
    held = {}

    def erase(self, **more):
        held[id(self)] = True

    patch(Device, "erase", erase)


# --- checks of which all lines are refused ---


@leak(PLAIN, REFUSED)
def refuses_to_erase(patch):
    def erase(self, **more):
        raise StorageError("storage-busy")

    patch(Device, "erase", erase)


@leak(BOTH, REFUSED)
def refuses_devices(patch):
    """As a client that has no relay does: whoever asks by the library's function alone hears nothing of it."""

    def answer(self, record, line, now):
        raise LdpError("no-relay", "there is none")

    patch(_Watched, "answer", answer)
