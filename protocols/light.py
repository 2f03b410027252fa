"""What an app's start needs of ``typing`` and ``dataclasses``, without the time that it takes to load them.

    @frozen
    class Consent:
        url: str
        granted_at: float | None = None

is a frozen dataclass, with the same keywords and the same behaviour (only that no fields are inherited): to a type
checker, and to whoever asks ``dataclasses`` or ``inspect`` about it, who then loads them.
"""

from __future__ import annotations

__all__ = ["TYPE_CHECKING", "Protocol", "astuple", "field", "frozen", "replace"]

TYPE_CHECKING = False
"""True to type checkers, which know the name."""

if TYPE_CHECKING:
    from dataclasses import field, replace
    from typing import Any, Protocol, TypeVar, dataclass_transform

    Value = TypeVar("Value")
else:
    Protocol = object

    class field:  # noqa: N801 - its name in dataclasses
        """A field whose default is made anew for each value, or that ``repr`` leaves out."""

        __slots__ = ("field_options",)

        def __init__(self, **options):
            self.field_options = options

    def replace(value, /, **changes):
        """A value of the same class with some fields changed. Raises TypeError for names that are none."""
        return type(value)(**{**{name: getattr(value, name) for name in value.__match_args__}, **changes})

    def dataclass_transform(**_):
        return lambda function: function


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Value]) -> type[Value]:
    """A class of immutable values: compared, hashed and shown by the fields that it declares.

    ``__post_init__`` is called when they are set.
    """
    made: Any = cls
    names = tuple(name for name, note in made.__annotations__.items() if not note.startswith("ClassVar"))
    defaults = {name: made.__dict__[name] for name in names if name in made.__dict__}
    options = {name: getattr(default, "field_options", {"default": default}) for name, default in defaults.items()}
    methods = {
        "__init__": _initialise,
        "__repr__": _show,
        "__eq__": _equal,
        "__hash__": _hash,
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__replace__": replace,
    }
    asked = {name: _AsDataclass(name) for name in ("__dataclass_fields__", "__dataclass_params__", "__signature__")}
    for name, value in {"__match_args__": names, "__field_options__": options, **methods, **asked}.items():
        setattr(cls, name, value)
    return cls


def astuple(value: Any) -> tuple[Any, ...]:
    """The values of the fields, in their order; what they hold is left as it is."""
    return tuple([getattr(value, name) for name in value.__match_args__])


def _initialise(self: Any, /, *values: Any, **named: Any) -> None:
    names, options, held = self.__match_args__, self.__field_options__, self.__dict__
    if len(values) > len(names):
        raise TypeError(f"{type(self).__name__} has {len(names)} fields, not {len(values)}")
    held.update(zip(names, values))  # noqa: B905 - the other fields follow
    for name in names[len(values) :]:
        if name in named:
            held[name] = named.pop(name)
        elif name not in options:
            raise TypeError(f"{type(self).__name__} needs {name!r}")
        else:
            of = options[name]
            held[name] = of["default"] if "default" in of else of["default_factory"]()
    if named:
        raise TypeError(f"{type(self).__name__} has no field {next(iter(named))!r}, or was given it twice")
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _show(self: Any) -> str:
    options = self.__field_options__
    shown = [name for name in self.__match_args__ if options.get(name, {}).get("repr", True)]
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _equal(self: object, other: object) -> Any:
    return astuple(self) == astuple(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(astuple(self))


def _refuse(self: object, name: str, *_: object) -> None:
    raise AttributeError(f"{type(self).__name__} is immutable: {name!r} can be neither set nor deleted")


class _AsDataclass:
    """What ``dataclasses`` and ``inspect`` look for in a class, made when somebody does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: Any) -> Any:
        from dataclasses import field as real
        from dataclasses import make_dataclass
        from inspect import signature

        options = owner.__field_options__
        notes = owner.__annotations__
        fields = [(name, notes[name], real(**options.get(name, {}))) for name in owner.__match_args__]
        made = make_dataclass(owner.__name__, fields, frozen=True)
        return signature(made) if self._name == "__signature__" else getattr(made, self._name)
