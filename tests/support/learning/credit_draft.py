"""A draft with a feature of every kind, and how tests change one place of it."""

import copy
import json

from hypothesis import strategies as st

from ldp_protocols import Campaign

DRAFT = {
    "version": 1,
    "title": "Will a customer miss a payment?",
    "purpose": "credit-risk model 3",
    "label": {"name": "missed_payment", "classes": ["yes", "no"]},
    "features": [
        {"name": "age", "kind": "categorical", "missing": False, "values": ["young", "medium", "old"]},
        {"name": "income", "kind": "continuous", "missing": False, "low": 0, "high": 200000, "bins": 8},
        {"name": "hours", "kind": "continuous", "missing": False, "low": 0, "high": 100},
    ],
    "privacy": {"epsilon": 1.0, "answers": "one", "discrete": "auto", "continuous": "auto", "theta": 0.25},
    "projection": None,
    "study": None,
    "opens": None,
    "closes": "2027-01-01T00:00:00Z",
}

ABSENT = object()


def changed(document, place, value):
    """A deep copy with ``value`` at ``place``; ABSENT removes the key."""
    copied = copy.deepcopy(document)
    target = copied
    for step in place[:-1]:
        target = target[step]
    if value is ABSENT:
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return copied


def draft_with(*place, value):
    return changed(DRAFT, place, value)


def attempt(read, kind):
    """What ``read`` returns and None, or None and the error of this kind; any other error passes."""
    try:
        return read(), None
    except kind as error:
        return None, error


def names(cases):
    """Readable test ids."""
    return [f"{number}-{'.'.join(map(str, place))}" for number, (place, *_) in enumerate(cases)]


def document_of(campaign):
    return json.loads(campaign.document)


def encoded(document):
    return json.dumps(document).encode()


def places(value, prefix=()):
    """Every place inside a JSON value."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield (*prefix, key)
        yield from places(member, (*prefix, key))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


EVERY_KIND = {**DRAFT, "privacy": {"epsilon": 1.0, "discrete": "oue", "continuous": "laplace"}}
DOCUMENT = document_of(Campaign.compile(EVERY_KIND))
Q = "questions"
HALF = str(1 << 63)
