"""What a mechanism sends, and what no device can have sent."""

import ast
import dataclasses
import math
import struct
from fractions import Fraction
from pathlib import Path

import pytest
from mechanism_grid import ALL, EPSILONS, NOISY

import ldp_client
import ldp_protocols
from ldp_protocols import SYSTEM_COINS, DocumentError
from ldp_protocols.errors import PAYLOAD_CODES
from ldp_protocols.exact import exact_epsilon
from ldp_protocols.mechanisms import PURE, pure


@pytest.mark.parametrize(
    ("size", "index", "bitmap"),
    [(2, 1, 1), (8, 1, 1), (9, 1, 2), (256, 1, 32), (257, 2, 33), (1024, 2, 128), (65536, 2, 8192), (65537, 4, 8193)],
)
def test_the_payload_widths_are_the_documented_ones(size, index, bitmap):
    widths = {name: kind.make(size, Fraction(1)).width for name, kind in ALL.items()}
    assert widths == {
        "de": index, "sue": bitmap, "oue": bitmap, "the": bitmap, "ss": bitmap,
        "she": 4 * size, "laplace": 4 * size, "onebit": index + 1,
    }  # fmt: skip


def refusal(mechanism, payload):
    """The code with which ``check`` refuses a payload, None where it accepts."""
    try:
        mechanism.check(payload)
    except DocumentError as error:
        return error.code if str(error) == PAYLOAD_CODES[error.code] else f"wrong message: {error}"
    return None


def possible(mechanism, payload):
    """The same by the documented payload format, written differently."""
    bits = [byte >> bit & 1 for byte in payload for bit in range(8)]
    if mechanism.name == "de":
        return None if payload[0] < mechanism.domain_size else "index-out-of-range"
    if mechanism.name == "onebit":
        if payload[0] >= mechanism.domain_size:
            return "index-out-of-range"
        return None if payload[1] <= 1 else "bit-out-of-range"
    if any(bits[mechanism.domain_size :]):
        return "padding-bits-set"
    if mechanism.name == "ss" and sum(bits) != mechanism.subset_size:
        return "wrong-subset-size"
    return None


@pytest.mark.parametrize("name", [name for name in ALL if name not in NOISY])
def test_exactly_the_impossible_payloads_are_refused_with_the_documented_code(name):
    for size in (2, 5, 8) if name in ("de", "onebit") else (2, 5, 8, 9):
        mechanism = ALL[name].make(size, Fraction(1, 2))
        for number in range(1 << 8 * min(mechanism.width, 2)):
            payload = number.to_bytes(mechanism.width, "little")
            code = refusal(mechanism, payload)
            assert code == possible(mechanism, payload)
            if code is None and name in PURE:
                assert list(mechanism.support(payload)) == sorted(mechanism.support(payload))
            elif name in PURE:
                with pytest.raises(DocumentError):
                    mechanism.support(payload)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", NOISY)
def test_what_clamping_takes_from_a_mean_is_lost_in_the_noise_of_a_thousand_million_reports(name, epsilon):
    mechanism = NOISY[name].make(2, exact_epsilon(epsilon))
    unit, beyond = 1 << mechanism.grid, mechanism.bound - (1 << mechanism.grid)

    def excess(steps):
        """E[max(Z - steps, 0)]: the sum over j of j P(Z = steps + j), P(z) = (1 - a) / (1 + a) a^|z|."""
        rate = 1 / float(mechanism.scale)
        return math.exp(-rate * (steps + 1)) / ((1 + math.exp(-rate)) * -math.expm1(-rate))

    bias = (excess(beyond) - excess(beyond + 2 * unit)) / unit
    assert 0 < bias < math.sqrt(mechanism.noise_variance(0.0) / 1e9) / 790


@pytest.mark.parametrize("name", [name for name in PURE if name != "de"])
def test_checking_a_bitmap_looks_at_no_index_one_by_one(name, monkeypatch):
    """A relay checks hundreds of bitmaps of thousands of cells at a time."""
    mechanism = PURE[name].make(8192, Fraction(1))
    payload = mechanism.perturb(5000, SYSTEM_COINS)
    monkeypatch.setattr(pure, "unpack_indices", None)
    mechanism.check(payload)
    with pytest.raises(DocumentError):
        mechanism.check(payload + b"\x01")


@pytest.mark.parametrize("name", NOISY)
def test_a_cell_beyond_the_noises_reach_is_refused(name, code_of):
    mechanism = NOISY[name].make(3, Fraction(1))
    bound = mechanism.bound
    for cell in (bound, -bound, 0):
        mechanism.check(struct.pack("<3i", 0, 0, cell))
    for cell in (bound + 1, -bound - 1, 2**31 - 1, -(2**31)):
        assert code_of(DocumentError, mechanism.check, struct.pack("<3i", 0, cell, 0)) == "value-out-of-range"


def test_no_mechanism_computes_with_floats_where_privacy_is_decided():
    for name, kind in ALL.items():
        mechanism = kind.make(6, exact_epsilon(0.7))
        assert isinstance(mechanism.loss(), Fraction), name
        numbers = [getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)]
        assert all(type(number) is int for number in numbers), name


def test_no_mechanism_is_named_on_a_device_but_in_its_table():
    """Whoever asked for one by its name would have to be found when another is added."""
    named = {}
    for package in (ldp_protocols, ldp_client):
        folder = Path(package.__file__).parent
        for file in folder.rglob("*.py"):
            texts = {
                node.value for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.Constant)
            }
            named |= {str(file.relative_to(folder.parent)): found for found in [texts & set(ALL)] if found}
    assert {name for name in named if "/mechanisms/" not in name} == set()
    assert set().union(*named.values()) == set(ALL)
