"""No number that somebody has decided changes unseen: limits, times, statuses and defaults are stored as numbers."""

import json

from keep_numbers import STORED, numbers, value_of

KEPT = json.loads(STORED.read_text(encoding="utf-8"))


def test_every_limit_time_status_and_default_is_the_stored_one():
    found = json.loads(json.dumps(numbers()))
    changed = [
        f"{file}: {name} is {found.get(file, {}).get(name)}, not {KEPT.get(file, {}).get(name)}"
        for file in sorted(found.keys() | KEPT.keys())
        for name in sorted(found.get(file, {}).keys() | KEPT.get(file, {}).keys())
        if found.get(file, {}).get(name) != KEPT.get(file, {}).get(name)
    ]
    assert changed == [], "if that is meant, python tests/support/keep_numbers.py stores them anew"


def test_among_them_are_those_of_every_package_and_client_and_of_every_kind():
    assert KEPT["ldp_aggregator/store/clocks.py"]["GRACE"] == "86400 s"
    assert KEPT["ldp_aggregator/server/problems.py"]["PROBLEMS"]["too-many-reports"]["status"] == 413
    assert KEPT["protocols/ldp_protocols/framing.py"]["ID_BYTES"] == 16
    assert KEPT["simulations/ldp_simulations/studies/trials.py"]["Study.train_fraction"] == 0.8
    assert KEPT["javascript/src/device/policy.ts"]["RETRY_AFTER_LONGEST"] == "6 * HOUR"
    assert KEPT["kotlin/src/main/kotlin/Policy.kt"]["SECOND_WORD"] == "1.days"
    assert KEPT["swift/Sources/LdpBayes/Policy.swift"]["requestTimeout"] == "30.0"
    assert value_of({"a": 1.5, "b": "text", "c": [True, {2, 1}]}) == {"a": 1.5, "c": [True, [1, 2]]}
