"""Frozen classes that are dataclasses to whoever asks, and cost an app's start nothing."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import pprint
from collections.abc import Mapping
from typing import ClassVar

import pytest

from protocols.light import astuple, field, frozen, replace


@frozen
class Light:
    place: str
    counts: Mapping[str, int] = field(default_factory=dict)
    secret: bytes = field(default=b"", repr=False)
    at: float = 1.5

    @property
    def doubled(self) -> float:
        return 2 * self.at


@dataclasses.dataclass(frozen=True)
class Heavy:
    place: str
    counts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    secret: bytes = dataclasses.field(default=b"", repr=False)
    at: float = 1.5


@frozen
class Checked:
    above_zero: int
    LEAST: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if self.above_zero <= 0:
            raise ValueError("must be above 0")


def test_a_light_class_behaves_like_the_frozen_dataclass_of_the_same_fields() -> None:
    for arguments, named in ((("a",), {}), (("a", {"x": 1}), {"at": 3}), ((), {"place": "a", "secret": b"s"})):
        light, heavy = Light(*arguments, **named), Heavy(*arguments, **named)
        assert repr(light) == repr(heavy).replace("Heavy", "Light")
        assert dataclasses.asdict(light) == dataclasses.asdict(heavy)
        assert astuple(light) == dataclasses.astuple(heavy)
        assert Light.__match_args__ == Heavy.__match_args__
        assert light == Light(*arguments, **named) != Light("b")
        assert light != heavy
        changed = replace(light, at=4.0)
        assert changed == dataclasses.replace(light, at=4.0) != light
        assert changed.doubled == 8
        assert copy.deepcopy(light) == pickle.loads(pickle.dumps(light)) == light
    assert str(inspect.signature(Light)) == str(inspect.signature(Heavy))
    assert [one.name for one in dataclasses.fields(Light)] == [one.name for one in dataclasses.fields(Heavy)]
    assert pprint.pformat(Light("a"))


def test_a_default_that_is_made_is_made_for_each_value() -> None:
    assert Light("a").counts is not Light("a").counts


def test_equal_values_have_one_hash_and_a_value_that_holds_a_mapping_has_none() -> None:
    assert [one.name for one in dataclasses.fields(Checked)] == ["above_zero"]
    assert len({Checked(1), Checked(1), Checked(2)}) == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(Light("a"))


def test_a_light_value_cannot_be_changed() -> None:
    value = Light("a")
    with pytest.raises(AttributeError, match="'at' can be neither set nor deleted"):
        value.at = 3.0
    with pytest.raises(AttributeError, match="'at'"):
        del value.at
    with pytest.raises(AttributeError, match="'new'"):
        value.new = 3.0
    assert value == Light("a")


@pytest.mark.parametrize(
    ("arguments", "named", "problem"),
    [
        ((), {}, "needs 'place'"),
        ((1, 2, 3, 4, 5), {}, "4 fields, not 5"),
        (("a",), {"place": "b"}, "no field 'place', or was given it twice"),
        (("a",), {"plaice": "b"}, "no field 'plaice'"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments: tuple[object, ...], named: dict[str, object], problem: str):
    with pytest.raises(TypeError, match=problem):
        Light(*arguments, **named)
    with pytest.raises(TypeError):
        Heavy(*arguments, **named)
    with pytest.raises(TypeError, match="no field 'other'"):
        replace(Light("a"), other=1)


def test_a_value_is_checked_whenever_one_is_made() -> None:
    assert replace(Checked(1), above_zero=2).above_zero == 2
    for make in (lambda: Checked(0), lambda: replace(Checked(1), above_zero=0)):
        with pytest.raises(ValueError, match="above 0"):
            make()
