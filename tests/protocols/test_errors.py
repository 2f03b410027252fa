"""One ``except`` catches whatever ``protocols`` raises about its input."""

import inspect

import pytest

import protocols
from protocols import LdpError, errors

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_has_the_one_base_and_a_code_and_is_imported_from_the_package(kind):
    assert issubclass(kind, LdpError)
    assert kind.code == kind.code.lower()
    assert getattr(protocols, kind.__name__) is kind
    assert kind.__name__ in protocols.__all__
