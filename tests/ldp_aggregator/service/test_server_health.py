"""Everything that is wrong with a server, by its metrics."""

from datetime import datetime, timezone

from ldp_aggregator.service.server_health import ServerFacts, findings
from ldp_aggregator.service.verdicts import ACT, WATCH

NOW = datetime(2027, 1, 1, tzinfo=timezone.utc)


def test_what_is_wrong_with_a_server_is_told_with_its_place_in_the_runbook():
    now = NOW.timestamp()
    values = {
        ("ldp_campaign_failing", "f" * 43): 1.0,
        ("ldp_gateway_key_missing", "k" * 43): 1.0,
        ("ldp_campaign_unsigned", "u" * 43): 1.0,
        ("ldp_damaged_campaigns", ""): 2.0,
        ("ldp_free_bytes", ""): 5e8,
        ("ldp_certificate_expires_timestamp_seconds", ""): now + 3 * 86400 + 1,
        ("ldp_directory_expires_timestamp_seconds", "key"): now - 1,
        ("ldp_time_seconds", ""): now + 61,
    }
    facts = ServerFacts.of(
        values, now, not_ready="store-unavailable (x)", store_fails=True, titles={"f" * 43: "Who falls?"}
    )
    assert [(one.mood, str(one)) for one in findings(facts)] == [
        (ACT, "not ready: store-unavailable (x): docs/runbook.md#store-unavailable"),
        (ACT, "the last write to the store failed: docs/runbook.md#storeerrors"),
        (ACT, "Who falls? (ffffffff) cannot be counted: docs/runbook.md#campaignfailing"),
        (
            ACT,
            "campaign (kkkkkkkk) is sealed to a gateway's key that this server does not have: "
            "docs/runbook.md#gatewaykeymissing",
        ),
        (ACT, "2 campaigns go on although a part of what is stored is damaged: docs/runbook.md#storedamaged"),
        (ACT, "500.0 MB are left on the store's disk: docs/runbook.md#diskfull"),
        (ACT, "its clock is 61 seconds off: docs/runbook.md#clockskew"),
        (WATCH, "campaign (uuuuuuuu) is named by no directory of a publisher: docs/runbook.md#campaignunsigned"),
        (WATCH, "the certificate ends in 3 days: docs/runbook.md#certificateends"),
        (ACT, "a publisher's directory has ended: docs/runbook.md#directoryends"),
    ]
    well = {**dict.fromkeys(values, 0.0), ("ldp_free_bytes", ""): 1e9, ("ldp_time_seconds", ""): now - 60}
    for name in ("certificate", "directory"):
        well[f"ldp_{name}_expires_timestamp_seconds", "key" if name == "directory" else ""] = now + 14 * 86400
    for name in ("campaign_failing", "gateway_key_missing", "campaign_unsigned"):
        del well[next(key for key in well if key[0] == f"ldp_{name}")]
    assert list(findings(ServerFacts.of(well, now))) == []
    assert list(findings(ServerFacts.of({}, now))) == []
