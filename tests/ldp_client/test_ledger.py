"""Receipts, caps, plain words."""

import time

import pytest
from crowds import crowd_draft

from ldp_client import Ledger, MemoryStorage, Receipt, StorageError
from ldp_client.ledger import FATES, Consent, Installation, apart, read_installation, write_installation
from ldp_client.refusals import Caps, refusal
from ldp_protocols import Campaign

CAP = 8.0
SECRET = bytes(range(32))
DAY = 86400.0
THIRD = "1970-01-03T00:00:00Z"


def receipt(title="A campaign", epsilon=1.0, **options):
    return Receipt(options.pop("campaign_id", title), title, None, epsilon, (0,), 1_800_000_000.0, **options)


def test_what_is_printed_is_never_below_what_was_spent_and_the_total_is_exact():
    assert "epsilon 0.3334 " in str(Ledger((receipt(epsilon=1 / 3),), CAP))
    for epsilon, told in ((100.00001, "100.0001"), (123456.78901, "123456.7891"), (1e-9, "0.0001"), (1e8, "100000000")):
        assert f"so far: epsilon {told} of" in str(Ledger((receipt(epsilon=epsilon),), CAP))
    ledger = Ledger(tuple(receipt(str(number), 0.1) for number in range(10)), CAP)
    assert ledger.total_epsilon >= 1.0
    assert (ledger.receipt("3"), ledger.receipt("10")) == (ledger.receipts[3], None)


def test_a_cap_is_held_to_the_last_bit(draft):
    campaign = Campaign.compile(draft)
    device = Installation(SECRET)
    assert refusal(device, campaign, Caps(1, 1), 0.0) is None
    device = device.with_receipt(receipt("a")).with_receipt(receipt("b", 1e-17))
    assert refusal(device, campaign, Caps(1, 2), 0.0).code == "total-above-cap"


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.1, 3.8441])
def test_a_cap_of_what_the_first_campaign_promises_lets_it_in_whatever_decimals_are_as_doubles(draft, epsilon):
    campaign = Campaign.compile({**draft, "privacy": {"epsilon": epsilon}})
    assert refusal(Installation(SECRET), campaign, Caps(epsilon, epsilon), 0.0) is None


def test_the_device_is_stored_whole_and_its_secret_never_printed():
    storage = MemoryStorage()
    consent = Consent("https://a", "t", "p", 1.0, 5.0, None)
    device = Installation().granted("c", consent, SECRET).withdrawn("c", "https://a", 6.0).with_receipt(receipt())
    assert device.consents["c"].granted_at == 5.0
    assert device.consent("c") is None
    with storage.transaction(write=True) as transaction:
        write_installation(transaction, device)
    with storage.transaction(write=False) as transaction:
        assert read_installation(transaction) == device
    assert repr(device.secret) not in repr(device)
    undecided = Installation().withdrawn("c", "https://a", 6.0)
    assert undecided.consents == {"c": Consent("https://a", "", "", 0.0, None, 6.0)}


@pytest.mark.parametrize("trick", ["\n* forged", "\u202e", "\x1b[2J", '"; epsilon 0.0001', "\u2028", "\x9b"])
def test_a_title_cannot_forge_a_line_or_move_the_cursor(trick):
    text = str(Ledger((receipt("A" + trick),), CAP))
    assert len(text.splitlines()) == 2
    assert text.replace("\n", "").isprintable()
    assert text.count('"') == 2


def test_every_flipped_bit_of_a_stored_device_is_noticed_and_that_a_storage_lost_it():
    storage = MemoryStorage()
    with storage.transaction(write=True) as transaction:
        write_installation(transaction, Installation(SECRET).with_receipt(receipt()))
        stored = transaction.get("device")
        for position in range(8 * len(stored)):
            flipped = bytearray(stored)
            flipped[position // 8] ^= 1 << position % 8
            transaction.put("device", bytes(flipped))
            with pytest.raises(StorageError):
                read_installation(transaction)
        transaction.delete("device")
        transaction.put("delivery/x", b"")
        with pytest.raises(StorageError):
            read_installation(transaction)


def test_of_two_scopes_the_one_that_lost_its_ledger_is_damaged_and_the_other_and_a_new_one_are_not():
    storage = MemoryStorage()
    with storage.transaction(write=True) as transaction:
        for scope in ("ann", "anna"):
            write_installation(transaction, Installation(SECRET).with_receipt(receipt()), scope)
            transaction.put(f"scope/{scope}/delivery/x", b"")
        transaction.delete("scope/ann/device")
        with pytest.raises(StorageError):
            read_installation(transaction, "ann")
        assert read_installation(transaction, "anna").receipts == (receipt(),)
        for new in ("", "an", "bob"):
            assert read_installation(transaction, new) == Installation()


def test_a_ledger_tells_a_person_to_the_letter_what_was_spent_where_and_when():
    assert "no campaign" in str(Ledger((), CAP))
    one = receipt("Sleep", 0.5, fate="arrived")
    two = Receipt("b", 'A "quoted"\ttitle', None, 0.99999999999, (0, 3), 1e300, fate="waiting")
    assert str(Ledger((one,), CAP)) == (
        "This device has contributed to 1 campaign. Privacy loss so far: epsilon 0.5 of at most 8.\n"
        '* "Sleep" on 2027-01-15: 1 answer, with noise added on this device; epsilon 0.5; '
        f"{FATES['arrived']}."
    )
    head, _, last = str(Ledger((one, two), CAP)).splitlines()
    assert head == "This device has contributed to 2 campaigns. Privacy loss so far: epsilon 1.5 of at most 8."
    assert last == (
        "* \"A 'quoted'\\u0009title\" on an unknown day: 2 answers, with noise added on this device; epsilon 1; "
        f"{FATES['waiting']}."
    )


def test_a_day_is_that_of_utc_where_it_is_still_the_day_before(monkeypatch):
    monkeypatch.setenv("TZ", "WEST11")  # eleven hours behind
    time.tzset()
    try:
        assert "on 2027-01-15" in str(Ledger((receipt(),), CAP))
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("changes", "device", "now", "code", "text"),
    [
        ({}, Installation(SECRET, enabled=False), 0.0, "switched-off", "contributing is switched off on this device"),
        ({"opens": THIRD}, Installation(SECRET), 0.0, "campaign-not-open", "opens at 1970-01-03 00:00 UTC"),
        ({"opens": THIRD}, Installation(SECRET), DAY, None, ""),
        ({"closes": THIRD}, Installation(SECRET), 3 * DAY, None, ""),
        ({"closes": THIRD}, Installation(SECRET), 3 * DAY + 1, "campaign-closed", "at 1970-01-03 00:00 UTC"),
        (
            {"study": "sleep"},
            Installation(SECRET).with_receipt(Receipt("other", "Other", "sleep", 1.0, (0,), 0.0)),
            0.0,
            "study-answered",
            "this device has answered another campaign of the same study; one is the most",
        ),
    ],
)
def test_a_refusal_says_why(draft, changes, device, now, code, text):
    found = refusal(device, Campaign.compile({**draft, **changes}), Caps(1, 8), now)
    assert (None if found is None else found.code) == code
    assert text in str(found)


def test_the_total_is_rounded_up_where_no_double_is_the_sum():
    ledger = Ledger((receipt(epsilon=1.0), receipt("Another", 2.0**-53)), 4.0)
    assert ledger.total_epsilon == 1.0000000000000002


def test_a_crowd_is_told_beside_what_is_lost_where_all_others_work_together():
    mixed = receipt("b", 4.0, crowd_epsilon=1 / 3, crowd_delta=1e-9)
    ledger = Ledger((receipt("a", 0.5), mixed, mixed), CAP)
    assert (ledger.total_epsilon, ledger.crowd_epsilon, ledger.crowd_delta) == (8.5, pytest.approx(0.5 + 2 / 3), 2e-9)
    told = str(ledger)
    assert "so far: epsilon 8.5 of at most 8. Where relays and aggregators keep apart: epsilon 1.1667, but for" in told
    assert "device; epsilon 4, 0.3334 where relay and aggregator keep apart; on this device" in told
    assert "apart" not in str(Ledger((receipt("a", 0.5),), CAP))
    assert (apart(mixed), apart(receipt("a"))) == (", 0.3334 where relay and aggregator keep apart", "")


def test_a_campaign_with_a_crowd_is_refused_unless_both_of_its_caps_are_set():
    campaign, device = Campaign.compile(crowd_draft()), Installation(SECRET)
    missing = refusal(device, campaign, Caps(64, 64), 0.0)
    assert missing.code == "crowd-cap-missing"
    assert "max_if_both_collude and max_crowd_epsilon" in str(missing)
    assert "epsilon 4 " in str(missing)
    assert "1 where they do not" in str(missing)
    assert refusal(device, campaign, Caps(0.1, 64, 1, 4), 0.0) is None
    assert refusal(device, campaign, Caps(64, 64, 1 - 1e-15, 4), 0.0).code == "crowd-above-cap"
    assert refusal(device, campaign, Caps(64, 64, 1, campaign.realised_epsilon - 1e-12), 0.0).code == "loss-above-cap"
    assert refusal(device, campaign, Caps(64, 4 - 1e-9, 1, 4), 0.0).code == "total-above-cap"
