"""One ``except`` catches whatever ``protocols`` raises about its input."""

from __future__ import annotations

import inspect

import pytest

import protocols
from protocols import Campaign, LdpError, decode_upload, errors
from protocols.model import Model

DOCUMENT = Campaign.compile(
    {
        "version": 1,
        "title": "t",
        "label": {"name": "y", "classes": ["a", "b"]},
        "features": [{"name": "u", "kind": "categorical", "values": ["1", "2"]}],
        "privacy": {"epsilon": 1.0},
    }
)
KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_has_the_one_base_and_a_code(kind):
    assert issubclass(kind, LdpError)
    assert kind.code == kind.code.lower()


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_can_be_imported_from_the_package(kind):
    assert getattr(protocols, kind.__name__) is kind
    assert kind.__name__ in protocols.__all__


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: Campaign.compile({}),
        lambda: Campaign.compile("{"),
        lambda: Campaign.parse(b""),
        lambda: Campaign.parse(DOCUMENT.document, "A" * 43),
        lambda: decode_upload(b"", DOCUMENT),
        lambda: DOCUMENT.questions[0].mechanism.check(b"\xff"),
        lambda: Model.from_json("{}"),
    ],
)
def test_wrong_input_raises_it(attempt):
    with pytest.raises(LdpError) as raised:
        attempt()
    assert raised.value.code != LdpError.code
